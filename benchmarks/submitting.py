"""Measures submission to a real Slurm: one by one, several at a time, and as an array.

The jobs wait for a start time that does not come, so that none of them runs while others are submitted. They
are cancelled by their name, which is the measurement's own.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.libraries import Library
from benchmarks.slurm_commands import cancel_all

#: The number of concurrent submissions: jpsi's default.
AT_A_TIME = 4
# The first jobs do not count, as the library finds and loads plugins for them.
_FIRST = 3
_WAITING = {"begin": "now+2hours"}
_SCRIPT = """\
#!/bin/sh
#SBATCH --job-name={name}
#SBATCH --begin={begin}
#SBATCH --time=10
#SBATCH --ntasks=1
#SBATCH --output=/dev/null
/bin/true
"""


def one_by_one(competitor: str, count: int) -> Iterator[float]:
    """Yield the seconds for so many submissions, one after the other, again and again."""
    if competitor == "bare":
        return _bare(count, workers=1)
    return _times(Library(competitor, "slurm"), count, Library.submit)


def concurrently(competitor: str, count: int) -> Iterator[float]:
    """Yield the seconds for so many submissions, several at a time, again and again."""

    def submit(library: Library, jobs: list[Any]) -> None:
        if library.name == "jpsi":
            library.executor.submit_many(jobs)
            return
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            list(pool.map(library.executor.submit, jobs))

    if competitor == "bare":
        return _bare(count, workers=AT_A_TIME)
    return _times(Library(competitor, "slurm", array_size=1), count, submit)


def as_array(competitor: str, count: int) -> float:
    """Return the seconds for one submission of so many jobs."""

    def submit(library: Library, jobs: list[Any]) -> None:
        library.executor.submit_many(jobs)

    if competitor == "bare":
        times = _bare(1, workers=1, options=[f"--array=1-{count}"])
    else:
        times = _times(Library(competitor, "slurm"), count, submit)
    with contextlib.closing(times):
        return next(times)


def _times(
    library: Library, count: int, submit: Callable[[Library, list[Any]], None]
) -> Generator[float, None, None]:
    name = f"benchmark-{uuid.uuid4().hex}"

    def jobs(number: int) -> list[Any]:
        made = [library.job("/bin/true", str(it), slurm=_WAITING) for it in range(number)]
        for job in made:
            job.spec.name = name
        return made

    try:
        submit(library, jobs(_FIRST))
        while True:
            run_measurement = jobs(count)
            begun = time.perf_counter()
            submit(library, run_measurement)
            yield time.perf_counter() - begun
    finally:
        cancel_all(name)


def _bare(count: int, *, workers: int, options: Sequence[str] = ()) -> Generator[float, None, None]:
    name = f"benchmark-{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(workers) as pool:
        script = Path(place, "script")
        script.write_text(_SCRIPT.format(name=name, **_WAITING), encoding="ascii")

        def sbatch(_: int) -> None:
            subprocess.run(["sbatch", *options, str(script)], capture_output=True, check=True)

        try:
            while True:
                begun = time.perf_counter()
                list(pool.map(sbatch, range(count)))
                yield time.perf_counter() - begun
        finally:
            cancel_all(name)
