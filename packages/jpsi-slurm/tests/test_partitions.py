"""The partitions of a site, as recorded from Slurm 22.05."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jpsi import SubmitException
from jpsi.plugin import CommandResult, Queue
from jpsi_slurm import fake, hooks
from jpsi_testing import command_result
from jpsi_testing.fake import FakeScheduler, Invocation, answer
from slurm_support import SITE, recordings

_HOUR = timedelta(hours=1)


def _queue(
    name: str, *, default_walltime: timedelta, max_walltime: timedelta, is_default: bool = False
) -> Queue:
    return Queue(
        name=name,
        native_state="UP",
        is_open=True,
        is_started=True,
        is_default=is_default,
        max_walltime=max_walltime,
        default_walltime=default_walltime,
        nodes=2,
        details={"slurm.TRES": "cpu=16,mem=16000M,node=2,billing=16"},
    )


_EXPECTED = [
    _queue("main", default_walltime=_HOUR, max_walltime=timedelta(0), is_default=True),
    _queue("debug", default_walltime=_HOUR / 6, max_walltime=_HOUR),
]


def test_partitions_of_a_real_slurm() -> None:
    (recording,) = [it for it in recordings("version") if it.argv[1:] == ("show", "partition", "-o")]

    assert hooks.parse_queues(recording.result) == _EXPECTED


def test_the_fake_prints_the_same_partitions() -> None:
    with FakeScheduler() as scheduler:
        command = hooks.queues(SITE)
        result = answer(scheduler, fake, Invocation(argv=command.argv))

    assert hooks.parse_queues(result) == _EXPECTED


@pytest.mark.parametrize(
    ("word", "is_open", "is_started"),
    [("DOWN", True, False), ("DRAIN", False, True), ("INACTIVE", False, False), ("NEW", None, None)],
)
def test_states(word: str, is_open: bool | None, is_started: bool | None) -> None:
    (queue,) = hooks.parse_queues(command_result(f"PartitionName=a State={word}\n"))

    assert (queue.native_state, queue.is_open, queue.is_started) == (word, is_open, is_started)


def test_missing_fields_are_unknown() -> None:
    assert hooks.parse_queues(command_result("a banner\n\nPartitionName=a\n")) == [
        Queue(name="a", native_state="")
    ]


def test_limits_of_nodes() -> None:
    (queue,) = hooks.parse_queues(
        command_result("PartitionName=a MaxNodes=4 TotalNodes=9 MaxTime=7-00:00:00\n")
    )

    assert (queue.max_nodes, queue.nodes, queue.max_walltime) == (4, 9, timedelta(days=7))


def test_empty_output_is_refused() -> None:
    with pytest.raises(SubmitException, match="Unable to contact"):
        hooks.parse_queues(CommandResult(returncode=1, stderr="Unable to contact slurm controller\n"))


def test_the_version_query_contacts_no_daemon() -> None:
    with FakeScheduler() as scheduler:
        result = answer(scheduler, fake, Invocation(argv=hooks.version(SITE).argv))

    assert result.stdout == "slurm-wlm 22.05.8\n"
