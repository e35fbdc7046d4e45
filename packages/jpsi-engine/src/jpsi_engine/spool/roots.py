"""Names, makes and checks the root of a spool: its owner, and the version of jpsi that wrote it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from jpsi.plugin import ConfigError
from jpsi.plugin.engine import ownership
from jpsi_engine import host

#: The version of the layout; docs/reference/spool.md draws it.
LAYOUT = 2
#: The version of a root without anything that an older jpsi would misunderstand, and that from which on jobs
#: may be submitted again after an end.
_FIRST_LAYOUT, RETRY_LAYOUT = 1, 2


def folder_name(executor: str, target: str) -> str:
    """Return the name of the folder for one executor on one target.

    >>> folder_name("slurm", ""), folder_name("slurm", "ssh://me@big")
    ('slurm', 'slurm@ssh%3a%2f%2fme%40big')
    """
    if not target:
        return executor
    return f"{executor}@" + re.sub(r"[^A-Za-z0-9_-]", lambda match: f"%{ord(match[0]):02x}", target)


def target_name(executor: str, target: str) -> str:
    """Return the name by which users ask for one executor on one target.

    >>> target_name("slurm", ""), target_name("slurm", "cluster"), target_name("slurm", "ssh://big")
    ('slurm', 'cluster', 'slurm@ssh://big')
    """
    return f"{executor}@{target}" if "://" in target else target or executor


#: The name of a root in messages, which end with the advice to choose another.
WORK_DIRECTORY = "the work directory"


class Root:
    """The root of a spool and the folders in it, which are checked each time before they are used.

    Any thread may call its methods.

    Args:
        root: the path of the root.
        folders: the paths of the folders in it.
    """

    def __init__(self, root: str, folders: Sequence[str]) -> None:
        self._root = root
        self._folders = folders
        #: The paths that were found safe, with their identities: the directories that lead to the root, and
        #: the folders.
        self._checked: tuple[tuple[str, tuple[int, ...] | None], ...] = ()

    def open(self) -> None:
        """Make the root and the folders in it, or check those that exist.

        Raises:
            ConfigError: a newer jpsi wrote this spool, or other users can change the root, its contents or a
                directory that leads to it.
            OSError: the directories cannot be made.
        """
        is_new = not os.path.lexists(self._root)
        host.make_private_directory(self._root, WORK_DIRECTORY)
        if is_new:
            host.shed_default_acl(self._root)
        for folder in self._folders:
            host.make_directories(folder)
        self._check_all()
        _check_layout(Path(self._root))

    def check(self) -> None:
        """Raise unless the root is safe to use; this takes some microseconds if nothing has changed.

        Raises:
            ConfigError: other users can change the root, its contents or a directory that leads to it.
            FileNotFoundError: there is no root.
            OSError: the root cannot be inspected.
        """
        if not self._checked or any(_identity(path) != identity for path, identity in self._checked):
            self._check_all()

    def require(self, version: int) -> None:
        """Record that only a jpsi that knows this version of the layout understands the root."""
        path = f"{self._root}/layout"
        if int(host.read_text(path)) < version:
            host.write(path, f"{version}\n".encode("ascii"))

    def _check_all(self) -> None:
        steps = [(step.path, _file_identity(step.status)) for step in ownership.walk(self._root)]
        host.check_private_directory(self._root, WORK_DIRECTORY)
        for folder in self._folders:
            # a missing folder is made again by the method that needs it
            with contextlib.suppress(FileNotFoundError):
                host.check_directory_here(folder, WORK_DIRECTORY)
        self._checked = (*steps, *((folder, _identity(folder)) for folder in self._folders))


def _identity(path: str) -> tuple[int, ...] | None:
    try:
        return _file_identity(ownership.look(path))
    except FileNotFoundError:
        return None


def _check_layout(root: Path) -> None:
    layout = root / "layout"
    try:
        version = int(layout.read_text(encoding="ascii"))
    except FileNotFoundError:
        host.write(str(layout), f"{_FIRST_LAYOUT}\n".encode("ascii"))
        return
    except ValueError as e:
        raise ConfigError(f"{layout} does not hold a layout version; is {root} jpsi's work directory?") from e
    if version > LAYOUT:
        raise ConfigError(f"{root} was written by a newer jpsi (layout {version}); upgrade jpsi-core")


def _file_identity(status: os.stat_result) -> tuple[int, ...]:
    """Return values that stay equal while the same file keeps its owner and mode."""
    return (status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid)
