"""The root of a spool: what it is called, whose it is, and which version of jpsi wrote there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from jpsi.engine.files import make_private, write
from jpsi.model.errors import ConfigError

#: The version of the layout that docs/reference/spool.md draws.
LAYOUT = 1


def folder_name(executor: str, target: str) -> str:
    """The name of the folder for one executor on one target.

    >>> folder_name("slurm", ""), folder_name("slurm", "ssh://me@big")
    ('slurm', 'slurm@ssh%3a%2f%2fme%40big')
    """
    if not target:
        return executor
    return f"{executor}@" + re.sub(r"[^A-Za-z0-9_-]", lambda match: f"%{ord(match[0]):02x}", target)


def place_name(executor: str, target: str) -> str:
    """What people call one executor on one target, and ask for it by.

    >>> place_name("slurm", ""), place_name("slurm", "cluster"), place_name("slurm", "ssh://big")
    ('slurm', 'cluster', 'slurm@ssh://big')
    """
    return f"{executor}@{target}" if "://" in target else target or executor


def open_root(root: Path, folders: Iterable[str]) -> None:
    """Make the root and the folders in it, or check that they are what they must be.

    Raises:
        ConfigError: a newer jpsi wrote here, or the root belongs to somebody else.
        OSError: the directories cannot be made.
    """
    for path in (root, *map(Path, folders)):
        make_private(path)
    owner = root.stat()
    if owner.st_uid != os.geteuid() or owner.st_mode & 0o022:
        msg = (
            f"the work directory {root} belongs to or can be written by others; "
            "choose another work_directory or run: chmod go-w"
        )
        raise ConfigError(msg)
    layout = root / "layout"
    try:
        found = int(layout.read_text(encoding="ascii"))
    except FileNotFoundError:
        write(str(layout), f"{LAYOUT}\n".encode("ascii"))
        return
    except ValueError as e:
        msg = f"{layout} does not hold a layout version; is {root} jpsi's work directory?"
        raise ConfigError(msg) from e
    if found > LAYOUT:
        msg = f"{root} was written by a newer jpsi (layout {found}); upgrade jpsi-core"
        raise ConfigError(msg)
