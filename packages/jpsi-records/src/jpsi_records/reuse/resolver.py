"""Resolves the inputs of a computation: names, git branches and revision ranges become digests and hashes.

It is the step before the search for an execution to reuse: an execution depends on contents, not on names.
One mount may have several variants, such as the commits of a range; an execution of any variant satisfies the
request.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import attrs

from .. import files, model
from ..errors import InvalidRequestError, StoreError
from .canonical_key import fingerprint, preimage

# The largest number of combinations, if several mounts have several variants each.
_MAX_COMBINATIONS = 10_000


@attrs.frozen(slots=True)
class Resolution:
    """The resolved variants of a computation; a new execution computes the first one."""

    preimages: tuple[str, ...]
    #: Contents that are part of the request itself, such as texts; they are stored at the commit.
    contents: tuple[bytes, ...]

    @property
    def wanted(self) -> str:
        """The canonical key of a new execution."""
        return self.preimages[0]

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The fingerprints of all variants."""
        return tuple(map(fingerprint, self.preimages))


@attrs.define(slots=True)
class Resolver:
    """A resolver of one computation, which reads the blob store and git repositories."""

    blobs: files.Blobs
    repositories: files.Repositories
    #: The digest of the collection or of the request's output that a mount names, by the mount's target; None
    #: if there is none (yet).
    digests: Mapping[str, str | None]
    contents: list[bytes] = attrs.field(factory=list)

    def resolve(self, computation: model.Computation) -> Resolution:
        """Return the resolved variants of a computation.

        Raises:
            InvalidRequestError: an input is missing or unreadable; the message names each.
        """
        variants: dict[str, Sequence[model.Mount]] = {}
        problems = []
        for target, mount in sorted(computation.mounts.items()):
            try:
                variants[target] = self._variants(target, mount)
            except StoreError as e:
                problems.append(f"mounts: {target}: {e}")
        if problems:
            raise InvalidRequestError.of(problems)
        return Resolution(tuple(_preimages(computation, variants)), tuple(self.contents))

    def _variants(  # noqa: PLR0911  one for each kind
        self, target: str, mount: model.Mount
    ) -> Sequence[model.Mount]:
        match mount:
            case model.Output():
                if self.digests[target] is None:
                    raise StoreError(f"request {mount.request} has no output, or not yet")
                kind = model.CollectionFile if target == model.STDIN else model.Collection
                return self._variants(target, kind(digest=self.digests[target], path=mount.path))
            case model.Collection(is_new=True):
                return [
                    model.Collection(
                        digest=self._add_content(files.write_manifest(files.EMPTY).encode()), writable=True
                    )
                ]
            case model.Collection():
                return self._directories(mount, self._manifest(target, mount))
            case model.CollectionFile():
                return [self._file(mount, self._manifest(target, mount))]
            case model.GitTree():
                return self.repositories.resolve(mount)
            case model.Text() | model.Json():
                text = mount.content if isinstance(mount, model.Text) else model.canonical(mount.content)
                return [model.Blob(digest=self._add_content(text.encode()))]
            case model.Tmp():
                return [model.Tmp()]
            case model.Blob():
                self._check_blob(mount.digest)
        return [mount]

    def _add_content(self, content: bytes) -> str:
        """Add content that is part of the request, and return its digest."""
        self.contents.append(content)
        return files.digest_of(content)

    def _manifest(self, target: str, mount: model.Collection | model.CollectionFile) -> files.Manifest:
        digest = mount.digest or self.digests[target]
        if digest is None:
            how = "jpsi request put FILE --name NAME stores one"
            raise StoreError(f"no collection has the name {mount.name}; {how}")
        return self.blobs.manifest(digest)

    def _directories(self, mount: model.Collection, manifest: files.Manifest) -> Sequence[model.Mount]:
        inner = files.subdirectory(manifest, mount.path)
        if inner is None:
            raise StoreError(f"the collection has no directory {mount.path}")
        if inner is manifest:
            digest = files.collection_digest(inner)
        else:
            digest = self._add_content(files.write_manifest(inner).encode())
        # Unspecified matches both; a new execution gets a read-only directory.
        choices = [False, True] if mount.writable is None else [mount.writable]
        return [model.Collection(digest=digest, writable=it) for it in choices]

    def _file(self, mount: model.CollectionFile, manifest: files.Manifest) -> model.Mount:
        entry = manifest.get(mount.path.strip("/"))
        if entry is None or entry.link is not None:
            raise StoreError(f"the collection has no file {mount.path}")
        self._check_blob(entry.digest)
        return model.Blob(digest=entry.digest)

    def _check_blob(self, digest: str) -> None:
        if not self.blobs.path(digest).exists():
            raise StoreError(f"there is no file {digest}")


def _preimages(
    computation: model.Computation, variants: Mapping[str, Sequence[model.Mount]]
) -> Iterator[str]:
    combinations = itertools.product(*variants.values())
    for chosen in itertools.islice(combinations, _MAX_COMBINATIONS):
        mounts = zip(variants, chosen, strict=True)
        yield preimage(computation, {target: model.write_mount(it) for target, it in mounts})
