"""The pbsdsh and mpirun of the fakes, which start the tasks of a job in its slots and number them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jpsi.plugin import CommandResult
from jpsi_pbs.fake import pbs, torque
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeSystem, Invocation, Outcome, TaskLaunch, answer

_RESOURCES = {
    "pbs": ["-l", "select=2:ncpus=1:mpiprocs=2", "-l", "place=scatter"],
    "torque": ["-l", "nodes=2:ppn=2"],
}
_BOTH = pytest.mark.parametrize("name", ["pbs", "torque"])
_FAKES: dict[str, FakeSystem] = {"pbs": pbs, "torque": torque}


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(), outcome=Outcome(seconds=60)) as scheduler:
        yield scheduler


def _job(scheduler: FakeScheduler, name: str) -> dict[str, str]:
    """Return the environment of the script of a job on two nodes, with two processes on each."""
    call = Invocation(argv=["qsub", *_RESOURCES[name]], stdin="#!/bin/sh\n", folder="/fake/bin")
    assert answer(scheduler, _FAKES[name], call).returncode == 0
    return scheduler.jobs[-1].environment


def _call(scheduler: FakeScheduler, name: str, environment: dict[str, str], *argv: str) -> CommandResult:
    return answer(scheduler, _FAKES[name], Invocation(argv=argv, environment=environment))


def _numbers(result: CommandResult) -> list[tuple[str, str]]:
    assert isinstance(result, TaskLaunch), result
    return [(it.environment["PBS_NODENUM"], it.environment["PBS_TASKNUM"]) for it in result.tasks]


@_BOTH
def test_the_script_is_the_first_task_and_finds_the_commands(scheduler: FakeScheduler, name: str) -> None:
    environment = _job(scheduler, name)

    assert (environment["PBS_NODENUM"], environment["PBS_TASKNUM"]) == ("0", "1")
    assert environment["PATH"].split(":")[0] == "/fake/bin"


def test_torque_prints_nodes_as_recorded(scheduler: FakeScheduler) -> None:
    """As for `nodes=1:ppn=2`: PBS_NP=2, PBS_NUM_NODES=1, PBS_NUM_PPN=2, PBS_VNODENUM=0."""
    environment = _job(scheduler, "torque")

    names = ("PBS_NP", "PBS_NUM_NODES", "PBS_NUM_PPN", "PBS_VNODENUM")
    assert [environment[it] for it in names] == ["4", "2", "2", "0"]


@_BOTH
@pytest.mark.parametrize(
    ("joined", "streams"),
    [("oe", ("/w/o", "/w/o")), ("eo", ("/w/e", "/w/e")), ("n", ("/w/o", "/w/e")), (None, ("/w/o", "/w/e"))],
)
def test_streams_are_joined(
    scheduler: FakeScheduler, name: str, joined: str | None, streams: tuple[str, str]
) -> None:
    words = ["-o", "o", "-e", "e", *(("-j", joined) if joined else ())]
    call = Invocation(argv=["qsub", *words], stdin="#!/bin/sh\n", directory="/w")
    answer(scheduler, _FAKES[name], call)

    job = scheduler.jobs[-1]
    assert (job.stdout, job.stderr) == streams


@pytest.mark.parametrize(
    ("name", "resources", "nodes"),
    [
        ("pbs", "nodes=2:ppn=2", "1122"),
        ("pbs", "nodes=1:ppn=2+2", "1123"),
        ("pbs", "nodes=3", "123"),
        ("pbs", "ncpus=4", "1"),
        ("torque", "nodes=1:ppn=2+2", "1123"),
        ("torque", "procs=3", "111"),
    ],
)
def test_nodes_are_allocated_as_requested(
    scheduler: FakeScheduler, name: str, resources: str, nodes: str
) -> None:
    """OpenPBS makes chunks of the old form, each on a node of its own; pbs_resources(7B)."""
    call = Invocation(argv=["qsub", "-l", resources], stdin="#!/bin/sh\n")
    assert answer(scheduler, _FAKES[name], call).returncode == 0

    job = scheduler.jobs[-1]
    assert [it.removeprefix("node0") for it in job.files["PBS_NODEFILE"].split()] == list(nodes)


@pytest.mark.parametrize(
    ("name", "resources", "refusal"),
    [
        ("pbs", "nodes=2:ppn=x", "Illegal attribute or resource value Resource_List.nodes"),
        ("pbs", "nodes=0", "Illegal attribute or resource value Resource_List.nodes"),
        ("pbs", "nodes=node01:ppn=2", "this fake PBS has no nodes by name"),
        ("pbs", "select=1:mpiprocs=x", "Illegal attribute or resource value Resource_List.select"),
        ("torque", "nodes=2:ppn=x", "Illegal attribute or resource value for Resource_List.nodes"),
        ("torque", "nodes=0", "Illegal attribute or resource value for Resource_List.nodes"),
        ("torque", "nodes=node01:ppn=2", "this fake Torque has no nodes by name"),
        ("torque", "procs=x", "Illegal attribute or resource value for Resource_List.procs"),
    ],
)
def test_malformed_resources_are_refused(
    scheduler: FakeScheduler, name: str, resources: str, refusal: str
) -> None:
    call = Invocation(argv=["qsub", "-l", resources], stdin="#!/bin/sh\n")

    refused = answer(scheduler, _FAKES[name], call)

    assert (refused.returncode > 0, refusal in refused.stderr, scheduler.jobs) == (True, True, [])


@_BOTH
def test_pbsdsh_starts_a_task_for_each_process(scheduler: FakeScheduler, name: str) -> None:
    environment = _job(scheduler, name)

    result = _call(scheduler, name, environment, "pbsdsh", "-v", "env", "-i")
    again = _call(scheduler, name, environment, "pbsdsh", "env")

    assert _numbers(result) == [("0", "2"), ("0", "3"), ("1", "4"), ("1", "5")]
    assert _numbers(again)[0] == ("0", "6")
    assert isinstance(result, TaskLaunch)
    assert (result.tasks[0].argv, result.stdin) == (("env", "-i"), None)
    virtual = [it.environment.get("PBS_VNODENUM") for it in result.tasks]
    assert virtual == ([None] * 4 if name == "pbs" else ["0", "1", "2", "3"])


@pytest.mark.parametrize(
    ("name", "words", "nodes"),
    [
        ("pbs", ["-n", "2", "--"], "1"),
        ("pbs", ["-c", "3"], "001"),
        ("torque", ["-u"], "01"),
        ("torque", ["-h", "node02"], "1"),
    ],
    ids=["one", "some", "nodes", "node"],
)
def test_pbsdsh_starts_tasks_on_the_named_nodes(
    scheduler: FakeScheduler, name: str, words: list[str], nodes: str
) -> None:
    result = _call(scheduler, name, _job(scheduler, name), "pbsdsh", *words, "true")

    assert "".join(node for node, _ in _numbers(result)) == nodes


@_BOTH
@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["-n", "4", "true"], "no such node: the job has 4"),
        (["-n", "x", "true"], "invalid literal"),
        ([], "no program"),
        (["-Z", "true"], "invalid option -- 'Z'"),
    ],
    ids=["node", "number", "program", "option"],
)
def test_tasks_that_cannot_start_are_refused(
    scheduler: FakeScheduler, name: str, words: list[str], refusal: str
) -> None:
    result = _call(scheduler, name, _job(scheduler, name), "pbsdsh", *words)

    assert not isinstance(result, TaskLaunch)
    assert (result.returncode > 0, refusal in result.stderr) == (True, True)


@_BOTH
def test_pbsdsh_needs_a_job(scheduler: FakeScheduler, name: str) -> None:
    assert "not called in a job" in _call(scheduler, name, {}, "pbsdsh", "true").stderr


@_BOTH
def test_mpirun_starts_ranks_in_the_slots_of_the_job(scheduler: FakeScheduler, name: str) -> None:
    result = _call(scheduler, name, _job(scheduler, name), "mpirun", "true")

    assert isinstance(result, TaskLaunch)
    assert [it.environment["OMPI_COMM_WORLD_RANK"] for it in result.tasks] == ["0", "1", "2", "3"]
    assert [it.environment["OMPI_COMM_WORLD_LOCAL_RANK"] for it in result.tasks] == ["0", "1", "0", "1"]


@_BOTH
@pytest.mark.parametrize("command", ["pbsdsh", "mpirun", "mpiexec", "qsub"])
def test_every_command_fails_while_the_daemon_is_down(name: str, command: str) -> None:
    assert _FAKES[name].unreachable(command).returncode > 0
