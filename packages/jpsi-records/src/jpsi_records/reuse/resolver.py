"""The resolver: replaces the names, branches and ranges in mounts by digests and hashes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

import attrs

from ..errors import InvalidRequestError, StoreError
from ..files import EMPTY, Blobs, Repositories, collection_digest, digest_of, subdirectory, write_manifest
from ..model import (
    STDIN,
    Blob,
    Collection,
    CollectionFile,
    Computation,
    GitTree,
    Json,
    Mount,
    Output,
    Text,
    Tmp,
    canonical,
    write_mount,
)
from .canonical_key import fingerprint, preimage


@attrs.frozen(slots=True)
class Lookup:
    """The current meaning of the names in a computation, read from the records."""

    #: The digest of each named collection; None if the name does not exist.
    collections: Mapping[str, str | None]
    #: The digest of each request's output; None if there is none yet.
    outputs: Mapping[str, str | None]

    @classmethod
    def of(
        cls,
        computation: Computation,
        *,
        collection: Callable[[str], str | None],
        output: Callable[[str], str | None],
    ) -> Self:
        """Look up all names of a computation."""
        mounts = computation.mounts.values()
        names = {it.name for it in mounts if isinstance(it, Collection | CollectionFile)}
        asked = {it.request for it in mounts if isinstance(it, Output)}
        return cls({it: collection(it) for it in names if it}, {it: output(it) for it in asked})


# The limit on combinations, if several mounts have several variants each.
_MAX_COMBINATIONS = 10_000


@attrs.frozen(slots=True)
class Resolution:
    """The resolved variants of a computation; a new execution computes the first one."""

    preimages: tuple[str, ...]
    #: Contents that the request itself brings; they are stored at the commit.
    contents: tuple[bytes, ...]

    @property
    def wanted(self) -> str:
        """The canonical key of a new execution."""
        return self.preimages[0]

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The fingerprints of all variants."""
        return tuple(map(fingerprint, self.preimages))


class Resolver:
    """A resolver of mounts that reads the blob store and git repositories."""

    def __init__(self, blobs: Blobs, repositories: Repositories) -> None:
        self._blobs = blobs
        self._repositories = repositories

    def resolve(self, computation: Computation, lookup: Lookup) -> Resolution:
        """Return the resolved variants of a computation.

        Raises:
            InvalidRequestError: an input is missing or unreadable; the message names each.
        """
        found: dict[str, Sequence[Mount]] = {}
        contents: list[bytes] = []
        problems = []
        for target, mount in sorted(computation.mounts.items()):
            try:
                found[target] = self._alternatives(_of_output(target, mount, lookup), lookup, contents)
            except StoreError as e:
                problems.append(f"mounts: {target}: {e}")
        if problems:
            raise InvalidRequestError.of(problems)
        return Resolution(tuple(_preimages(computation, found)), tuple(contents))

    def _alternatives(self, mount: Mount, lookup: Lookup, contents: list[bytes]) -> Sequence[Mount]:
        match mount:
            case Collection():
                return self._directories(mount, lookup, contents)
            case CollectionFile():
                return [self._file(mount, lookup)]
            case GitTree():
                return self._repositories.resolve(mount)
            case Text() | Json():
                text = mount.content if isinstance(mount, Text) else canonical(mount.content)
                contents.append(text.encode())
                return [Blob(digest=digest_of(contents[-1]))]
            case Tmp():
                return [Tmp()]
            case Blob():
                self._check_blob(mount.digest)
        return [mount]

    def _directories(self, mount: Collection, lookup: Lookup, contents: list[bytes]) -> Sequence[Mount]:
        if mount.is_new:
            contents.append(write_manifest(EMPTY).encode())
            return [Collection(digest=collection_digest(EMPTY), writable=True)]
        manifest = self._blobs.manifest(_digest(mount, lookup))
        inner = subdirectory(manifest, mount.path)
        if inner is None:
            msg = f"the collection has no directory {mount.path}"
            raise StoreError(msg)
        if inner is not manifest:
            contents.append(write_manifest(inner).encode())
        digest = collection_digest(inner)
        # Unspecified matches both; a new execution gets a read-only directory.
        choices = [False, True] if mount.writable is None else [mount.writable]
        return [Collection(digest=digest, writable=it) for it in choices]

    def _file(self, mount: CollectionFile, lookup: Lookup) -> Mount:
        entry = self._blobs.manifest(_digest(mount, lookup)).get(mount.path.strip("/"))
        if entry is None or entry.link is not None:
            msg = f"the collection has no file {mount.path}"
            raise StoreError(msg)
        self._check_blob(entry.digest)
        return Blob(digest=entry.digest)

    def _check_blob(self, digest: str) -> None:
        if not self._blobs.path(digest).exists():
            msg = f"there is no file {digest}"
            raise StoreError(msg)


def _of_output(target: str, mount: Mount, lookup: Lookup) -> Mount:
    """Return the mount; that of a request's output becomes a collection."""
    if not isinstance(mount, Output):
        return mount
    digest = lookup.outputs[mount.request]
    if digest is None:
        msg = f"request {mount.request} has no output, or not yet"
        raise StoreError(msg)
    if target == STDIN:
        return CollectionFile(digest=digest, path=mount.path)
    return Collection(digest=digest, path=mount.path)


def _digest(mount: Collection | CollectionFile, lookup: Lookup) -> str:
    if mount.digest is not None:
        return mount.digest
    digest = lookup.collections[mount.name or ""]
    if digest is None:
        msg = f"no collection has the name {mount.name}"
        raise StoreError(msg)
    return digest


def _preimages(computation: Computation, found: Mapping[str, Sequence[Mount]]) -> Iterator[str]:
    combinations = itertools.product(*found.values())
    for chosen in itertools.islice(combinations, _MAX_COMBINATIONS):
        mounts = dict(zip(found, chosen, strict=True))
        yield preimage(computation, {target: write_mount(it) for target, it in mounts.items()})
