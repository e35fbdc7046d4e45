"""Puts the commands of a fake batch system on PATH, for this process and its child processes.

`jpsi fake`, the fixture `fake_commands` and the conformance tests use it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from jpsi.plugin import line, word
from jpsi_engine import check_way, make_directory
from jpsi_testing.fake import client
from jpsi_testing.fake.callers import Port
from jpsi_testing.fake.commands import FakeSystem, find_fake
from jpsi_testing.fake.scheduler import FakeScheduler
from jpsi_testing.fake.server import CommandServer

# The largest length of a socket's path: sun_path has 108 bytes on Linux and 104 on other systems.
_MAX_SOCKET_LENGTH = 100
# The name of the server's socket in the private directory.
_SOCKET = "socket"
# The lines of a command in bash, which alone among shells can connect to a port. Names begin with jpsi_, so
# that they change no variable that the caller has exported.
_CALL = r"""# `command`, as a shell in POSIX mode would end otherwise
if { command exec {jpsi_connection}<>"/dev/tcp/127.0.0.1/$jpsi_port"; } 2>/dev/null; then
  jpsi_server=$jpsi_connection
  # the server may end at this moment
  trap '' PIPE
  { printf '%s\n' "$jpsi_script_secret $$ $# $jpsi_name" >&"$jpsi_connection"; } 2>/dev/null
  trap - PIPE
  # TMOUT would be a timeout
  TMOUT='' read -r -u "$jpsi_connection" jpsi_secret jpsi_code jpsi_stdout jpsi_stderr 2>/dev/null
  if [ "$jpsi_secret $jpsi_code" != "$jpsi_server_secret client" ]; then
    if [ "$jpsi_secret" = "$jpsi_server_secret" ] &&
      TMOUT='' read -r -u "$jpsi_connection" -N "$jpsi_stdout" jpsi_stdout 2>/dev/null &&
      TMOUT='' read -r -u "$jpsi_connection" -N "$jpsi_stderr" jpsi_stderr 2>/dev/null; then
      # each ends with a point, as older versions of bash cannot read nothing
      printf %s "${jpsi_stdout%.}" && printf %s "${jpsi_stderr%.}" >&2 || exit
      exit "$jpsi_code"
    fi
    # the server has ended, as the program says if the connection is closed
    exec {jpsi_connection}>&-
  fi
fi
"""


@contextlib.contextmanager
def on_path(fake_system: str | FakeSystem, scheduler: FakeScheduler | None = None) -> Iterator[FakeScheduler]:
    """Put the commands of a fake on PATH within the block, and yield their scheduler.

    Without a scheduler it makes one, in real time and with real processes, which it kills at the end of the
    block. A command that hangs does so until it is killed, or until the end of the block.

    Args:
        fake_system: the functions that answer commands, or the name under which a backend offers them.
        scheduler: the batch system; it stays open.

    Raises:
        PluginError: no backend offers a fake of this name.
    """
    system_fake = find_fake(fake_system)
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            scheduler = stack.enter_context(FakeScheduler())
        stack.enter_context(_first_on_path(stack.enter_context(command_folder(system_fake, scheduler))))
        yield scheduler


@contextlib.contextmanager
def command_folder(
    fake_system: FakeSystem, scheduler: FakeScheduler, on_hang: Callable[[], None] | None = None
) -> Iterator[Path]:
    """Write the commands of a fake into a directory within the block, and yield it, for PATH.

    Args:
        fake_system: the functions that answer commands.
        scheduler: the batch system.
        on_hang: called when a command hangs, which then fails at once; None lets it hang.
    """
    with contextlib.ExitStack() as stack:
        folder = _private_folder()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        scheduler.faults.know(fake_system.commands)
        server = CommandServer(folder / _SOCKET, scheduler, fake_system, on_hang, folder=str(folder / "bin"))
        stack.callback(server.close)
        make_directory(str(folder / "bin"))
        program = [client.__file__, str(folder / _SOCKET)]
        write_commands(folder / "bin", fake_system.commands, program, server.port)
        yield folder / "bin"


def _private_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="jpsi-fake-"))
    if len(os.fsencode(folder / _SOCKET)) > _MAX_SOCKET_LENGTH:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="jpsi-fake-", dir="/tmp"))
    # a user who can write to a directory above could put other commands on PATH
    check_way(folder.parent, "the directory for temporary files")
    # whatever the umask, and before any file is in it
    folder.chmod(0o700)
    return folder


def write_commands(
    folder: Path, names: Iterable[str], program: Sequence[str], port: Port | None = None
) -> None:
    """Write commands into a directory.

    Args:
        folder: the directory; only the user can read the files in it.
        names: the names of the commands.
        program: the file with the program in Python that each runs, and the arguments that come before the
            command's name and its arguments.
        port: the port of a server that scripts call without the program; the program's last argument is then
            the server's socket, or the number of a connection to it.
    """
    # dash would not pass on functions that bash exports; with -p, bash itself uses neither them nor BASH_ENV
    bash = shutil.which("bash")
    shell = "/bin/sh" if bash is None else f"{bash} -p"
    for name in names:
        # another process may run the command at this moment, so it is replaced as a whole
        file = folder / f".{name}.{os.getpid()}"
        # a shell, as a `#!` line could hold neither a blank nor a long path to the interpreter
        words = [sys.executable, "-ISE", *program]
        text = _run_line(words, name) if bash is None or port is None else _call_lines(words, name, port)
        file.write_text(f"#!{shell}\n{text}")
        file.chmod(0o700)
        file.replace(folder / name)


def _run_line(program: Sequence[str], name: str) -> str:
    return f'{line("exec", *program, name)} "$@"\n'


def _call_lines(program: Sequence[str], name: str, port: Port) -> str:
    """Return the lines that call the server, and become the program only where that is needed."""
    *words, path = program
    variables = {
        "jpsi_name": name,
        "jpsi_port": str(port.number),
        "jpsi_script_secret": port.script_secret,
        "jpsi_server": path,
        "jpsi_server_secret": port.server_secret,
    }
    settings = "".join(f"{variable}={word(value)}\n" for variable, value in variables.items())
    return f'{settings}{_CALL}{line("exec", *words)} "$jpsi_server" "$jpsi_name" "$@"\n'


@contextlib.contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    old_path = os.environ.get("PATH")
    os.environ["PATH"] = str(folder) + (os.pathsep + old_path if old_path else "")
    try:
        yield
    finally:
        if old_path is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = old_path
