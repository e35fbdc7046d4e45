"""The blaunch and mpirun of the fake, which start the tasks of a job in its slots and number them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi.plugin import CommandResult
from jpsi_lsf.fake import lsf, volclava
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeSystem, Invocation, Outcome, TaskLaunch, answer


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(), outcome=Outcome(seconds=60)) as scheduler:
        yield scheduler


def _job(scheduler: FakeScheduler, *options: str, fake_system: FakeSystem = lsf) -> dict[str, str]:
    """Return the environment of the script of a job on two hosts, with two slots on each."""
    call = Invocation(argv=["bsub", "-n", "4", "-R", "span[ptile=2]", *options], stdin="true\n")
    assert answer(scheduler, fake_system, call).returncode == 0
    return scheduler.jobs[-1].environment


def _call(
    scheduler: FakeScheduler, environment: dict[str, str], *argv: str, fake_system: FakeSystem = lsf
) -> CommandResult:
    return answer(scheduler, fake_system, Invocation(argv=argv, environment=environment))


def _numbers(result: CommandResult) -> list[str]:
    """Return each task's number, its host's number, and its number on the host."""
    assert isinstance(result, TaskLaunch), result
    names = ("TASKID", "XMACHID", "XPROCID")
    return ["".join(it.environment[f"LSF_PM_{name}"] for name in names) for it in result.tasks]


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ([], ["111", "212", "321", "422"]),
        (["node02"], ["121"]),
        (["-z", "node02 node01"], ["121", "211"]),
        (["-n", "-no-shell", "-z", "node01 node01"], ["111", "212"]),
    ],
    ids=["every slot", "a host", "hosts", "a host twice"],
)
def test_blaunch_starts_tasks_on_the_named_hosts(
    scheduler: FakeScheduler, words: list[str], numbers: list[str]
) -> None:
    assert _numbers(_call(scheduler, _job(scheduler), "blaunch", *words, "true")) == numbers


def test_hosts_can_be_in_a_file(scheduler: FakeScheduler, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node02\nnode02\n")

    result = _call(scheduler, _job(scheduler), "blaunch", "-u", str(tmp_path / "hosts"), "true")

    assert _numbers(result) == ["121", "222"]


def test_tasks_are_counted_through_the_job(scheduler: FakeScheduler) -> None:
    """An array element is a job of its own."""
    _job(scheduler, "-J", "a[1-2]")
    first, second = (job.environment for job in scheduler.jobs)

    started = [_call(scheduler, it, "blaunch", "node01", "true") for it in (first, first, second)]

    assert [_numbers(it) for it in started] == [["111"], ["211"], ["111"]]


@pytest.mark.parametrize(
    ("words", "argv", "stdin"),
    [
        (["echo", "$A b"], ("/bin/sh", "-c", "echo $A b"), 0),
        (["-no-shell", "echo", "$A b"], ("echo", "$A b"), 0),
        (["-n", "cat"], ("/bin/sh", "-c", "cat"), None),
    ],
    ids=["shell", "no shell", "no input"],
)
def test_a_shell_runs_the_command_unless_an_option_forbids_it(
    scheduler: FakeScheduler, words: list[str], argv: tuple[str, ...], stdin: int | None
) -> None:
    launch = _call(scheduler, _job(scheduler), "blaunch", *words)

    assert isinstance(launch, TaskLaunch)
    assert ({task.argv for task in launch.tasks}, launch.stdin) == ({argv}, stdin)


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["-z", "node09", "true"], "the host node09 is none of the job's"),
        (["-u", "/nothing", "true"], "No such file"),
        (["-Z", "true"], "illegal option -- -Z"),
        ([], "no command"),
    ],
    ids=["host", "file", "option", "command"],
)
def test_tasks_that_cannot_start_are_refused(
    scheduler: FakeScheduler, words: list[str], refusal: str
) -> None:
    result = _call(scheduler, _job(scheduler), "blaunch", *words)

    assert not isinstance(result, TaskLaunch)
    assert (result.returncode > 0, refusal in result.stderr) == (True, True)


def test_blaunch_needs_a_job(scheduler: FakeScheduler) -> None:
    assert "not called in a job" in _call(scheduler, {}, "blaunch", "true").stderr


@pytest.mark.parametrize("fake_system", [lsf, volclava], ids=["lsf", "volclava"])
def test_mpirun_starts_ranks_in_the_slots_of_the_job(
    scheduler: FakeScheduler, fake_system: FakeSystem
) -> None:
    environment = _job(scheduler, fake_system=fake_system)

    result = _call(scheduler, environment, "mpirun", "true", fake_system=fake_system)

    assert isinstance(result, TaskLaunch)
    assert [it.environment["OMPI_COMM_WORLD_LOCAL_RANK"] for it in result.tasks] == ["0", "1", "0", "1"]
    assert environment.get("LSB_DJOB_NUMPROC") == ("4" if fake_system is lsf else None)


@pytest.mark.parametrize("command", ["blaunch", "mpirun", "mpiexec"])
def test_every_command_fails_while_the_daemon_is_down(command: str) -> None:
    assert command in lsf.unreachable(command).stderr
