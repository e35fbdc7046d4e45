"""Implements `jpsi fake`: runs a program with the commands of a fake batch system on its PATH.

The fake ends with the program. A companion process keeps it up, as the process itself becomes the program.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import jpsi
from jpsi_testing.fake import FakeScheduler, find_fake, on_path

from .. import exit_codes, messages
from ..output import quantities
from .companion_process import start_companion_process


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
    with (
        tempfile.TemporaryDirectory(prefix="jpsi-fake-", ignore_cleanup_errors=True) as state,
        scheduler() as running,
        on_path(system, running),
    ):
        yield {"PATH": os.environ["PATH"], "XDG_STATE_HOME": state}


def _exec_program(program: Sequence[str]) -> int:
    # Python ignores these signals, and the program would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], list(program))  # noqa: S606  no shell is wanted
    except OSError as e:
        messages.error(f"{program[0]} cannot be run: {e.strerror}")
        return exit_codes.NOT_FOUND if isinstance(e, FileNotFoundError) else exit_codes.NOT_EXECUTABLE
