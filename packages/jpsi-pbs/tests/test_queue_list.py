"""The queues of a site, as recorded from OpenPBS 23.06.06 and Torque 6.1.3."""

from __future__ import annotations

import subprocess
from datetime import timedelta

import pytest

from jpsi.plugin import CommandResult, Queue, SubmitException
from jpsi_pbs.hooks import Hooks
from jpsi_testing import Recording, command_result
from jpsi_testing.fake import FakeScheduler, on_path
from pbs_support import PBS, TORQUE, recordings, torque_recordings

_BOTH = pytest.mark.parametrize("hooks", [PBS, TORQUE], ids=["pbs", "torque"])


def _output(steps: list[Recording], *options: str) -> str:
    return next(it.result.stdout for it in steps if it.argv[1:] == options)


def _summary(queues: list[Queue]) -> list[tuple[object, ...]]:
    return [
        (
            it.name,
            it.is_open,
            it.is_started,
            it.is_default,
            it.max_walltime,
            it.default_walltime,
            it.pending,
            it.running,
        )
        for it in queues
    ]


_HOUR, _TEN = timedelta(hours=1), timedelta(minutes=10)


def test_queues_of_a_real_openpbs() -> None:
    steps = recordings("queues_server_nodes")

    found = list(PBS.parse_queues(command_result(_output(steps, "-Qf") + _output(steps, "-Bf"))))

    assert _summary(found) == [
        ("workq", True, True, True, None, None, 0, 1),
        ("debug", True, True, False, _HOUR, _TEN, 0, 0),
    ]
    assert found[1].details == {
        "pbs.queue_type": "Execution",
        "pbs.resources_max.walltime": "01:00:00",
        "pbs.resources_default.walltime": "00:10:00",
    }


def test_queues_of_a_real_torque() -> None:
    found = list(
        TORQUE.parse_queues(command_result(_output(torque_recordings("queues_server_nodes"), "-Qf")))
    )

    assert _summary(found) == [
        ("debug", True, True, False, _HOUR, _TEN, 0, 0),
        ("batch", True, True, False, None, _HOUR, 0, 0),
    ]


@pytest.mark.parametrize(
    ("hooks", "system", "default"),
    [(PBS, "pbs", "workq"), (TORQUE, "torque", "batch")],
    ids=["pbs", "torque"],
)
def test_the_fakes_have_queues_and_a_default(hooks: Hooks, system: str, default: str) -> None:
    with FakeScheduler() as scheduler, on_path(system, scheduler):
        done = subprocess.run(hooks.queues().argv, capture_output=True, text=True, check=True)

    found = hooks.parse_queues(command_result(done.stdout))

    assert {it.name for it in found} == {default, "debug"}
    assert [it.name for it in found if it.is_default] == [default]


@_BOTH
def test_a_queue_that_is_closed_or_stopped(hooks: Hooks) -> None:
    (queue,) = hooks.parse_queues(command_result("Queue: a\n    enabled = False\n    started = False\n"))

    assert (queue.is_open, queue.is_started, queue.native_state) == (False, False, "not enabled, not started")


@_BOTH
def test_missing_fields_are_unknown(hooks: Hooks) -> None:
    (queue,) = hooks.parse_queues(command_result("a banner\nQueue: a\n"))

    assert (queue.is_open, queue.max_walltime, queue.pending) == (None, None, None)


@_BOTH
def test_empty_output_is_refused(hooks: Hooks) -> None:
    with pytest.raises(SubmitException, match="cannot connect"):
        hooks.parse_queues(CommandResult(returncode=255, stderr="qstat: cannot connect to server\n"))
