"""Puts the commands of a fake batch system on PATH, for this process and those that it starts."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from jpsi.plugin import line
from jpsi.plugin.kit import check_way, make_directory
from jpsi_testing.fake import client
from jpsi_testing.fake.registry import Dialect
from jpsi_testing.fake.registry import dialect as dialect_of
from jpsi_testing.fake.scheduler import FakeScheduler
from jpsi_testing.fake.server import CommandServer

# sun_path has 108 bytes on Linux and 104 elsewhere
_SOCKET_LENGTH = 100
_SOCKET = "socket"


@contextlib.contextmanager
def on_path(dialect: str | Dialect, scheduler: FakeScheduler | None = None) -> Iterator[FakeScheduler]:
    """Within the block, the commands of this dialect are on PATH and talk to the scheduler, which is yielded.

    Without a scheduler it is a new one, in real time and with real processes; what still runs at the end is
    killed then. A command that hangs does so until it is killed, or until the end of the block.

    Args:
        dialect: what the commands say, or the name under which a backend offers that.
        scheduler: the batch system; it stays open.

    Raises:
        PluginError: no backend offers a dialect of this name.
    """
    spoken = dialect_of(dialect) if isinstance(dialect, str) else dialect
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            scheduler = stack.enter_context(FakeScheduler())
        stack.enter_context(_first_on_path(stack.enter_context(command_folder(spoken, scheduler))))
        yield scheduler


@contextlib.contextmanager
def command_folder(
    dialect: Dialect, scheduler: FakeScheduler, on_hang: Callable[[], None] | None = None
) -> Iterator[Path]:
    """Within the block, the commands of a dialect are in the folder that is yielded, for a PATH to name.

    Args:
        dialect: what the commands say.
        scheduler: the batch system.
        on_hang: called when a command hangs, which then fails at once; None has it hang.
    """
    with contextlib.ExitStack() as stack:
        folder = _private_folder()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        scheduler.faults.know(dialect.commands)
        server = CommandServer(folder / _SOCKET, scheduler, dialect, on_hang, folder=str(folder / "bin"))
        stack.callback(server.close)
        _write_commands(folder / "bin", dialect.commands, folder / _SOCKET)
        yield folder / "bin"


def _private_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="jpsi-fake-"))
    if len(os.fsencode(folder / _SOCKET)) > _SOCKET_LENGTH:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="jpsi-fake-", dir="/tmp"))
    # whoever can change what leads there can put other commands on PATH
    check_way(folder.parent, "the directory for temporary files")
    # whatever the umask, and before anything is in it
    folder.chmod(0o700)
    return folder


def _write_commands(folder: Path, names: Iterable[str], socket: Path) -> None:
    make_directory(str(folder))
    for name in names:
        file = folder / name
        # sh, as a `#!` line could neither hold a blank nor a long path to the interpreter
        call = line("exec", sys.executable, "-ISE", client.__file__, str(socket), name)
        file.write_text(f'#!/bin/sh\n{call} "$@"\n')
        file.chmod(0o700)


@contextlib.contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    before = os.environ.get("PATH")
    os.environ["PATH"] = str(folder) + (os.pathsep + before if before else "")
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before
