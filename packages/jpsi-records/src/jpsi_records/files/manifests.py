"""Writes and reads manifests: the files of a directory and their digests, as one text.

A collection (a stored directory) is identified by the digest of its manifest. Equal directories have equal
texts at any time and place, so results that depend on them can be reused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import attrs

from ..model import canonical


@attrs.frozen(slots=True)
class Entry:
    """A file or a symbolic link in a manifest."""

    #: The digest of the content; empty for a link.
    digest: str
    size: int
    is_executable: bool = False
    #: The target of the link, inside the directory; None for a file.
    link: str | None = None


#: Entries by path relative to the directory. Empty directories are left out.
Manifest = Mapping[str, Entry]

EMPTY: Manifest = {}


def digest_of(content: bytes) -> str:
    """Return the digest of content."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def write_manifest(manifest: Manifest) -> str:
    """Return the text of a manifest; its digest is that of the collection."""
    entries = {
        path: {"link": it.link}
        if it.link is not None
        else {"digest": it.digest, "size": it.size, **({"executable": True} if it.is_executable else {})}
        for path, it in manifest.items()
    }
    return canonical({"v": 1, "entries": entries})


def read_manifest(text: str) -> Manifest:
    """Return the manifest in a text.

    >>> read_manifest(write_manifest({"a": Entry("sha256:0", 3, True)}))
    {'a': Entry(digest='sha256:0', size=3, is_executable=True, link=None)}
    """
    return {
        path: Entry(it.get("digest", ""), it.get("size", 0), it.get("executable", False), it.get("link"))
        for path, it in json.loads(text)["entries"].items()
    }


def collection_digest(manifest: Manifest) -> str:
    """Return the digest of the collection with this manifest."""
    return digest_of(write_manifest(manifest).encode())


def subdirectory(manifest: Manifest, path: str) -> Manifest | None:
    """Return the manifest of a subdirectory; None if it does not exist.

    >>> sorted(subdirectory({"a/b": Entry("", 0), "c": Entry("", 0)}, "/a"))
    ['b']
    """
    prefix = path.strip("/")
    if not prefix:
        return manifest
    inner = {at.removeprefix(f"{prefix}/"): it for at, it in manifest.items() if at.startswith(f"{prefix}/")}
    return inner or None
