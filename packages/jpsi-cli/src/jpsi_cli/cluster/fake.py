"""`jpsi fake`: a batch system that is not there, for as long as a program runs."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import jpsi
from jpsi_testing.fake import FakeScheduler, dialect, on_path

from .. import exit_codes, messages
from ..output import quantities
from .sidecar import accompany


def fake(
    system: str, program: Sequence[str], given: Mapping[str, str | None], *, has_accounting: bool
) -> int:
    """Become the program, with the commands of a fake batch system first on PATH.

    Returns only if that was not possible: the exit code; why is told in a sentence.
    """
    try:
        scheduler = partial(
            FakeScheduler,
            slots=int(_read(given, "slots", quantities.count, 4)),
            lag=_read(given, "lag", _seconds, 0),
            keep=_read(given, "keep", _seconds, 300),
            accounting=has_accounting,
        )
    except ValueError as e:
        messages.error(str(e))
        return exit_codes.USAGE
    try:
        dialect(system)
        variables = accompany(partial(_playing, system, scheduler))
    except jpsi.JpsiError as e:
        messages.error(str(e))
        return exit_codes.JPSI
    except OSError as e:
        messages.error(f"the fake {system} could not be started: {e}")
        return exit_codes.JPSI
    os.environ.update(variables)
    return _become(program)


def _read(given: Mapping[str, str | None], name: str, read: Callable[[str], float], default: float) -> float:
    """The value of an option; a mistake is a ValueError with a sentence."""
    text = given[name]
    if text is None:
        return default
    try:
        return read(text)
    except ValueError as e:
        msg = f"--{name}: {e}"
        raise ValueError(msg) from e


def _seconds(text: str) -> float:
    return quantities.duration(text).total_seconds()


@contextlib.contextmanager
def _playing(system: str, scheduler: Callable[[], FakeScheduler]) -> Iterator[dict[str, str]]:
    """Play a batch system; yields the variables by which programs find it.

    What jpsi keeps of the jobs must not be found by somebody who looks for those of the real system.
    """
    with (
        tempfile.TemporaryDirectory(prefix="jpsi-fake-", ignore_cleanup_errors=True) as state,
        scheduler() as playing,
        on_path(system, playing),
    ):
        yield {"PATH": os.environ["PATH"], "XDG_STATE_HOME": state}


def _become(program: Sequence[str]) -> int:
    # Python ignores these, and what is ignored stays so in the program.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], list(program))  # noqa: S606  no shell is wanted
    except OSError as e:
        messages.error(f"{program[0]} cannot be run: {e.strerror}")
        return exit_codes.NOT_FOUND if isinstance(e, FileNotFoundError) else exit_codes.NOT_EXECUTABLE
