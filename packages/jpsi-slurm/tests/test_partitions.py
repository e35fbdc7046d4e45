"""The partitions of a site, as recorded from Slurm 22.05."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
from jpsi import SubmitException
from jpsi.plugin import CommandResult, Queue
from jpsi_slurm import fake, hooks
from jpsi_testing import command_result
from jpsi_testing.fake import FakeScheduler, Invocation, answer, on_path
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
        node_cores=8,
        node_memory=8000 * 2**20,
        details={"slurm.TRES": "cpu=16,mem=16000M,node=2,billing=16"},
    )


_EXPECTED = [
    _queue("main", default_walltime=_HOUR, max_walltime=timedelta(0), is_default=True),
    _queue("debug", default_walltime=_HOUR / 6, max_walltime=_HOUR),
]


def test_partitions_of_a_real_slurm() -> None:
    (recording,) = [it for it in recordings("version") if it.argv[1:] == ("show", "partition", "-o")]
    sizes = "main|8|8000|2\ndebug|8|8000|2\n"

    assert hooks.parse_queues(command_result(recording.result.stdout + sizes)) == _EXPECTED


def test_the_fake_prints_the_same_partitions() -> None:
    with FakeScheduler() as scheduler, on_path("slurm", scheduler):
        done = subprocess.run(hooks.queues(SITE).argv, capture_output=True, text=True, check=True)

    assert hooks.parse_queues(command_result(done.stdout)) == _EXPECTED


@pytest.mark.parametrize(
    ("fields", "nodes", "expected"),
    [
        ("", "a|8|8000|1\na|16|4000|1\nb|64|64000|1\n", (16, 8000)),
        ("MaxCPUsPerNode=4 MaxMemPerNode=1000", "a|8|8000|2\n", (4, 1000)),
        ("MaxCPUsPerNode=UNLIMITED MaxMemPerNode=UNLIMITED", "a|8+|8000+|2\n", (8, 8000)),
        ("MaxCPUsPerNode=4", "", (4, None)),
        # the other node is in a cloud, and powered down
        ("", "a|8|8000|1\n", (None, None)),
        ("", "sinfo: error\n", (None, None)),
    ],
)
def test_the_largest_node_of_a_partition_within_its_limits(
    fields: str, nodes: str, expected: tuple[int | None, int | None]
) -> None:
    (queue,) = hooks.parse_queues(command_result(f"PartitionName=a TotalNodes=2 {fields}\n{nodes}"))
    cores, megabytes = expected

    assert (queue.node_cores, queue.node_memory) == (cores, megabytes and megabytes * 2**20)


def test_partitions_are_an_answer_without_the_sizes_of_nodes(tmp_path: Path) -> None:
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho PartitionName=a\n")
    (tmp_path / "sinfo").write_text("#!/bin/sh\nexit 1\n")
    for it in tmp_path.iterdir():
        it.chmod(0o755)

    done = subprocess.run(
        hooks.queues(SITE).argv, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )

    assert hooks.parse_queues(command_result(done.stdout)) == [Queue(name="a", native_state="")]


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


def test_partitions_that_not_everybody_can_use() -> None:
    lines = [
        "PartitionName=all State=UP AllowGroups=ALL AllowAccounts=ALL Hidden=NO RootOnly=NO",
        "PartitionName=account State=UP AllowGroups=ALL AllowAccounts=physics Hidden=NO RootOnly=NO",
        "PartitionName=group State=UP AllowGroups=staff AllowAccounts=ALL Hidden=NO RootOnly=NO",
        "PartitionName=hidden State=UP Hidden=YES RootOnly=NO",
        "PartitionName=root State=UP Hidden=NO RootOnly=YES",
    ]

    found = hooks.parse_queues(command_result("\n".join(lines)))

    assert [it.name for it in found if it.is_restricted] == ["account", "group", "hidden"]
    assert [it.name for it in found if not it.is_open] == ["root"]


def test_partitions_whose_nodes_have_gpus_and_the_least_number_of_nodes() -> None:
    text = "PartitionName=a MinNodes=2 TRES=cpu=8,node=2,gres/gpu=8\nPartitionName=b MinNodes=0 TRES=cpu=8\n"

    found = hooks.parse_queues(command_result(text))

    assert [(it.has_gpus, it.min_nodes) for it in found] == [(True, 2), (None, None)]


@pytest.mark.parametrize("outages", [0, 1], ids=["an answer", "no answer at first"])
def test_memory_grows_up_to_the_limit_of_the_partition(
    fake_commands: Callable[..., FakeScheduler], outages: int
) -> None:
    slurm = fake_commands("slurm", FakeScheduler(slots=0))
    spec = jpsi.JobSpec(
        "/bin/sh",
        ["-c", "exit 137"],
        resources=jpsi.ResourceSpecV1(memory=5 * 2**30),
        attributes=jpsi.JobAttributes(queue_name="main", retry={137: 3, "grow_memory": 2}),
    )
    job = jpsi.Job(spec)

    with jpsi.JobExecutor("slurm") as executor:
        executor.submit(job)
        # the query of the partitions before the second attempt
        slurm.faults.fail("scontrol", outages)
        with slurm.lock:
            slurm.slots = 1
            slurm.settle()
        status = job.wait(timedelta(seconds=60))

    assert status is not None
    assert status.metadata["attempt"] == 2
    assert "the queue main has 8000M on one node, which it had requested" in str(status.message)
