"""Blocks of Parsl on this machine and on a fake Slurm, without Parsl's executors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from parsl.jobs.states import JobState, JobStatus
from parsl.launchers import SimpleLauncher, SingleNodeLauncher
from parsl.providers.errors import SubmitException

import jpsi
from jpsi_testing.fake import on_path
from parsl_jpsi import JpsiProvider
from parsl_jpsi.block_status import block_status


@pytest.fixture(params=["local", "slurm"])
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JpsiProvider]:
    """A provider on this machine, then one on a fake Slurm."""
    with on_path("slurm"):
        provider = JpsiProvider(request.param)
        provider.script_dir = str(tmp_path)
        yield provider


def _end(provider: JpsiProvider, job_id: str) -> JobStatus:
    provider.resources[job_id].wait()
    (status,) = provider.status([job_id])
    return status


def _spec(provider: JpsiProvider, tasks_per_node: int = 1) -> jpsi.JobSpec:
    return provider._make_spec("work", tasks_per_node, "block")


def _resources(provider: JpsiProvider, tasks_per_node: int = 1) -> jpsi.ResourceSpecV1:
    resources = _spec(provider, tasks_per_node).resources
    assert isinstance(resources, jpsi.ResourceSpecV1)
    return resources


def _failed(reason: jpsi.Reason, state: jpsi.JobState = jpsi.JobState.FAILED) -> JobStatus:
    job = jpsi.Job(jpsi.JobSpec("true"))
    job._statuses.append(jpsi.JobStatus(state, reason=reason, message="so it ended"))
    return block_status(job)


def test_a_block_runs_in_bash_with_its_output_beside_parsls_scripts(provider: JpsiProvider) -> None:
    job_id = provider.submit("words=(two words); echo ${words[1]}; echo wrong >&2", 1)

    status = _end(provider, job_id)

    assert (status.state, status.exit_code) == (JobState.COMPLETED, 0)
    assert (status.stdout, status.stderr) == ("words\n", "wrong\n")
    assert Path(status.stdout_path or "").parent == Path(provider.script_dir or "")


def test_a_failed_block_tells_its_reason_and_where_to_read_more(provider: JpsiProvider) -> None:
    job_id = provider.submit("exit 3", 1)

    status = _end(provider, job_id)

    assert (status.state, status.exit_code) == (JobState.FAILED, 3)
    assert status.message == (f"exit_code: the executable returned exit code 3. More: jpsi explain {job_id}")


def test_the_states_of_many_blocks_are_read_at_once_and_those_cancelled_are_cancelled(
    provider: JpsiProvider,
) -> None:
    job_ids: list[object] = [provider.submit("sleep 1000", 1) for _ in range(2)]
    for job_id in job_ids:
        provider.resources[job_id].wait(jpsi.JobState.ACTIVE)

    running = [it.state for it in provider.status([*job_ids, "other"])]
    cancelled = provider.cancel([job_ids[1], "other", job_ids[0]])

    assert running == [JobState.RUNNING, JobState.RUNNING, JobState.UNKNOWN]
    assert cancelled == [True, False, True]
    for job_id in job_ids:
        assert _end(provider, str(job_id)).state is JobState.CANCELLED


def test_blocks_that_had_to_end_are_no_failures_for_parsl() -> None:
    assert _failed(jpsi.Reason.TIMEOUT).state is JobState.TIMEOUT
    assert _failed(jpsi.Reason.PREEMPTED).state is JobState.TIMEOUT
    assert _failed(jpsi.Reason.NODE_FAIL).state is JobState.FAILED
    assert _failed(jpsi.Reason.TIMEOUT).message is not None
    assert str(_failed(jpsi.Reason.TIMEOUT).message).startswith("timeout: so it ended. More: jpsi explain ")
    assert _failed(jpsi.Reason.CANCELLED, jpsi.JobState.CANCELED).state is JobState.CANCELLED


def test_a_block_on_this_machine_that_reaches_its_walltime_is_a_timeout(tmp_path: Path) -> None:
    provider = JpsiProvider("local", duration=timedelta(milliseconds=1))

    assert _end(provider, provider.submit("sleep 1000", 1)).state is JobState.TIMEOUT


def test_what_a_block_requests_is_what_jpsi_calls_it() -> None:
    provider = JpsiProvider(
        "local",
        nodes_per_block=2,
        cores_per_node=8,
        mem_per_node=1.5,
        gpus_per_node=2,
        exclusive=True,
        duration="2h",
        queue_name="long",
        project_name="physics",
        custom_attributes={"slurm.qos": "debug"},
    )

    spec = _spec(provider, 2)

    assert spec.resources == jpsi.ResourceSpecV1(
        node_count=2,
        processes_per_node=2,
        cpu_cores_per_process=4,
        gpu_cores_per_process=1,
        exclusive_node_use=True,
        memory=3 * 2**30,
    )
    assert spec.attributes == jpsi.JobAttributes(
        duration=timedelta(hours=2),
        queue_name="long",
        project_name="physics",
        custom_attributes={"slurm.qos": "debug"},
    )
    assert spec.environment == {"PARSL_MEMORY_GB": "1.5", "PARSL_CORES": "4"}
    assert (spec.launcher, spec.name) == (None, "block")
    assert _resources(JpsiProvider("local")).memory is None


def test_a_launcher_is_jpsis_by_its_name_or_one_of_parsl_on_the_first_node() -> None:
    assert _spec(JpsiProvider("local", launcher="srun")).launcher == "srun"

    spec = _spec(JpsiProvider("local", launcher=SingleNodeLauncher(), nodes_per_block=2))

    assert spec.launcher == "single"
    assert "WORKERCOUNT=2" in (spec.arguments or ())[1]
    assert _resources(JpsiProvider("local", launcher=SimpleLauncher(), nodes_per_block=2)).node_count == 2


def test_worker_init_comes_first() -> None:
    spec = _spec(JpsiProvider("local", worker_init="module load python\n. ${HOME}/venv/bin/activate"))

    assert spec.arguments == ["-c", "module load python\n. $${HOME}/venv/bin/activate\nwork"]


def test_what_jpsi_refuses_is_an_error_of_parsl_with_its_message() -> None:
    with pytest.raises(SubmitException, match=r"Cannot launch job block: .*nonsense"):
        JpsiProvider("local", launcher="nonsense").submit("true", 1, "block")


def test_parsl_can_show_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JpsiProvider, "_validate_repr", True)

    provider = JpsiProvider("local", max_blocks=3)

    assert "max_blocks=3" in repr(provider)
    assert (provider.label, provider.status_polling_interval) == ("local", 1)
