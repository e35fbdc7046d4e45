"""`python -m jpsi.fakes NAME -- PROGRAM ARGUMENTS…`: run a program with a fake batch system on PATH."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence

from jpsi.fakes.path import on_path
from jpsi.fakes.scheduler import FakeScheduler
from jpsi.model.errors import PluginError

_CANNOT = 125
_NOT_FOUND = 127
_SIGNAL = 128


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code, 128 + n after signal n, 127 if it is not there."""
    parser = argparse.ArgumentParser(
        prog="python -m jpsi.fakes",
        usage="%(prog)s [--slots N] NAME -- PROGRAM [ARGUMENT ...]",
        description="Run a program with the commands of a fake batch system on PATH. "
        "Its jobs are processes of this machine; those that outlast the program are killed.",
    )
    parser.add_argument("--slots", type=int, default=4, metavar="N", help="how many jobs run at a time (4)")
    parser.add_argument("name", metavar="NAME", help="the batch system, as its backend calls it: slurm, ...")
    parser.add_argument("program", nargs="+", metavar="PROGRAM", help="what to run")
    options = parser.parse_args(arguments)
    try:
        with FakeScheduler(slots=options.slots) as scheduler, on_path(options.name, scheduler):
            return _run(options.program)
    except PluginError as e:
        parser.exit(_CANNOT, f"{parser.prog}: {e}\n")


def _run(program: list[str]) -> int:
    try:
        process = subprocess.Popen(program)  # noqa: S603  running it is what was asked for
    except OSError as e:
        sys.stderr.write(f"{program[0]} cannot be run: {e.strerror}\n")
        return _NOT_FOUND
    # Ctrl-C is for the program, which hears it too
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else _SIGNAL - code


if __name__ == "__main__":
    sys.exit(main())
