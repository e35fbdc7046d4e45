"""What a computation finds in its file system, as values, before anything floating in it is resolved."""

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


def _place(path: Any) -> Any:  # noqa: ANN401  whatever a document says; what is wrong is found by `problems`
    try:
        return place(path) if isinstance(path, str) else path
    except ValueError:
        return path


class Mount(Protocol):
    """One entry of the mounts."""

    #: How documents call it.
    kind: ClassVar[str]

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""


@attrs.frozen(slots=True, kw_only=True)
class Collection:
    """A directory of a collection, or a new and empty one if neither a digest nor a name is given."""

    kind: ClassVar[str] = "collection"
    #: The collection itself.
    digest: str | None = None
    #: The collection that has this name when the request is committed.
    name: str | None = None
    #: The directory in it.
    path: str = attrs.field(default="/", converter=_place)
    #: Whether the job may write there; None leaves that open. The collection never changes.
    writable: bool | None = None

    @property
    def is_new(self) -> bool:
        """Whether it begins empty."""
        return self.digest is None and self.name is None

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""
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
    #: The collection itself.
    digest: str | None = None
    #: The collection that has this name when the request is committed.
    name: str | None = None
    #: The file in it.
    path: str = attrs.field(converter=_place)

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""
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
    """The output of another request, or a directory or file of it; it is waited for."""

    kind: ClassVar[str] = "output"
    #: The other request.
    request: str
    #: The directory in it; as standard input, the file.
    path: str = attrs.field(default="/", converter=_place)

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""
        if not _is_name(self.request):
            yield f"request must be that of a request, not {self.request!r}"
        yield from _path_problems(self.path)


@attrs.frozen(slots=True, kw_only=True)
class GitTree:
    """The tree of a commit, without anything of git's own; of a range, that of any commit in it."""

    kind: ClassVar[str] = "git_tree"
    #: The repository, as `git fetch` takes it.
    url: str | None = None
    #: A commit, branch or tag, as gitrevisions(7) has it: `main`, `HEAD~1`, `v1`.
    commit: str | None = None
    #: A range of commits, as gitrevisions(7) has it: `bugfix..`, `A...B`, `^A B`; a new run has the newest.
    revisions: str | None = None
    #: The tree itself, or the one file, of a repository that was fetched before.
    tree: str | None = None
    blob: str | None = None
    #: The directory, or the one file, of the tree of the commit.
    path: str = attrs.field(default="/", converter=_place)

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""
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
        """Whether nothing in it floats."""
        return self.tree is not None or self.blob is not None


@attrs.frozen(slots=True, kw_only=True)
class Blob:
    """A file by the digest of its content, which must be there."""

    kind: ClassVar[str] = "blob"
    digest: str

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""
        yield from _collection_problems(self.digest, None, "/")


def absolute_url(url: str) -> str:
    """Return the URL of a repository, a path as what it is from everywhere.

    >>> absolute_url("https://host/r"), absolute_url("me@host:r")
    ('https://host/r', 'me@host:r')
    """
    # As git does it: `host:r` is no path, `./host:r` is one.
    is_path = ":" not in url.partition("/")[0] or os.path.exists(url)  # noqa: PTH110  of any text at all
    return str(Path(url).absolute()) if is_path else url


def revision_words(revisions: str) -> list[str]:
    """Return the words of a range of commits, as a shell would give them to git.

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
    # One that begins with a dash would be an option of whoever is called with it.
    return isinstance(value, str) and value != "" and value[0] != "-" and not set(value) & {"\0", "\n"}


@attrs.frozen(slots=True, kw_only=True)
class Tmp:
    """An empty directory that goes when the job has ended."""

    kind: ClassVar[str] = "tmp"
    #: How many bytes must fit in. Not part of what is computed, as memory is not.
    capacity: int | None = None

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""
        if self.capacity is not None and (type(self.capacity) is not int or self.capacity <= 0):
            yield f"capacity must be a number of bytes, not {self.capacity!r}"


@attrs.frozen(slots=True, kw_only=True)
class Text:
    """A file with this text."""

    kind: ClassVar[str] = "text"
    content: str

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""
        content: Any = self.content  # not yet checked
        if not isinstance(content, str):
            yield f"content must be text, not {content!r}"


@attrs.frozen(slots=True, kw_only=True)
class Json:
    """A file with this JSON value, in its canonical text."""

    kind: ClassVar[str] = "json"
    content: Any  # any JSON value

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""
        try:
            canonical(self.content)
        except ValueError as e:
            yield f"content: {e}"


@attrs.frozen(slots=True, kw_only=True)
class File:
    """Where standard output goes; of no use elsewhere."""

    kind: ClassVar[str] = "file"
    #: The file, inside a mount that can be written to.
    path: str = attrs.field(converter=_place)

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it by itself."""
        yield from _path_problems(self.path)


KINDS: Mapping[str, type[Mount]] = {
    it.kind: it for it in (Collection, CollectionFile, Output, GitTree, Blob, Tmp, Text, Json, File)
}
# What the draft calls them.
_SYNONYMS: Mapping[Any, str] = {"regular_file": "file"}
# What it calls something that is not offered, and why not.
_NOT_OFFERED: Mapping[Any, str] = {
    "keep": (
        "is not offered: a job that sees all collections says nothing of what it depends on; "
        "mount those that it needs, each as a collection"
    )
}
# What only an Arvados has, by the keys of the draft, and what is said here instead.
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


def read_mount(document: Any) -> Mount:  # noqa: ANN401  whatever stands in a document
    """The mount that a mapping of a document describes.

    Raises:
        ValueError: it describes none.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        msg = f"must be a mapping with a kind, which is one of {', '.join(KINDS)}"
        raise ValueError(msg)  # noqa: TRY004  what a document says, as below
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
    """What a document says of a mount, without what needs not be said."""
    fields = attrs.fields_dict(type(mount))  # type: ignore[arg-type]  # each kind is a class of attrs
    values = {name: getattr(mount, name) for name in fields}
    needed = {
        name: it
        for name, it in values.items()
        if fields[name].default is attrs.NOTHING or it != fields[name].default
    }
    return {"kind": mount.kind, **needed}
