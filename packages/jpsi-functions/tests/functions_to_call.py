"""Functions that tests call in jobs; the jobs import them from here."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

# How long a call waits for a test: each test ends it much earlier.
PATIENCE = 120


def square(number: int) -> int:
    return number * number


def divide(numerator: int, denominator: int) -> float:
    return numerator / denominator


def where() -> str:
    return str(Path.cwd())


def slow(started: str) -> None:
    """Say that the call runs, and run until it is killed."""
    Path(started).touch()
    time.sleep(PATIENCE)


def wait_for(gate: str, value: int) -> int:
    """Return the value once a file is there."""
    end = time.monotonic() + PATIENCE
    while not Path(gate).exists() and time.monotonic() < end:
        time.sleep(0.02)
    return value


def count(file: str, value: int) -> int:
    """Return the value, and leave a line for each time that the call ran."""
    with Path(file).open("a", encoding="utf-8") as lines:
        lines.write(f"{value}\n")
    return value


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(code: int) -> NoReturn:
    sys.stderr.write("about to leave\n")
    sys.stderr.flush()
    os._exit(code)


def leave_at(number: int, at: int) -> int:
    if number == at:
        os._exit(3)
    return number


def call_sys_exit() -> NoReturn:
    sys.exit("enough")


class StubbornError(Exception):
    """Cannot be pickled, and cannot be shown."""

    def __init__(self, text: str, detail: int) -> None:
        super().__init__(text)

    def __reduce__(self) -> str:
        msg = "not this one"
        raise TypeError(msg)


class PickyError(Exception):
    """Can be pickled, but not unpickled: its arguments are not those of `__init__`."""

    def __init__(self, text: str, detail: int) -> None:
        super().__init__(text)


def raise_stubborn() -> NoReturn:
    raise StubbornError("a stubborn one", 7)


def raise_picky() -> NoReturn:
    raise PickyError("a picky one", 7)


def print_megabytes(count: int) -> int:
    for _ in range(count):
        sys.stdout.write("x" * 2**20 + "\n")
    return count


def fork() -> int:
    """Return in the parent and in a child."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return os.getpid()


def fill_the_disk() -> bytes:
    """Return more than the process may write."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))
    return bytes(2**20)


def return_a_lock() -> object:
    return threading.Lock()


class Training:
    """Counts to a number of steps, two in each job; then it waits for its checkpoint."""

    def __init__(self, steps: int, done: int = 0) -> None:
        self.steps = steps
        self.done = done

    def __call__(self, log: str) -> int:
        for _ in range(2):
            if self.done == self.steps:
                return self.done
            count(log, self.done)
            self.done += 1
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(PATIENCE)
        raise AssertionError

    def checkpoint(self, log: str) -> Following:
        return Following(Training(self.steps, self.done), log)


class Following:
    """The next call, as submitit's DelayedSubmission has it."""

    def __init__(self, function: Training, *args: str) -> None:
        self.function, self.args, self.kwargs = function, args, {}


class Patient:
    """Waits until its walltime is nearly over, and says then that it is ready."""

    def __call__(self) -> str:
        time.sleep(PATIENCE)
        raise AssertionError

    def checkpoint(self) -> object:
        return ready


def ready() -> str:
    return "ready"


class Preempting:
    """An argument of a job that the batch system preempts while the job unpickles it."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return preempt, (signal.SIGUSR1,)


def preempt(number: int) -> int:
    os.kill(os.getpid(), number)
    return number


class Loading(Patient):
    """Waits for its checkpoint, whatever its argument."""

    def __call__(self, _: object) -> str:
        return super().__call__()

    def checkpoint(self, _: object) -> object:
        return ready


class Stubborn(Patient):
    def checkpoint(self) -> object:
        raise ValueError("no checkpoint")


class Slacker:
    """Waits for its checkpoint, and works after that: for submitit."""

    def __call__(self, *, slack: bool) -> str:
        if slack:
            time.sleep(PATIENCE)
        return "worked hard"

    def checkpoint(self, *, slack: bool) -> object:
        import submitit  # noqa: PLC0415  the jobs of other tests do without it

        return submitit.helpers.DelayedSubmission(self, slack=False)


class Preempted(Slacker):
    """Is preempted while it slacks, and only then."""

    def __call__(self, *, slack: bool) -> str:
        if slack:
            os.kill(os.getpid(), signal.SIGUSR2)
        return super().__call__(slack=slack)
