"""The shutdown of an agent on a client's request."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.shutdown import leave
from jpsi_testing.waiting import eventually
from pilot_support import is_agent_running


def test_shutdown_ends_the_agent_and_its_pilots(tmp_path: Path) -> None:
    config = PilotConfig(work_directory=tmp_path, target="here")
    with JobExecutor.get_instance("pilot", config=config) as executor:
        job = Job(JobSpec("true", attributes=JobAttributes(duration=timedelta(minutes=1))))
        executor.submit(job)
        status = job.wait(120)
    assert status is not None
    assert status.state is JobState.COMPLETED
    assert is_agent_running(tmp_path / "pilots")

    leave(tmp_path)

    assert eventually(lambda: not is_agent_running(tmp_path / "pilots"))


def test_shutdown_does_nothing_without_an_agent(tmp_path: Path) -> None:
    leave(tmp_path)

    (tmp_path / "pilots").mkdir()
    (tmp_path / "pilots" / "agent.lock").write_text("1 another-machine\n")
    leave(tmp_path)

    assert not is_agent_running(tmp_path / "pilots")
