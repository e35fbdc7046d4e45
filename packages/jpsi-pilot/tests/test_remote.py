"""Agent and pilots on a remote host, which is this machine with another home directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import Job, JobExecutor, JobState, SubmitException
from jpsi_pilot.config import PilotConfig
from jpsi_testing import RemoteTransport
from jpsi_testing.conformance.base import Gate, shell
from pilot_support import end_agent

PATIENCE = 120.0


@pytest.fixture
def remote_host(tmp_path: Path) -> Iterator[RemoteTransport]:
    """Yield the remote host; end all processes there after the test."""
    remote_host = RemoteTransport(tmp_path / "remote home")
    yield remote_host
    remote_host.up()
    end_agent(remote_host.home / "work" / "pilots")


def pilots(remote_host: RemoteTransport, python: str = sys.executable) -> JobExecutor:
    """Return an executor with pilots on the remote host."""
    config = PilotConfig(
        work_directory="~/work",
        python=python,
        kill_delay=timedelta(seconds=0.5),
        shortest_interval=timedelta(seconds=0.1),
        longest_interval=timedelta(seconds=0.3),
        grace=timedelta(seconds=1),
    )
    return JobExecutor.get_instance("pilot", url=remote_host.url, config=config)


def test_jobs_run_in_pilots_on_the_remote_host(remote_host: RemoteTransport) -> None:
    with pilots(remote_host) as executor:
        jobs = [Job(shell(f'echo "$HOME"; exit {number}')) for number in range(3)]
        executor.submit_many(jobs)
        for job in jobs:
            assert job.wait(PATIENCE), job

        assert [job.status.exit_code for job in jobs] == [0, 1, 2]
        output = executor.output(jobs[0])
        assert output is not None
        assert output.read().data.decode() == f"{remote_host.home}\n"
    assert (remote_host.home / "work" / "pilots" / "journal").exists()


def test_a_job_runs_on_without_a_connection_and_another_machine_recovers_it(
    remote_host: RemoteTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(tmp_path / "gate")
    with pilots(remote_host) as executor:
        ends, stays = [Job(it.job(7)) for it in (gate, Gate(tmp_path / "never"))]
        executor.submit(ends)
        assert ends.wait(PATIENCE, target_states=JobState.ACTIVE), ends
        executor.submit(stays)
        remote_host.down()
        with pytest.raises(SubmitException):
            executor.submit(Job(gate.job()))
        gate.open()
        remote_host.up()
        status = ends.wait(PATIENCE)

        assert status is not None
        assert status.exit_code == 7

        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
        with pilots(remote_host) as other:
            (found,) = other.recover()
            assert found.native_id == stays.native_id
            found.cancel()
            status = found.wait(PATIENCE)
            assert status is not None
            assert status.state is JobState.CANCELED


def test_submit_fails_if_the_remote_python_does_not_exist(remote_host: RemoteTransport) -> None:
    with (
        pilots(remote_host, python="/nowhere/python") as executor,
        pytest.raises(SubmitException, match="the command /nowhere/python was not found"),
    ):
        executor.submit(Job(shell("exit 0")))
