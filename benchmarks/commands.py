"""Measures the processor time of commands of `jpsi`, beside an interpreter that does nothing.

    ./dev benchmarks commands            medians of 15 turns
    ./dev benchmarks commands --rounds 5

The commands take turns, in a home directory without a configuration. The time is that of the command and of
all processes that it starts and waits for, such as the job of `jpsi run -- true`. `jpsi request ls` is
measured before and after something is recorded. Times are processor times, which depend less on the machine's
other load.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.discovery import processor_seconds
from benchmarks.side_by_side import interleave, machine

_REFERENCE = "python -c pass"
#: The commands, and the most milliseconds over the reference that each is to take.
_COMMANDS: Mapping[str, tuple[Sequence[str], str]] = {
    _REFERENCE: (["-c", "pass"], ""),
    "jpsi run -- true": (["-m", "jpsi_cli", "run", "--", "true"], "120"),
    "jpsi ls": (["-m", "jpsi_cli", "ls"], "90"),
    "jpsi plugins": (["-m", "jpsi_cli", "plugins"], "120"),
    "jpsi request ls": (["-m", "jpsi_cli", "request", "ls"], "150"),
    "jpsi request ls, of one request": (["-m", "jpsi_cli", "request", "ls", "--records", "records"], "150"),
}
_REQUEST = 'command: ["true"]\n'


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    print(
        f"{machine()}\n\n| command | `{_REFERENCE}` | CPU, ms | over that | to reach |\n|---|--:|--:|--:|--:|"
    )
    measure(parser.parse_args().rounds, lambda *cells: print(f"| {' | '.join(cells)} |"))


def measure(rounds: int, row: Callable[[str, str, str, str, str], None]) -> None:
    """Call `row` for each command with its cells: the command, the reference, figures, and the goal."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "request.yaml").write_text(_REQUEST, encoding="ascii")
        _run(place, ["-m", "jpsi_cli", "request", "submit", "request.yaml", "--records", "records"])
        for words, _ in _COMMANDS.values():
            _run(place, words)  # compiles
        measures = {name: lambda words=words: _run(place, words) for name, (words, _) in _COMMANDS.items()}
        found = interleave(rounds, measures)
    bare = found.pop(_REFERENCE)
    for name, seconds in found.items():
        over = f"{1000 * (statistics.median(seconds) - statistics.median(bare)):.0f}"
        row(f"`{name}`, CPU ms", _spread(bare), _spread(seconds), over, _COMMANDS[name][1])


def _spread(seconds: Sequence[float]) -> str:
    median, low, high = (1000 * it for it in (statistics.median(seconds), min(seconds), max(seconds)))
    return f"{median:.0f} ({low:.0f} to {high:.0f})"


def _run(home: str, words: Sequence[str]) -> float:
    """Return the processor time of a command in seconds, in a home directory of its own."""
    variables = {f"XDG_{kind}_HOME": f"{home}/{kind}" for kind in ("CACHE", "CONFIG", "STATE")}
    environment = {**os.environ, **variables, "HOME": home}
    # as after an installation: modules are compiled once
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = processor_seconds()
    subprocess.run([sys.executable, *words], check=True, cwd=home, env=environment, stdout=subprocess.PIPE)
    return processor_seconds() - begin


if __name__ == "__main__":
    main()
