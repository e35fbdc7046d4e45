"""Jobs on a real Slurm: jpsi, psij-python and bare `sbatch`, side by side in one run.

    ci/slurm/up                       on a machine without a Slurm, as root
    ./dev benchmarks slurm            the whole table, about five minutes
    ./dev benchmarks slurm --quick    smaller numbers, to see that it works

Latency is from a job's own last reading of the clock to the callback that tells of its end. Both libraries
have the configuration that they have by default. State directories are on a tmpfs unless `--directory` says
otherwise: jpsi waits until what it has written down is safe, which psij-python and sbatch do not. Figures of
different machines or runs do not compare.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 1800
# What a query costs does not matter here, only how many there are.
COUNTED = ("squeue", "sacct", "scontrol")
SCRIPT = "#!/bin/sh\n#SBATCH --time=10\n#SBATCH --ntasks=1\n#SBATCH --output=/dev/null\n/bin/true\n"


class Library:
    """What the measurements need of a library; both speak the J/PSI specification."""

    def __init__(self, name: str, **config: Any) -> None:
        if name == "jpsi":
            import jpsi as library
            from jpsi_slurm import SlurmConfig

            self.executor = library.JobExecutor.get_instance("slurm", config=SlurmConfig(**config))
        else:
            import psij as library

            self.executor = library.JobExecutor.get_instance("slurm")
        self.library: Any = library

    def job(self, executable: str, *arguments: str, stdout: Path | None = None) -> Any:
        spec = self.library.JobSpec(executable=executable, arguments=list(arguments))
        spec.stdout_path = stdout
        return self.library.Job(spec)


@contextmanager
def counted(folder: Path) -> Iterator[Path]:
    """Have every call of a query leave its time in a file, which is yielded."""
    log = folder / "calls"
    commands = folder / "bin"
    commands.mkdir()
    for name in COUNTED:
        real = shutil.which(name)
        wrapper = commands / name
        wrapper.write_text(f'#!/bin/sh\ndate "+%s.%N {name}" >>{log}\nexec {real} "$@"\n')
        wrapper.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{commands}:{before}"
    try:
        yield log
    finally:
        os.environ["PATH"] = before


def without_inotify() -> None:
    """Have jpsi look for markers as on a network file system, which announces nothing."""
    from jpsi.engine import rounds

    rounds._watch = lambda _: None  # noqa: SLF001  there is no other way to have none


def latency(name: str, count: int, config: dict[str, Any]) -> dict[str, Any]:
    """Seconds from exit to callback for each of `count` short jobs, and what was asked meanwhile."""
    if config.get("network_files"):
        without_inotify()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        heard: dict[str, float] = {}
        everything = threading.Event()

        def callback(job: Any, status: Any) -> None:
            if status.final:
                assert str(status.state).rpartition(".")[2] == "COMPLETED", status
                heard[job.id] = time.time()
                if len(heard) == count:
                    everything.set()

        with counted(folder) as log:
            library = Library(name, **config)
            library.executor.set_job_status_callback(callback)
            jobs = [library.job("/bin/date", "+%s.%N", stdout=folder / f"{it}.out") for it in range(count)]
            started = time.time()
            for job in jobs:
                library.executor.submit(job)
            submitted = time.time()
            assert everything.wait(PATIENCE), f"only {len(heard)} jobs have ended"
            ended = time.time()
            calls = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        exits = [float((folder / f"{number}.out").read_text()) for number in range(count)]
        return {
            "latencies": [heard[job.id] - exit_ for job, exit_ in zip(jobs, exits, strict=True)],
            "submitting": submitted - started,
            "lasting": ended - started,
            "calls": [(float(moment), command) for moment, command in calls if float(moment) <= ended],
        }


def submission(names: list[str], count: int) -> dict[str, float]:
    """Median milliseconds of a submission; those of the competitors alternate in one process."""
    with tempfile.TemporaryDirectory() as temporary:
        script = Path(temporary, "script")
        script.write_text(SCRIPT)
        libraries = {name: Library(name) for name in names}
        found: dict[str, list[float]] = {"bare": [], **{name: [] for name in names}}
        for _ in range(count + 3):
            started = time.perf_counter()
            done = subprocess.run(["sbatch", str(script)], capture_output=True, timeout=30, check=False)
            found["bare"].append(time.perf_counter() - started)
            assert done.returncode == 0, done.stderr
            for name, library in libraries.items():
                job = library.job("/bin/true")
                started = time.perf_counter()
                library.executor.submit(job)
                found[name].append(time.perf_counter() - started)
        # the first ones load what the others find loaded
        return {name: statistics.median(times[3:]) * 1000 for name, times in found.items()}


MEASUREMENTS = {"latency": latency, "submission": submission}


def measured(directory: str | None, measurement: str, *arguments: Any) -> Any:
    """The result of a measurement in a process and state directory of its own."""
    with tempfile.TemporaryDirectory(prefix="jpsi-benchmark-", dir=directory) as home:
        result = subprocess.run(
            [sys.executable, __file__, "--measure", json.dumps([measurement, *arguments])],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_STATE_HOME": home, "HOME": home},
        )
        drain()
        return json.loads(result.stdout.splitlines()[-1])


def drain() -> None:
    """Wait until no job of this user is left."""
    while subprocess.run(["squeue", "-h", "--me"], capture_output=True, check=True).stdout.strip():
        time.sleep(0.5)


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def told(calls: list[tuple[float, str]]) -> str:
    """How many queries there were, and how far apart those of squeue were at least."""
    commands = [command for _, command in calls]
    moments = [moment for moment, command in calls if command == "squeue"]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    apart = f", at least {min(gaps):.1f} s apart" if gaps else ""
    counts = ", ".join(f"{commands.count(it)} {it}" for it in COUNTED if it in commands)
    return f"{counts}{apart}"


def table(*, quick: bool, directory: str | None) -> None:
    has_psij = subprocess.run([sys.executable, "-c", "import psij"], check=False, capture_output=True)
    names = ["jpsi"] if has_psij.returncode else ["jpsi", "psij"]
    version = subprocess.run(["sbatch", "--version"], capture_output=True, text=True, check=True).stdout
    print(f"{version.strip()}, Python {platform.python_version()}, {os.cpu_count()} cores\n")
    drain()
    times = measured(directory, "submission", names, 20 if quick else 200)
    print("| a submission, median ms | as a multiple of bare sbatch |")
    for name, value in times.items():
        print(f"| {name}: {value:.2f} | {value / times['bare']:.2f} |", flush=True)
    count = 50 if quick else 1000
    print(f"\n| {count} short jobs | exit to callback p50 / p95 / p99 s | lasting s | queries |")
    runs = [(name, name, {}) for name in names]
    runs.insert(1, ("jpsi", "jpsi without inotify", {"network_files": True}))
    for name, title, config in runs:
        found = measured(directory, "latency", name, count, config)
        cells = " / ".join(f"{percentile(found['latencies'], percent):.3f}" for percent in (50, 95, 99))
        print(f"| {title} | {cells} | {found['lasting']:.0f} | {told(found['calls'])} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    parser.add_argument("--directory", help="where state directories go; the default is a tmpfs")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, *values = json.loads(arguments.measure)
        print(json.dumps(MEASUREMENTS[name](*values)))
    elif shutil.which("sbatch") is None:
        sys.exit("there is no Slurm here; ci/slurm/up brings one up")
    else:
        memory_file_system = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
        table(quick=arguments.quick, directory=arguments.directory or memory_file_system)


if __name__ == "__main__":
    main()
