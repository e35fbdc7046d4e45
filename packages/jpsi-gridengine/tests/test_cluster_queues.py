"""The queues of a site, as recorded from Grid Engine 8.1.9."""

from __future__ import annotations

import subprocess
from datetime import timedelta

import pytest

from gridengine_support import recordings
from jpsi.plugin import CommandResult, SubmitException
from jpsi_gridengine import hooks
from jpsi_testing import command_result
from jpsi_testing.fake import FakeScheduler, on_path

_ROW = "{:<30} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}\n"


def _recorded(*argv: str) -> str:
    return next(it.result.stdout for it in recordings("version") if it.argv == argv)


def test_queues_of_a_real_grid_engine() -> None:
    text = _recorded("qstat", "-g", "c") + _recorded("qconf", "-sq", "main.q")

    debug, main = hooks.parse_queues(command_result(text))

    assert (debug.name, debug.max_walltime, debug.is_open, debug.is_started) == ("debug.q", None, True, True)
    assert (main.name, main.max_walltime, main.native_state) == ("main.q", timedelta(0), "8 of 8 slots free")
    assert main.details["gridengine.pe_list"] == "make smp"


def test_the_fake_has_limits() -> None:
    with FakeScheduler() as scheduler, on_path("gridengine", scheduler):
        done = subprocess.run(hooks.queues().argv, capture_output=True, text=True, check=True)

    found = hooks.parse_queues(command_result(done.stdout))

    assert {it.name: it.max_walltime for it in found} == {
        "debug.q": timedelta(hours=1),
        "main.q": timedelta(0),
    }


@pytest.mark.parametrize(
    ("total", "stopped", "broken", "is_started"), [(8, 0, 0, True), (8, 4, 4, False), (0, 0, 0, None)]
)
def test_a_queue_without_free_slots_starts_nothing(
    total: int, stopped: int, broken: int, is_started: bool | None
) -> None:
    row = _ROW.format("a.q", "-NA-", 0, 0, total - stopped - broken, total, stopped, broken)

    (queue,) = hooks.parse_queues(command_result(row))

    assert queue.is_started is is_started


def test_a_limit_that_differs_on_some_nodes_is_the_usual_one() -> None:
    text = _ROW.format("a.q", 0.5, 0, 0, 8, 8, 0, 0) + "qname   a.q\nh_rt    24:00:00,[node1=1:00:00]\n"

    (queue,) = hooks.parse_queues(command_result(text))

    assert queue.max_walltime == timedelta(days=1)


def test_empty_output_is_refused() -> None:
    with pytest.raises(SubmitException):
        hooks.parse_queues(CommandResult(returncode=1, stderr="error: commlib error\n"))
