"""Stores what deferred jobs wait for: once for all that were deferred together.

Two hundred jobs that wait for two hundred others have 40,000 dependencies. Each job's folder has a link to
the one file with them, so that it is complete by itself. The intent says that there is such a file.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jpsi.plugin import Dependency, JobAttributes, JobSpec
from jpsi.plugin.engine import serialization
from jpsi_engine.host import open_private, read_text, write_all, write_new

#: The name of the file in the folder of a job, and the key of intents that says that there is one.
SHARED = "after"


def store_dependencies(path: str, dependencies: Iterable[Dependency]) -> None:
    """Write the file that jobs share, and flush it to disk."""
    spec = JobSpec(attributes=JobAttributes(after=list(dependencies)))
    fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(fd, json.dumps(serialization.encode(spec)["attributes"]["after"]).encode("ascii"))
        os.fsync(fd)
    finally:
        os.close(fd)


def share_dependencies(path: str, folder: str) -> None:
    """Link the file with dependencies to the folder of a job."""
    try:
        os.link(path, f"{folder}/{SHARED}")
    except OSError:
        # a file of ext4 has at most 65,000 links
        write_new(f"{folder}/{SHARED}", read_text(path).encode("ascii"))


def decode_request(folder: str, intent: Mapping[str, Any]) -> JobSpec:
    """Return the spec in an intent, with the dependencies that its job shares with others.

    No job that has to wait seems to have nothing to wait for: if they cannot be read, this raises one of
    `DAMAGE`, or OSError.
    """
    spec = serialization.decode(intent["spec"])
    if intent.get(SHARED):
        try:
            shared = decode_dependencies(read_text(f"{folder}/{SHARED}"))
        except FileNotFoundError as e:
            raise ValueError(folder) from e
        spec.attributes.after = [*(spec.attributes.after or ()), *shared]
    return spec


# all jobs of an array have the same text, and several arrays are rarely read together
@functools.lru_cache(maxsize=8)
def decode_dependencies(text: str) -> Sequence[Dependency]:
    """Return the dependencies in the text of a file that jobs share."""
    found = json.loads(text)
    if not isinstance(found, list) or not found:
        raise ValueError(text)
    after = serialization.decode({"attributes": {"after": found}}).attributes.after
    return tuple(Dependency.of(it) for it in after or ())
