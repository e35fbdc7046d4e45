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


@_BOTH
def test_limits_of_a_queue(hooks: Hooks) -> None:
    lines = [
        *("resources_max.ncpus = 64", "resources_max.mem = 2gb", "resources_max.ngpus = 4"),
        *("resources_min.nodect = 2", "resources_min.ncpus = 8", "resources_min.mem = 1kb"),
        "resources_min.walltime = 01:00:00",
    ]

    (queue,) = hooks.parse_queues(command_result("\n    ".join(["Queue: a", *lines])))

    assert (queue.max_cores, queue.max_memory, queue.has_gpus) == (64, 2 << 30, True)
    least = queue.min_nodes, queue.min_cores, queue.min_memory, queue.min_walltime
    assert least == (2, 8, 1024, _HOUR)


@_BOTH
def test_a_queue_that_takes_no_jobs_from_users(hooks: Hooks) -> None:
    text = "Queue: a\n    enabled = True\n    started = True\n    from_route_only = True\n"

    (queue,) = hooks.parse_queues(command_result(text))

    assert (queue.is_open, queue.native_state) == (False, "enabled, started, from_route_only")


@_BOTH
@pytest.mark.parametrize("kind", ["user", "group", "host"])
def test_a_queue_for_some_users(hooks: Hooks, kind: str) -> None:
    (queue,) = hooks.parse_queues(command_result(f"Queue: a\n    acl_{kind}_enable = True\n"))

    assert queue.is_restricted
