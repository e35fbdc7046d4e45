"""The consequences of a lost pilot, under any engine, and of a lost agent."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from jpsi import Job, JobExecutor, JobState, Reason
from jpsi_pilot.config import PilotConfig
from jpsi_testing.conformance.base import Gate, Proof, Sign, shell
from jpsi_testing.waiting import eventually
from pilot_support import PATIENCE, agent_pid, final_status, is_alive, processes, running_job, spec_with_proof

SUPERVISOR = "jpsi_pilot.node.node_supervisor"


def terminate_pilot(folder: Path) -> None:
    """End a pilot as an executor ends a job."""
    (supervisor,) = processes(folder, SUPERVISOR)
    os.killpg(os.getsid(supervisor.pid), signal.SIGTERM)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try each way to lose a pilot."""
    if "lose" in metafunc.fixturenames:
        metafunc.parametrize("lose", metafunc.cls.losses)


class LossTests:
    """Tests of an engine; a subclass has the fixtures `config`, `executor` and `folder`."""

    #: The ways to lose a pilot: functions of the agent's folder.
    losses: ClassVar[Sequence[Callable[[Path], None]]]

    def test_of_the_jobs_in_a_lost_pilot_one_fails_and_one_with_retry_runs_again(
        self, executor: JobExecutor, folder: Path, tmp_path: Path, lose: Callable[[Path], None]
    ) -> None:
        """They run beside each other, and no process of theirs is left."""
        sign, gate, proof = Sign(tmp_path / "sign"), Gate(tmp_path / "gate"), Proof(tmp_path / "proof")
        once = Job(shell('echo $$ > "$1"; echo > "$2"; sleep 1000', tmp_path / "pid", sign.path))
        again = Job(spec_with_proof(proof, gate, **{"pilot.retry_on_pilot_loss": True}))
        waiting = Job(shell("exit 4"))
        executor.submit_many([once, again])
        assert sign.wait(PATIENCE)
        assert eventually(lambda: proof.runs == 1, PATIENCE)
        for job in (once, again):
            assert job.wait(PATIENCE, target_states=JobState.ACTIVE), job
        pid = int((tmp_path / "pid").read_text())

        lose(folder)
        executor.submit(waiting)

        status = final_status(once)
        assert (status.state, status.reason) == (JobState.FAILED, Reason.NODE_FAIL)
        assert not is_alive(pid)
        assert eventually(lambda: proof.runs == 2, PATIENCE)
        assert final_status(waiting).exit_code == 4, "it runs in the next pilot"
        gate.open()
        assert final_status(again).exit_code == 3
        assert proof.runs == 2

    def test_a_job_with_retry_runs_again_if_nothing_else_needs_a_pilot(
        self, executor: JobExecutor, folder: Path, tmp_path: Path
    ) -> None:
        gate, proof = Gate(tmp_path / "gate"), Proof(tmp_path / "proof")
        job = running_job(executor, spec_with_proof(proof, gate, **{"pilot.retry_on_pilot_loss": True}))
        assert eventually(lambda: proof.runs == 1, PATIENCE)

        terminate_pilot(folder)
        assert eventually(lambda: proof.runs == 2, PATIENCE)
        gate.open()

        assert final_status(job).exit_code == 3
        assert proof.runs == 2

    def test_jobs_outlive_a_killed_agent_and_the_next_reports_their_ends(
        self, executor: JobExecutor, config: PilotConfig, folder: Path, tmp_path: Path
    ) -> None:
        gate, proofs = Gate(tmp_path / "gate"), [Proof(tmp_path / f"proof{number}") for number in range(4)]
        jobs = [Job(spec_with_proof(proof, gate)) for proof in proofs]
        executor.submit_many(jobs)
        for job in jobs[:2]:
            assert job.wait(PATIENCE, target_states=JobState.ACTIVE)

        os.kill(agent_pid(folder), signal.SIGKILL)
        gate.open()

        with JobExecutor.get_instance("pilot", config=config) as fresh:
            others = {it.id: it for it in fresh.recover()}
            assert [final_status(others.get(job.id, job)).exit_code for job in jobs] == [3] * 4
        assert [final_status(job).exit_code for job in jobs] == [3] * 4
        assert [proof.runs for proof in proofs] == [1] * 4
