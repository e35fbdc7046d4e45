"""The transports for tests: a fake batch system in this process, and recorded answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState, Reason
from jpsi.plugin import BatchConfig, Command, TransportError
from jpsi_testing import FakeTransport, PluginDirectory, ReplayTransport, read_recordings, toy, toy_fake
from jpsi_testing.fake import FakeClock, FakeScheduler, Outcome

TIMEOUT_SECONDS = 30
_SECOND = timedelta(seconds=1)


@pytest.fixture
def transport(fake_scheduler: FakeScheduler) -> FakeTransport:
    return FakeTransport(fake_scheduler, "toy")


@pytest.fixture
def executor(
    transport: FakeTransport, plugin_directory: PluginDirectory, tmp_path: Path
) -> Iterator[JobExecutor]:
    plugin_directory.add(
        "jpsi-toy",
        entry_points={"jpsi.executors": {"toy": "toy_plugin"}},
        files={"toy_plugin.py": Path(toy.__file__).read_text()},
    )
    config = BatchConfig(
        work_directory=tmp_path / "work",
        shortest_interval=0.02 * _SECOND,
        longest_interval=0.05 * _SECOND,
        grace=0.05 * _SECOND,
    )
    with JobExecutor.get_instance("toy", url=transport.url, config=config) as executor:
        yield executor


def test_a_simulated_job_follows_the_clock(
    executor: JobExecutor, fake_scheduler: FakeScheduler, fake_clock: FakeClock
) -> None:
    fake_scheduler.outcomes["seven"] = Outcome(seconds=60, exit_code=7)
    job = Job(JobSpec("/bin/true", name="seven"))

    executor.submit(job)
    assert job.wait(TIMEOUT_SECONDS, target_states=JobState.ACTIVE)
    fake_clock.advance(60)
    status = job.wait(TIMEOUT_SECONDS)

    assert status is not None
    assert (status.state, status.exit_code, status.evidence) == (JobState.FAILED, 7, jpsi.Evidence.QUEUE)


def test_a_simulated_job_exceeds_its_time_limit(
    executor: JobExecutor, fake_scheduler: FakeScheduler, fake_clock: FakeClock
) -> None:
    job = Job(JobSpec("/bin/true", attributes=jpsi.JobAttributes(duration=10 * _SECOND)))

    executor.submit(job)
    fake_clock.advance(60)
    status = job.wait(TIMEOUT_SECONDS)

    assert status is not None
    assert (status.state, status.reason) == (JobState.FAILED, Reason.TIMEOUT)
    assert fake_scheduler.jobs[0].time_limit == 10


def test_a_hanging_command_times_out_immediately(
    transport: FakeTransport, fake_scheduler: FakeScheduler
) -> None:
    fake_scheduler.faults.hang("tstat")

    result = transport.run(Command(["tstat"], timeout=3600 * _SECOND))

    assert result.timed_out
    assert transport.is_local


def test_a_shell_finds_the_commands(transport: FakeTransport, fake_scheduler: FakeScheduler) -> None:
    command = Command(["/bin/sh", "-c", '"$0" --all && cat && echo $A', "tstat"], stdin="b\n")

    result = transport.run(attrs.evolve(command, environment={"A": "c"}))

    assert (result.returncode, result.stdout.splitlines()[-2:]) == (0, ["b", "c"])
    assert [call.command for call in fake_scheduler.log] == ["tstat"]


def test_a_hanging_command_of_a_shell_times_out_immediately(
    transport: FakeTransport, fake_scheduler: FakeScheduler
) -> None:
    fake_scheduler.faults.hang("tstat")

    assert transport.run(Command(["/bin/sh", "-c", "tstat; tstat"], timeout=3600 * _SECOND)).timed_out


def test_a_command_gets_its_environment(
    transport: FakeTransport, fake_scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_LEAK", "x")
    transport.run(Command(["/opt/toy/tstat"], unset=["TOY_*"], environment={"A": "b"}))

    (call,) = fake_scheduler.log
    assert call.command == "tstat"
    assert call.invocation.environment["A"] == "b"
    assert "TOY_LEAK" not in call.invocation.environment


def test_a_missing_command_is_an_error(transport: FakeTransport) -> None:
    with pytest.raises(TransportError, match="the command sbatch was not found on PATH"):
        transport.run(Command(["sbatch"]))


def test_a_missing_transport_is_named(transport: FakeTransport) -> None:
    with pytest.raises(jpsi.PluginError, match=r"no FakeTransport of this process has the url fake://none"):
        JobExecutor.get_instance("local", url="fake://none")


def test_a_transport_may_have_a_name(fake_scheduler: FakeScheduler) -> None:
    assert FakeTransport(fake_scheduler, toy_fake, "mine").url == "fake://mine"


# Recordings.


def step(argv: list[str], rc: int | None, stdout: str = "", **rest: Any) -> dict[str, Any]:
    return {"argv": argv, "stdin": None, "files": {}, "rc": rc, "stdout": stdout, "stderr": "", **rest}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    folder = tmp_path / "recorded"
    folder.mkdir()
    first = [
        step(["squeue", "-j", "1"], 0, "RUNNING", seconds=0.01, env={"A": "b"}, note="while it runs"),
        step(["squeue", "-j", "1"], 1, "gone"),
    ]
    for name, steps in {"a": first, "b": [step(["sbatch"], None, stdin="#!/bin/sh")]}.items():
        scenario = {"lrm": "Slurm", "version": "22.05.8", "scenario": name, "note": "", "steps": steps}
        (folder / f"{name}.json").write_text(json.dumps(scenario))
    return folder


def test_recordings_are_read_with_all_fields(recorded: Path) -> None:
    first, second, killed = read_recordings(recorded)

    assert str(first) == "Slurm 22.05.8, a: squeue -j 1"
    assert (first.note, first.environment["A"], first.details["seconds"]) == ("while it runs", "b", 0.01)
    assert (second.result.returncode, second.result.stdout) == (1, "gone")
    assert (killed.stdin, killed.result.timed_out) == ("#!/bin/sh", True)
    assert read_recordings(recorded / "b.json") == [killed]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"lrm": 1, "version": 1, "scenario": 1, "steps": [1]}'])
def test_an_invalid_recording_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)

    with pytest.raises(ValueError, match=r"x\.json is no recording"):
        read_recordings(file)


def test_recorded_results_are_replayed_in_order_and_the_last_repeats(recorded: Path) -> None:
    transport = ReplayTransport(read_recordings(recorded))
    command = Command(["squeue", "-j", "1"])

    assert [transport.run(command).stdout for _ in range(3)] == ["RUNNING", "gone", "gone"]
    assert transport.commands == [command] * 3
    assert transport.is_local


def test_a_command_without_a_recording_is_named(recorded: Path) -> None:
    with pytest.raises(TransportError, match=r"there is no recording of \['squeue', '-j', '2'\]"):
        ReplayTransport(read_recordings(recorded)).run(Command(["squeue", "-j", "2"]))
