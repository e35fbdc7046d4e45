"""Implements `jpsi fake`: runs a program with the commands of a fake batch system on its PATH.

The fake ends with the program. A companion process keeps it up, as the process itself becomes the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import jpsi
from jpsi_testing.fake import FakeScheduler, find_fake, on_path

from .. import exit_codes, messages
from ..output import quantities


def fake(
    system: str, program: Sequence[str], options: Mapping[str, str | None], *, has_accounting: bool
) -> int:
    """Replace this process by the program, with the commands of a fake batch system first on PATH.

    Returns only if that is not possible: the exit code, after an error message.
    """
    try:
        scheduler = partial(
            FakeScheduler,
            slots=int(_parse_option(options, "slots", quantities.parse_count, 4)),
            lag=_parse_option(options, "lag", _seconds, 0),
            keep=_parse_option(options, "keep", _seconds, 300),
            accounting=has_accounting,
        )
    except ValueError as e:
        messages.error(str(e))
        return exit_codes.USAGE
    try:
        find_fake(system)
        variables = start_companion_process(partial(_run_fake, system, scheduler))
    except jpsi.JpsiError as e:
        messages.error(str(e))
        return exit_codes.JPSI
    except OSError as e:
        messages.error(f"the fake {system} could not be started: {e}")
        return exit_codes.JPSI
    os.environ.update(variables)
    return _exec_program(program)


def _parse_option(
    options: Mapping[str, str | None], name: str, parse: Callable[[str], float], default: float
) -> float:
    """Return the value of an option; raise ValueError with a sentence if it cannot be read."""
    text = options[name]
    if text is None:
        return default
    try:
        return parse(text)
    except ValueError as e:
        msg = f"--{name}: {e}"
        raise ValueError(msg) from e


def _seconds(text: str) -> float:
    return jpsi.parse_duration(text).total_seconds()


@contextlib.contextmanager
def _run_fake(system: str, scheduler: Callable[[], FakeScheduler]) -> Iterator[dict[str, str]]:
    """Run a fake batch system; yield the variables by which programs find it.

    The state of jpsi has a directory of its own, so that commands about real jobs do not find those of the
    fake.
    """
    with tempfile.TemporaryDirectory(prefix="jpsi-fake-", ignore_cleanup_errors=True) as state:
        try:
            with scheduler() as running, on_path(system, running):
                yield {"PATH": os.environ["PATH"], "XDG_STATE_HOME": state}
        finally:
            _end_processes(state)


def _end_processes(state: str) -> None:
    """End jpsi's own processes that are left, such as one that submits a job again: they have no state now.

    Systems without /proc do not show which these are, and keep them.
    """
    mark, seconds_left = b"\0XDG_STATE_HOME=%s\0" % os.fsencode(state), _ENDING_SECONDS
    while seconds_left > 0 and (found := [it for it in Path("/proc").glob("[0-9]*") if _is_own(it, mark)]):
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(int(process.name), signal.SIGKILL)
        time.sleep(_INTERVAL_SECONDS)
        seconds_left -= _INTERVAL_SECONDS


def _is_own(process: Path, mark: bytes) -> bool:
    """Return True if a process is one of jpsi's, or runs a job, and has a variable of its environment."""
    try:
        command, environment = (
            process.joinpath("cmdline").read_bytes(),
            process.joinpath("environ").read_bytes(),
        )
    except OSError:
        return False
    return mark in b"\0%s" % environment and (b"jpsi" in command or b"\0JPSI_JOB_ID=" in environment)


def _exec_program(program: Sequence[str]) -> int:
    # Python ignores these signals, and the program would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], list(program))  # noqa: S606  no shell is wanted
    except OSError as e:
        messages.error(f"{program[0]} cannot be run: {e.strerror}")
        return exit_codes.NOT_FOUND if isinstance(e, FileNotFoundError) else exit_codes.NOT_EXECUTABLE


# The seconds between two looks at processes.
_INTERVAL_SECONDS = 0.2
# No killed process takes longer to end.
_ENDING_SECONDS = 5.0

#: Returns a context manager; the companion enters it at the start, and exits it once the original process
#: has ended. It yields environment variables for the program.
Work = Callable[[], AbstractContextManager[Mapping[str, str]]]


def start_companion_process(work: Work) -> dict[str, str]:
    """Start a companion process; return the variables that its work yields.

    Like `ssh-agent COMMAND`: the caller then replaces itself by the program (exec), with the same process id.
    So no process in between has to pass on signals, the terminal or an exit code. Call it while there is only
    one thread.

    Raises:
        OSError: `work` raised an OSError, or the companion ended at once.
    """
    reader, writer = os.pipe()
    original_pid = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setsid()
            # fork twice: the program may wait for all its children, and must not wait for this one
            if os.fork() == 0:
                _work_until_process_ends(original_pid, writer, work)
        except Exception:  # noqa: BLE001  the outermost fence of this process
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        reply = json.loads(pipe.read() or '{"failed": "it ended immediately"}')
    if "failed" in reply:
        raise OSError(reply["failed"])
    variables: dict[str, str] = reply["entered"]
    return variables


def _work_until_process_ends(pid: int, writer: int, work: Work) -> None:
    """Do the work until the process `pid` has ended."""
    # A copy of a descriptor here would keep the program's pipes open and its locks held.
    for descriptor in list(Path("/dev/fd").iterdir()):
        with contextlib.suppress(OSError):
            if int(descriptor.name) not in {0, 1, 2, writer}:
                os.close(int(descriptor.name))
    # Ignore SIGTERM: if all processes get it, clean up only after the program has ended.
    signal.signal(signal.SIGTERM, lambda *_: None)
    pidfd = _pidfd(pid)
    with os.fdopen(writer, "w", encoding="utf-8") as pipe, contextlib.ExitStack() as stack:
        try:
            entered = stack.enter_context(work())
        except OSError as e:
            json.dump({"failed": str(e)}, pipe)
            return
        _detach()
        json.dump({"entered": dict(entered)}, pipe)
        # The BrokenPipeError of close() ends the companion: the process `pid` was killed before it read the
        # pipe, and its id may belong to another process by now, for which it must not wait.
        pipe.close()
        _wait_for_exit(pid, pidfd)


def _detach() -> None:
    """Close the terminal or pipes of the original process, and leave its directory."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    os.chdir("/")


def _pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when a process ends; None if the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _wait_for_exit(pid: int, pidfd: int | None) -> None:
    if pidfd is not None:
        select.select([pidfd], [], [])
        return
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(_INTERVAL_SECONDS)
