"""Which directories hold spools: one for each executor and target, and for processes each machine."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import platformdirs

from jpsi.plugin.engine import ownership

log = logging.getLogger(__name__)


@attrs.frozen(slots=True)
class SpoolFolder:
    """A spool that was found."""

    root: str
    #: As `folder_name` makes it of an executor and a target.
    name: str
    #: The machine whose processes its jobs are; None for jobs of a batch system.
    machine: str | None = None


def work_directory(configured: Path | None) -> Path:
    """The directory of this configuration, or of none."""
    return Path(configured or platformdirs.user_state_path("jpsi") / "work").expanduser().absolute()


def spools(directory: Path) -> Iterator[SpoolFolder]:
    """Yield the spools in a work directory, but none that others can change, as that may tell of anything."""
    found = list(_spools(directory))
    if not found and os.path.exists(directory):  # noqa: PTH110  it raises nothing
        # a spool in it says so itself
        why_not = ownership.refusal(directory, is_way=True)
        if why_not is not None:
            log.warning("the work directory %s is not safe to use: %s; or choose another", directory, why_not)
    for it in found:
        why_not = ownership.refusal(it.root)
        if why_not is None:
            yield it
        else:
            log.warning("the jobs in %s are left out: %s", it.root, why_not)


def _spools(directory: Path) -> Iterator[SpoolFolder]:
    for name in _names(str(directory)):
        root = f"{directory}/{name}"
        if _is_spool(root):
            yield SpoolFolder(root, name)
            continue
        for machine in _names(root):
            if _is_spool(f"{root}/{machine}"):
                yield SpoolFolder(f"{root}/{machine}", name, machine)


def _is_spool(root: str) -> bool:
    return os.path.isfile(f"{root}/layout")  # noqa: PTH113  text, as in the spool


def _names(directory: str) -> list[str]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        return sorted(os.listdir(directory))  # noqa: PTH208
    return []
