"""The mounts of a computation as values, as the user wrote them: names and branches are not resolved yet."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import attrs

from .canonical_json import canonical
from .paths import place

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def _place(path: Any) -> Any:  # noqa: ANN401  any JSON value; `problems` checks it
    try:
        return place(path) if isinstance(path, str) else path
    except ValueError:
        return path


class Mount(Protocol):
    """An entry of a computation's mounts."""

    #: The value of `kind` in documents.
    kind: ClassVar[str]

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""


@attrs.frozen(slots=True, kw_only=True)
class Collection:
    """A directory of a collection; a new, empty one if neither digest nor name is given."""

    kind: ClassVar[str] = "collection"
    #: The digest of the collection.
    digest: str | None = None
    #: The name of a collection; the commit of the request resolves it to a digest.
    name: str | None = None
    #: The directory in the collection.
    path: str = attrs.field(default="/", converter=_place)
    #: True if the job may write to its copy; None accepts both. The collection itself never changes.
    writable: bool | None = None

    @property
    def is_new(self) -> bool:
        """True if the directory is empty at the start of the job."""
        return self.digest is None and self.name is None

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""
        if self.digest is not None and self.name is not None:
            yield "is given by digest and by name; one of them says which it is"
        yield from _collection_problems(self.digest, self.name, self.path)
        if self.writable is not None and not isinstance(self.writable, bool):
            yield f"writable must be true or false, not {self.writable!r}"
        if self.is_new and (self.path != "/" or self.writable is False):
            yield "is a new collection, which has no path and can be written to"


@attrs.frozen(slots=True, kw_only=True)
class CollectionFile:
    """A file of a collection."""

    kind: ClassVar[str] = "collection_file"
    #: The digest of the collection.
    digest: str | None = None
    #: The name of a collection; the commit of the request resolves it to a digest.
    name: str | None = None
    #: The file in the collection.
    path: str = attrs.field(converter=_place)

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""
        if (self.digest is None) == (self.name is None):
            yield "needs either the digest or the name of a collection"
        yield from _collection_problems(self.digest, self.name, self.path)


def _collection_problems(digest: Any, name: Any, path: Any) -> Iterator[str]:  # noqa: ANN401  not yet checked
    if digest is not None and not (isinstance(digest, str) and DIGEST.fullmatch(digest)):
        yield f"digest must be sha256: and 64 hexadecimal digits, not {digest!r}"
    if name is not None and not (isinstance(name, str) and name):
        yield f"name must be text, not {name!r}"
    yield from _path_problems(path)


def _path_problems(path: Any) -> Iterator[str]:  # noqa: ANN401  not yet checked
    if not isinstance(path, str):
        yield f"path must be text, not {path!r}"
        return
    try:
        place(path)
    except ValueError as e:
        yield f"path {e}"


@attrs.frozen(slots=True, kw_only=True)
class Output:
    """The output of another request, or a directory or file in it; the request waits for the other one."""

    kind: ClassVar[str] = "output"
    #: The id of the other request.
    request: str
    #: The directory in its output; for standard input, the file.
    path: str = attrs.field(default="/", converter=_place)

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""
        if not _is_name(self.request):
            yield f"request must be that of a request, not {self.request!r}"
        yield from _path_problems(self.path)


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
    path: str = attrs.field(default="/", converter=_place)

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""
        ways = {name: getattr(self, name) for name in ("commit", "revisions", "tree", "blob")}
        if sum(value is not None for value in ways.values()) != 1:
            yield "needs one of commit, revisions, tree and blob"
        for name, value in ways.items():
            if value is not None and not _is_name(value):
                yield f"{name} cannot be {value!r}"
        if isinstance(self.revisions, str):
            yield from _revisions_problems(self.revisions)
        if not self.is_pinned and not _is_name(self.url):
            yield f"url must be that of a repository, not {self.url!r}"
        if self.is_pinned and (self.path != "/" or self.url is not None):
            yield "is given by tree or blob, which needs no url and has no path"
        path: Any = self.path  # not yet checked
        if isinstance(path, str) and "\n" in path:
            yield "path cannot hold a line break"
        yield from _path_problems(self.path)

    @property
    def is_pinned(self) -> bool:
        """True if the mount names a hash, which always means the same content."""
        return self.tree is not None or self.blob is not None


@attrs.frozen(slots=True, kw_only=True)
class Blob:
    """A file given by the digest of its content, which must be in the records."""

    kind: ClassVar[str] = "blob"
    digest: str

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""
        yield from _collection_problems(self.digest, None, "/")


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


def _revisions_problems(revisions: str) -> Iterator[str]:
    try:
        words = revision_words(revisions)
    except ValueError as e:
        yield f"revisions cannot be {revisions!r}: {e}"
        return
    if not words or not all(map(_is_name, words)):
        yield f"revisions cannot be {revisions!r}: it is a list of commits and ranges, without options of git"


def _is_name(value: Any) -> bool:  # noqa: ANN401  not yet checked
    # A leading dash would make it an option of the program that gets it.
    return isinstance(value, str) and value != "" and value[0] != "-" and not set(value) & {"\0", "\n"}


@attrs.frozen(slots=True, kw_only=True)
class Tmp:
    """An empty directory, removed when the job has ended."""

    kind: ClassVar[str] = "tmp"
    #: The capacity in bytes. Like memory, it is not part of the computation's identity.
    capacity: int | None = None

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""
        if self.capacity is not None and (type(self.capacity) is not int or self.capacity <= 0):
            yield f"capacity must be a number of bytes, not {self.capacity!r}"


@attrs.frozen(slots=True, kw_only=True)
class Text:
    """A file with the given text."""

    kind: ClassVar[str] = "text"
    content: str

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""
        content: Any = self.content  # not yet checked
        if not isinstance(content, str):
            yield f"content must be text, not {content!r}"


@attrs.frozen(slots=True, kw_only=True)
class Json:
    """A file with the given JSON value in canonical form."""

    kind: ClassVar[str] = "json"
    content: Any  # any JSON value

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""
        try:
            canonical(self.content)
        except ValueError as e:
            yield f"content: {e}"


@attrs.frozen(slots=True, kw_only=True)
class File:
    """The file that receives standard output; allowed for the target `stdout` only."""

    kind: ClassVar[str] = "file"
    #: The file, inside a writable mount.
    path: str = attrs.field(converter=_place)

    def problems(self) -> Iterator[str]:
        """Yield every problem of this mount that can be found without the records."""
        yield from _path_problems(self.path)


KINDS: Mapping[str, type[Mount]] = {
    it.kind: it for it in (Collection, CollectionFile, Output, GitTree, Blob, Tmp, Text, Json, File)
}
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
        msg = f"has the kind {document['kind']!r}, which {_NOT_OFFERED[document['kind']]}"
        raise ValueError(msg)
    kind = KINDS.get(_SYNONYMS.get(document["kind"], document["kind"]))
    if kind is None:
        msg = f"has a kind that is not offered, {document['kind']!r}; offered are {', '.join(KINDS)}"
        raise ValueError(msg)
    given: dict[str, Any] = {
        str(_SYNONYMOUS_KEYS.get(key, key)): it for key, it in document.items() if key != "kind"
    }
    if wrong := list(_wrong_keys(document["kind"], kind, given)):
        raise ValueError("; ".join(wrong))
    return kind(**given)


def _wrong_keys(name: str, kind: Callable[..., Mount], given: Mapping[str, Any]) -> Iterator[str]:
    fields = attrs.fields_dict(kind)  # type: ignore[arg-type]  # each kind is a class of attrs
    for key in given:
        if key in fields:
            continue
        told = _ARVADOS_GIT if name == GitTree.kind else _ARVADOS
        yield (
            f"says {key}: {told[key]}"
            if key in told
            else f"says {key!r}, which mounts of kind {name} do not have; they have {', '.join(fields)}"
        )
    for key, field in fields.items():
        if field.default is attrs.NOTHING and key not in given:
            yield f"does not say {key}, which mounts of kind {name} must have"


def write_mount(mount: Mount) -> dict[str, Any]:
    """Return the document of a mount, without fields at their defaults."""
    fields = attrs.fields_dict(type(mount))  # type: ignore[arg-type]  # each kind is a class of attrs
    values = {name: getattr(mount, name) for name in fields}
    needed = {
        name: it
        for name, it in values.items()
        if fields[name].default is attrs.NOTHING or it != fields[name].default
    }
    return {"kind": mount.kind, **needed}
