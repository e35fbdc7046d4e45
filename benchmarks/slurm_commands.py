"""The commands of a real or fake Slurm, for measurements, and counters of their calls."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

#: The commands that are counted.
COMMANDS = ("sbatch", "squeue", "sacct", "scontrol", "scancel")
_POLL_SECONDS = 0.5


@attrs.frozen(slots=True)
class Call:
    """A call of a command, at a time in seconds since 1970."""

    time: float
    command: str


class Calls:
    """The calls that the wrappers of commands have noted in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def until(self, end: float, begin: float = 0.0) -> list[Call]:
        """Return the calls between two times."""
        lines = self._file.read_text(encoding="ascii").splitlines() if self._file.exists() else []
        calls = [Call(float(time), command) for time, command in map(str.split, lines)]
        return [call for call in calls if begin <= call.time <= end]


@contextlib.contextmanager
def counted() -> Iterator[Calls]:
    """Count the calls of commands by this process and its child processes within the block."""
    with tempfile.TemporaryDirectory() as place:
        file, commands, before = Path(place, "calls"), Path(place, "bin"), os.environ["PATH"]
        commands.mkdir()
        for name in COMMANDS:
            wrapper = commands / name
            wrapper.write_text(f'#!/bin/sh\ndate "+%s.%N {name}" >>{file}\nexec {shutil.which(name)} "$@"\n')
            wrapper.chmod(0o755)
        os.environ["PATH"] = f"{commands}:{before}"
        try:
            yield Calls(file)
        finally:
            os.environ["PATH"] = before


def tally(counts: Mapping[str, float]) -> str:
    """Return a text with the number of calls of each command.

    >>> tally({"squeue": 119.6, "sbatch": 1000})
    '1,000 sbatch, 120 squeue'
    """
    return ", ".join(f"{round(counts[name]):,} {name}" for name in COMMANDS if name in counts) or "none"


def is_local() -> bool:
    """Return True if a Slurm answers."""
    if shutil.which("sbatch") is None:
        return False
    return subprocess.run(["squeue", "-h", "--me"], capture_output=True, check=False).returncode == 0


def cancel_all(name: str) -> None:
    """Cancel all jobs of this name, and wait until they are gone."""
    subprocess.run(["scancel", "--quiet", f"--name={name}"], capture_output=True, check=False)
    drain(name)


def drain(name: str) -> None:
    """Wait until no job of this name waits or runs."""
    while subprocess.run(["squeue", "-h", f"--name={name}"], capture_output=True, check=True).stdout.strip():
        time.sleep(_POLL_SECONDS)
