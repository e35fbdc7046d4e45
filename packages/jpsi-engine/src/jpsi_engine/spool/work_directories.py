"""Finds the directories that hold spools: one per executor and target, and for processes one per machine.

The job store lists the jobs in all of them. It leaves out, with a warning, those that other users can change.
"""

from __future__ import annotations

import contextlib
import functools
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
    """A spool that was found in a work directory."""

    root: str
    #: The folder name that `folder_name` makes of the executor and the target.
    name: str
    #: The machine that runs the jobs as processes; None for jobs of a batch system.
    machine: str | None = None


def work_directory(configured: Path | None) -> Path:
    """Return the configured work directory, or the default."""
    return Path(configured or platformdirs.user_state_path("jpsi") / "work").expanduser().absolute()


def find_spools(directory: Path) -> Iterator[SpoolFolder]:
    """Yield the spools in a work directory, except those that other users can change.

    The function warns about a spool that it leaves out, as that may contain forged jobs.
    """
    found = list(_spools(directory))
    if not found and os.path.exists(directory):  # noqa: PTH110  it raises nothing
        # the warning for a spool in it would say so itself
        problem = ownership.refusal(directory, is_way=True)
        if problem is not None:
            _warn_once(f"the work directory {directory} is not safe to use: {problem}; or choose another")
    for it in found:
        problem = ownership.refusal(it.root)
        if problem is None:
            yield it
        else:
            _warn_once(f"the jobs in {it.root} are left out: {problem}")


@functools.cache
def _warn_once(message: str) -> None:
    # a program may list jobs again and again
    log.warning("%s", message)


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
