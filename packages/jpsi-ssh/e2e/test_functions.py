"""A program that calls functions is killed at any instant: the next has each result, and none ran twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("jpsi_functions")

# Calls functions, or finds the calls again. Each call proves that it ran.
PROGRAM = """
import os, sys
from jpsi_functions import FunctionExecutor

def count(number, proof):
    with open(proof, "a") as file:
        file.write(f"{number}\\n")
    return number

what, folder, url = sys.argv[1:]
proof, accepted = f"{folder}/proof", f"{folder}/accepted"
executor = FunctionExecutor("slurm", url=url or None, walltime="5m", python=sys.executable)
print("begin", flush=True)
if what == "recover":
    for future in executor.recover():
        print(future.result(300), flush=True)
else:
    for number in range(3):
        executor.submit(count, number, proof)
        count(number, accepted)
    results = executor.map(count, range(3, 12), [proof] * 9, chunksize=3)
    for number in range(3, 12):
        count(number, accepted)
    for number in results:
        pass
    executor.submit(count, 12, proof)
    count(12, accepted)
    sys.stdin.read()
executor.shutdown()
"""


@pytest.mark.long
@pytest.mark.parametrize("url", ["", "ssh://cluster"], ids=["here", "ssh"])
def test_a_killed_program_loses_no_call_and_makes_none_twice(
    url: str, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    instants = random.Random(20261128)
    wrong = {}
    for round_ in range(20):
        folder = tmp_path / str(round_)
        folder.mkdir()
        instant = instants.uniform(0, 7 if url else 3)
        problem = _kill(folder, url, instant)
        if problem:
            wrong[instant] = problem

    assert wrong == {}


def _kill(folder: Path, url: str, instant: float) -> str:
    """Kill the program once, and recover its calls; return what is wrong with them."""
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        [*command, "submit", str(folder), url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        time.sleep(instant)
        program.send_signal(signal.SIGKILL)
    found = subprocess.run(
        [*command, "recover", str(folder), url], capture_output=True, text=True, check=False, timeout=900
    )
    if found.returncode != 0:
        return found.stderr
    results, ran = Counter(found.stdout.split()[1:]), Counter(_words(folder / "proof"))
    twice = [number for number, times in ran.items() if times > 1]
    missing = [number for number in _words(folder / "accepted") if number not in ran]
    is_same = results == ran
    return "" if is_same and not twice and not missing else f"{results=} {ran=} {twice=} {missing=}"


def _words(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []
