"""The command `jpsi queues`, with every installed backend and the fake of its batch system."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import timedelta

import pytest

import jpsi
from jpsi_cli.cluster.queues import render_table

Run = Callable[..., subprocess.CompletedProcess[bytes]]
_FAKES = ("slurm", "pbs", "torque", "lsf", "gridengine", "flux")


def _show_queues(run: Run, system: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return run("fake", system, "--", "jpsi", "queues", "-x", system, *arguments)


@pytest.mark.parametrize("system", _FAKES)
def test_every_batch_system_shows_its_queues(run: Run, system: str) -> None:
    done = _show_queues(run, system, "--json")

    assert done.returncode == 0, done.stderr
    queues = json.loads(done.stdout)
    assert queues
    assert all(queue["is_open"] for queue in queues)


def test_without_json_queues_are_a_table(run: Run) -> None:
    done = _show_queues(run, "slurm")

    assert done.stdout.decode().splitlines() == [
        "QUEUE   TAKES JOBS  STARTS JOBS  MAX TIME  DEFAULT TIME  NODES  CORES  MEMORY  STATE",
        "main *  yes         yes          no limit  1:00:00       2      8      8000M   UP",
        "debug   yes         yes          1:00:00   0:10:00       2      8      8000M   UP",
    ]


def test_an_executor_without_queues_is_an_error(run: Run) -> None:
    done = run("queues", "-x", "local")

    assert (done.returncode, done.stdout) == (125, b"")
    assert done.stderr == b"jpsi: the executor local has no queues\n"


def test_a_missing_batch_system_is_an_error(run: Run) -> None:
    done = run("queues", "-x", "slurm", env={"PATH": "/nonexistent"})

    assert done.returncode == 125
    assert b"scontrol" in done.stderr
    assert b"Traceback" not in done.stderr


def test_columns_without_known_values_are_left_out() -> None:
    queues = [
        jpsi.Queue(name="a", native_state="on", max_nodes=2, nodes=9, is_default=True),
        jpsi.Queue(
            name="", native_state="of\x1b[1m\nf", max_walltime=timedelta(days=2), is_open=False, pending=3
        ),
    ]

    assert render_table(queues).splitlines() == [
        "QUEUE  TAKES JOBS  MAX TIME         NODES   WAIT  STATE",
        "a *    -           -                2 of 9  -     on",
        "-      no          2 days, 0:00:00  -       3     of\\x1b[1m f",
    ]
