"""Says of which inputs the digests in a near miss are, and which files of two collections differ.

A digest in a canonical key is that of a collection or of a file, which users know by other names: no command
has printed the digest of a file. The records use it for previews and explanations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from .. import model
from ..files import Manifest
from .canonical_key import Difference
from .matching import NearMiss

#: A function that returns the manifest of a collection, or None if it cannot be read.
ReadManifest = Callable[[str], Manifest | None]

# How many files of a kind are named.
_MOST_FILES = 3


def explain_inputs(
    near: NearMiss, mounts: Mapping[str, model.Mount], read: ReadManifest, *, is_past: bool
) -> NearMiss:
    """Return a near miss whose differences of inputs say what these are.

    Args:
        near: the near miss.
        mounts: the mounts of the request by target, as the user wrote them.
        read: returns the manifest of a collection, or None if it cannot be read.
        is_past: True for a request that was made before; names of collections may have changed since.
    """
    places = {it.where for it in near.differences}

    def explained(difference: Difference) -> Difference:
        target = difference.where.removeprefix("mounts.").removesuffix(".digest")
        is_digest = difference.where == f"mounts.{target}.digest" and target in mounts
        # the digests of a file and of a collection have nothing in common
        if not is_digest or f"mounts.{target}.kind" in places:
            return difference
        whose = f"here that of {_describe(mounts[target], is_past=is_past)}"
        changes = _changes(difference, target, mounts[target], read)
        return attrs.evolve(difference, explanation="; ".join([whose, *changes]))

    return attrs.evolve(near, differences=tuple(map(explained, near.differences)))


def _changes(difference: Difference, target: str, mount: model.Mount, read: ReadManifest) -> Iterable[str]:
    if isinstance(mount, model.Collection | model.Output) and target != model.STDIN:
        return _file_changes(*(read(json.loads(it)) for it in (difference.wanted, difference.found)))
    return ()


def _describe(mount: model.Mount, *, is_past: bool) -> str:
    """Return what a mount's digest is of, in the words of the request."""
    match mount:
        case model.Collection(is_new=True):
            return "an empty directory"
        case model.Collection():
            return _inside("directory", mount.path, _collection(mount, is_past=is_past))
        case model.CollectionFile():
            return _inside("file", mount.path, _collection(mount, is_past=is_past))
        case model.Output():
            return _inside("path", mount.path, f"the output of request {mount.request}")
        case model.Text() | model.Json():
            return "the content in the request"
    return "the file's content"


def _collection(mount: model.Collection | model.CollectionFile, *, is_past: bool) -> str:
    if mount.name is None:
        return f"the collection {mount.digest}"
    return f"the collection that was {mount.name} at the time" if is_past else f"the collection {mount.name}"


def _inside(kind: str, path: str, whole: str) -> str:
    return whole if path == "/" else f"the {kind} {path} of {whole}"


def _file_changes(wanted: Manifest | None, found: Manifest | None) -> Iterator[str]:
    """Yield which files differ between two collections; nothing if one cannot be read."""
    if wanted is None or found is None:
        return
    for what, paths in (
        ("changed", [it for it in sorted(wanted.keys() & found.keys()) if wanted[it] != found[it]]),
        ("only here", sorted(wanted.keys() - found.keys())),
        ("only there", sorted(found.keys() - wanted.keys())),
    ):
        if paths:
            yield f"{what}: {_shortened(paths)}"


def _shortened(paths: Sequence[str]) -> str:
    """Return some paths in a list.

    >>> _shortened(["a", "b"]), _shortened(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    left = len(paths) - _MOST_FILES
    return ", ".join(paths[:_MOST_FILES]) + (f" and {left} more" if left > 0 else "")
