"""Measures competitors in turns, each in a process of its own, so that other load slows them all alike.

A measurement is a function of a module of this package; `python -m benchmarks.side_by_side MODULE:FUNCTION
ARGUMENTS` calls it with arguments from a JSON list, and prints its result as the last line. If the result is
a generator, it prints the next value for each line that it reads.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

#: The longest time for a measurement, in seconds.
PATIENCE = 1800
_ROOT = Path(__file__).parent.parent
_MEMORY_FILE_SYSTEM = Path("/dev/shm")  # noqa: S108


def run_measurement(
    directory: str | None, measurement: Callable[..., T], *arguments: object, patience: float = PATIENCE
) -> T:
    """Return the result of a measurement in a process and a home directory of its own.

    Args:
        directory: the directory for home directories; None is a tmpfs if there is one.
        measurement: a function of a module of this package.
        arguments: its arguments.
        patience: the longest time for it, in seconds.
    """
    with _process(directory, measurement, arguments) as process:
        output, _ = process.communicate(timeout=patience)
        assert process.returncode == 0, f"{measurement.__name__} has failed"
        result: T = json.loads(output.splitlines()[-1])
        return result


def run_sliced(
    directory: str | None, measurement: Callable[..., Iterator[T]], slices: int, *calls: Sequence[object]
) -> list[list[T]]:
    """Return the values of a measurement for several competitors, in as many processes, which take turns.

    Args:
        directory: the directory for home directories; None is a tmpfs if there is one.
        measurement: a function of a module of this package.
        slices: the number of turns of each competitor.
        calls: the arguments of the measurement for each competitor.
    """
    found: list[list[T]] = [[] for _ in calls]
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_process(directory, measurement, call)) for call in calls]
        for number in range(slices):
            say(f"  {number + 1} of {slices}")
            for process, values in zip(processes, found, strict=True):
                values.append(_next(process))
    return found


@contextlib.contextmanager
def _process(
    directory: str | None, measurement: Callable[..., object], arguments: Sequence[object]
) -> Iterator[subprocess.Popen[str]]:
    """Start a process that carries out a measurement; it ends with the block."""
    place = tempfile.mkdtemp(dir=_home_variables(directory))
    variables = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"), place)
    name = f"{_check_importable(measurement)}:{measurement.__name__}"
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.side_by_side", name, json.dumps(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables, "PYTHONPATH": str(_ROOT)},
    ) as process:
        yield process
    # On a disk only at the very end: where ext4 has no journal, each new file takes a look at all that were
    # removed in the last minutes.
    if directory is None:
        shutil.rmtree(place, ignore_errors=True)


def _next(process: subprocess.Popen[str]) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def _check_importable(measurement: Callable[..., object]) -> str:
    """Return the name of a function's module, also if that is the program that runs."""
    spec = sys.modules[measurement.__module__].__spec__
    return measurement.__module__ if spec is None else spec.name


@functools.cache
def _home_variables(directory: str | None) -> str:
    """Return the directory for home directories, which is removed at the very end."""
    if directory is None and _MEMORY_FILE_SYSTEM.is_dir():
        directory = str(_MEMORY_FILE_SYSTEM)
    directories = tempfile.mkdtemp(prefix="jpsi-benchmark-", dir=directory)
    atexit.register(shutil.rmtree, directories, ignore_errors=True)
    return directories


def interleave(rounds: int, competitors: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Return the results of each competitor, called one after the other in each round.

    >>> interleave(2, {"a": lambda: 1, "b": lambda: 2})
    {'a': [1, 1], 'b': [2, 2]}
    """
    found: dict[str, list[T]] = {name: [] for name in competitors}
    for number in range(rounds):
        for name, measure in competitors.items():
            say(f"  {name}, {number + 1} of {rounds}")
            found[name].append(measure())
    return found


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that so many percent of the values do not exceed.

    >>> percentile([3, 1, 2], 50), percentile([3, 1, 2], 99)
    (2, 3)
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def say(text: str) -> None:
    """Print progress for the user."""
    print(text, file=sys.stderr, flush=True)


def machine() -> str:
    """Return a sentence about the machine and the versions, on which the figures depend."""
    packages = ", ".join(_versions("jpsi-core", "psij-python"))
    return (
        f"{os.cpu_count()} cores ({_processor()}), Linux {platform.release()}, "
        f"Python {platform.python_version()}, {packages}"
    )


def has(package: str) -> bool:
    """Return True if a distribution is installed."""
    return bool(list(_versions(package)))


def _versions(*packages: str) -> list[str]:
    found = []
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _measure(name: str, arguments: str) -> None:
    module, _, function = name.partition(":")
    result = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    if not isinstance(result, Generator):
        print(f"\n{json.dumps(result)}", flush=True)
        return
    for _ in sys.stdin:
        print(json.dumps(next(result)), flush=True)
    result.close()


if __name__ == "__main__":
    _measure(*sys.argv[1:])
    # do not wait for threads of the libraries, which follow jobs for ever
    os._exit(0)
