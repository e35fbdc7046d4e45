"""Measures short jobs on a real Slurm: jpsi with and without inotify, and psij-python, side by side.

    ci/slurm/up                       on a machine without a Slurm, as root
    ./dev benchmarks slurm            the whole table, about five minutes
    ./dev benchmarks slurm --quick    smaller numbers, to see that it works

Both libraries have their default configuration. State directories are on a tmpfs unless `--directory` says
otherwise. Figures of different machines or runs do not compare.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

from benchmarks import ending
from benchmarks.libraries import installed
from benchmarks.side_by_side import machine, percentile, run_measurement
from benchmarks.slurm_commands import is_local, tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    parser.add_argument("--directory", help="where state directories go; the default is a tmpfs")
    arguments = parser.parse_args()
    if not is_local():
        sys.exit("no Slurm answers here; ci/slurm/up starts one")
    table(quick=arguments.quick, directory=arguments.directory)


def table(*, quick: bool, directory: str | None) -> None:
    version = subprocess.run(["sbatch", "--version"], capture_output=True, text=True, check=True).stdout
    print(f"{version.strip()}, {machine()}\n")
    count = 50 if quick else 1000
    print(f"| {count} short jobs | exit to callback p50 / p95 / p99 s | lasting s | queries |")
    runs = [(name, name, True) for name in installed()]
    for name, title, has_inotify in [*runs, ("jpsi", "jpsi without inotify", False)]:
        found = run_measurement(directory, ending.on_slurm, name, count, has_inotify)
        cells = " / ".join(f"{percentile(found['latencies'], percent):.3f}" for percent in (50, 95, 99))
        print(f"| {title} | {cells} | {found['lasting']:.0f} | {format_calls(found['calls'])} |", flush=True)


def format_calls(calls: Sequence[tuple[float, str]]) -> str:
    """Return the number of queries, and the shortest time between those of squeue.

    >>> format_calls([(0.0, "squeue"), (1.0, "sbatch"), (10.0, "squeue")])
    '2 squeue, at least 10.0 s apart'
    """
    moments = [moment for moment, command in calls if command == "squeue"]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    apart = f", at least {min(gaps):.1f} s apart" if gaps else ""
    return f"{tally(Counter(command for _, command in calls if command != 'sbatch'))}{apart}"


if __name__ == "__main__":
    main()
