"""The mounts of a computation: its inputs and temporary directories, as the user wrote them.

Names and branches are not resolved yet: `reuse.resolver` does that.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import attrs

from .canonical_json import canonical
from .field_checks import FieldChecks, as_place, field_problems, is_count, is_text
from .paths import place

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Mount(Protocol):
    """An entry of a computation's mounts."""

    #: The value of `kind` in documents.
    kind: ClassVar[str]


@attrs.frozen(slots=True, kw_only=True)
class Collection:
    """A directory of a collection; a new, empty one if neither digest nor name is given."""

    kind: ClassVar[str] = "collection"
    #: The digest of the collection.
    digest: str | None = None
    #: The name of a collection; the commit of the request resolves it to a digest.
    name: str | None = None
    #: The directory in the collection.
    path: str = attrs.field(default="/", converter=as_place)
    #: True if the job may write to its copy; None accepts both. The collection itself never changes.
    writable: bool | None = None

    @property
    def is_new(self) -> bool:
        """True if the directory is empty at the start of the job."""
        return self.digest is None and self.name is None


@attrs.frozen(slots=True, kw_only=True)
class CollectionFile:
    """A file of a collection."""

    kind: ClassVar[str] = "collection_file"
    #: The digest of the collection.
    digest: str | None = None
    #: The name of a collection; the commit of the request resolves it to a digest.
    name: str | None = None
    #: The file in the collection.
    path: str = attrs.field(converter=as_place)


@attrs.frozen(slots=True, kw_only=True)
class Output:
    """The output of another request, or a directory or file in it; the request waits for the other one."""

    kind: ClassVar[str] = "output"
    #: The id of the other request.
    request: str
    #: The directory in its output; for standard input, the file.
    path: str = attrs.field(default="/", converter=as_place)


@attrs.frozen(slots=True, kw_only=True)
class GitTree:
    """The tree of a git commit, without `.git`; for a range, the tree of any commit in it."""

    kind: ClassVar[str] = "git_tree"
    #: The URL of the repository, as `git fetch` accepts it.
    url: str | None = None
    #: A commit, branch or tag in the syntax of gitrevisions(7): `main`, `HEAD~1`, `v1`.
    commit: str | None = None
    #: A range in the syntax of gitrevisions(7): `bugfix..`, `A...B`, `^A B`; a new run takes the newest.
    revisions: str | None = None
    #: The hash of a tree or of a file (blob), in a repository that was fetched before.
    tree: str | None = None
    blob: str | None = None
    #: The directory or file in the tree of the commit.
    path: str = attrs.field(default="/", converter=as_place)

    @property
    def is_pinned(self) -> bool:
        """True if the mount names a hash, which always means the same content."""
        return self.tree is not None or self.blob is not None


@attrs.frozen(slots=True, kw_only=True)
class Blob:
    """A file given by the digest of its content, which must be in the records."""

    kind: ClassVar[str] = "blob"
    digest: str


@attrs.frozen(slots=True, kw_only=True)
class Tmp:
    """An empty directory, removed when the job has ended."""

    kind: ClassVar[str] = "tmp"
    #: The capacity in bytes. Like memory, it is not part of the computation's identity.
    capacity: int | None = None


@attrs.frozen(slots=True, kw_only=True)
class Text:
    """A file with the given text."""

    kind: ClassVar[str] = "text"
    content: str


@attrs.frozen(slots=True, kw_only=True)
class Json:
    """A file with the given JSON value in canonical form."""

    kind: ClassVar[str] = "json"
    content: Any  # any JSON value


@attrs.frozen(slots=True, kw_only=True)
class File:
    """The file that receives standard output; allowed for the target `stdout` only."""

    kind: ClassVar[str] = "file"
    #: The file, inside a writable mount.
    path: str = attrs.field(converter=as_place)


KINDS: Mapping[str, type[Mount]] = {
    it.kind: it for it in (Collection, CollectionFile, Output, GitTree, Blob, Tmp, Text, Json, File)
}


def _is_word(value: Any) -> bool:  # noqa: ANN401  any YAML value
    # A leading dash would make it an option of the program that gets it.
    return is_text(value) and value[0] != "-" and not set(value) & {"\0", "\n"}


_CHECKS: FieldChecks = {
    "digest": (
        lambda it: isinstance(it, str) and DIGEST.fullmatch(it) is not None,
        "sha256: and 64 hexadecimal digits",
    ),
    "name": (is_text, "text"),
    "path": (lambda it: isinstance(it, str), "text"),
    "writable": (lambda it: isinstance(it, bool), "true or false"),
    "request": (_is_word, "that of a request"),
    "url": (_is_word, "that of a repository"),
    "capacity": (is_count, "a number of bytes"),
}


def problems(mount: Mount) -> Iterator[str]:
    """Yield every problem of a mount that can be found without the records."""
    yield from _kind_problems(mount)
    yield from field_problems(mount, _CHECKS)  # type: ignore[arg-type]  # each kind is a class of attrs
    path = getattr(mount, "path", None)
    try:
        place(path if isinstance(path, str) else "/")
    except ValueError as e:
        yield f"path {e}"


def _kind_problems(mount: Mount) -> Iterator[str]:
    match mount:
        case Collection():
            yield from _collection_problems(mount)
        case CollectionFile():
            if (mount.digest is None) == (mount.name is None):
                yield "needs either the digest or the name of a collection"
        case GitTree():
            yield from _git_problems(mount)
        case Text() if not isinstance(mount.content, str):
            yield f"content must be text, not {mount.content!r}"
        case Json():
            try:
                canonical(mount.content)
            except ValueError as e:
                yield f"content: {e}"


def _collection_problems(mount: Collection) -> Iterator[str]:
    if mount.digest is not None and mount.name is not None:
        yield "is given by digest and by name; give only one of them"
    if mount.is_new and (mount.path != "/" or mount.writable is False):
        yield "is a new collection, which has no path and can be written to"


def _git_problems(mount: GitTree) -> Iterator[str]:
    ways = {name: getattr(mount, name) for name in ("commit", "revisions", "tree", "blob")}
    if sum(value is not None for value in ways.values()) != 1:
        yield "needs one of commit, revisions, tree and blob"
    for name, value in ways.items():
        if value is not None and not _is_word(value):
            yield f"{name} cannot be {value!r}"
    if isinstance(mount.revisions, str):
        yield from _revisions_problems(mount.revisions)
    if mount.is_pinned and (mount.path != "/" or mount.url is not None):
        yield "is given by tree or blob, which needs no url and has no path"
    if not mount.is_pinned and mount.url is None:
        yield "url must be that of a repository, not None"
    if "\n" in str(mount.path):
        yield "path cannot hold a line break"


def _revisions_problems(revisions: str) -> Iterator[str]:
    try:
        words = revision_words(revisions)
    except ValueError as e:
        yield f"revisions cannot be {revisions!r}: {e}"
        return
    if not words or not all(map(_is_word, words)):
        yield f"revisions cannot be {revisions!r}: it is a list of commits and ranges, without options of git"


def absolute_url(url: str) -> str:
    """Return the URL of a repository; a relative path becomes absolute.

    >>> absolute_url("https://host/r"), absolute_url("me@host:r")
    ('https://host/r', 'me@host:r')
    """
    # As git decides: `host:r` is no path, `./host:r` is one.
    is_path = ":" not in url.partition("/")[0] or os.path.exists(url)  # noqa: PTH110  of any text at all
    return str(Path(url).absolute()) if is_path else url


def revision_words(revisions: str) -> list[str]:
    """Split a range of commits into the words that a shell would pass to git.

    >>> revision_words("^main 'v1^{/fix it}'")
    ['^main', 'v1^{/fix it}']

    Raises:
        ValueError: a quotation does not end.
    """
    return shlex.split(revisions)


# Kinds that the draft specification names differently.
_SYNONYMS: Mapping[Any, str] = {"regular_file": "file"}
# A kind of the draft specification that jpsi does not offer, with the reason.
_NOT_OFFERED: Mapping[Any, str] = {
    "keep": (
        "is not offered: a job that sees all collections says nothing of what it depends on; "
        "mount those that it needs, each as a collection"
    )
}
# Keys of the draft specification that only Arvados supports, with the alternative in jpsi.
_ARVADOS: Mapping[str, str] = {
    "portable_data_hash": (
        "that is the MD5 digest by which an Arvados knows a collection; here it is known by its `digest`, "
        "which `jpsi request put` writes"
    ),
    "uuid": (
        "that is a row in the database of an Arvados; here a collection that may change has a `name`, "
        "which `jpsi request put --name` gives it"
    ),
}
_ARVADOS_GIT: Mapping[str, str] = dict.fromkeys(
    ("uuid", "repository_name"),
    "that is a repository that an Arvados hosts; here a repository is given by its `url`",
)
_SYNONYMOUS_KEYS: Mapping[Any, str] = {"commit_range": "revisions", "git-url": "url"}


def read_mount(document: Any) -> Mount:  # noqa: ANN401  any JSON value
    """Return the mount that a mapping of a document describes.

    Raises:
        ValueError: the mapping is not a valid mount.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        msg = f"must be a mapping with a kind, which is one of {', '.join(KINDS)}"
        raise ValueError(msg)  # noqa: TRY004  ValueError for all problems
    if document["kind"] in _NOT_OFFERED:
        raise ValueError(f"has the kind {document['kind']!r}, which {_NOT_OFFERED[document['kind']]}")
    kind = KINDS.get(_SYNONYMS.get(document["kind"], document["kind"]))
    if kind is None:
        msg = f"has a kind that is not offered, {document['kind']!r}; offered are {', '.join(KINDS)}"
        raise ValueError(msg)
    fields = {str(_SYNONYMOUS_KEYS.get(key, key)): it for key, it in document.items() if key != "kind"}
    if wrong := list(_wrong_keys(document["kind"], kind, fields)):
        raise ValueError("; ".join(wrong))
    return kind(**fields)


def _wrong_keys(name: str, kind: Callable[..., Mount], document: Mapping[str, Any]) -> Iterator[str]:
    fields = attrs.fields_dict(kind)  # type: ignore[arg-type]  # each kind is a class of attrs
    explanations = _ARVADOS_GIT if name == GitTree.kind else _ARVADOS
    for key in document:
        if key in fields:
            continue
        if key in explanations:
            yield f"says {key}: {explanations[key]}"
        else:
            yield f"says {key!r}, which mounts of kind {name} do not have; they have {', '.join(fields)}"
    for key, field in fields.items():
        if field.default is attrs.NOTHING and key not in document:
            yield f"does not say {key}, which mounts of kind {name} must have"


def write_mount(mount: Mount) -> dict[str, Any]:
    """Return the document of a mount, without fields at their defaults."""
    fields = attrs.fields_dict(type(mount))  # type: ignore[arg-type]  # each kind is a class of attrs
    values = {name: getattr(mount, name) for name in fields}
    return {"kind": mount.kind, **{name: it for name, it in values.items() if it != fields[name].default}}
