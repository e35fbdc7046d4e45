"""The eight examples of the specification's Appendix C, with the field names of the specification.

They were written for a cluster: `local` replaces the batch systems that they name, and a sleep there
of ten seconds lasts a hundredth here. Two need several processes; while no launcher for those is
installed they must fail with that reason. test_specification.py of jpsi-slurm tests their requests to a batch
system, and that of jpsi-pbs the throttling on Torque.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi as psij

N, M = 30, 4
PATIENCE = 60


def make_job(seconds: str = "0.01") -> psij.Job:
    job = psij.Job()
    spec = psij.JobSpec()
    spec.executable = "/bin/sleep"
    spec.arguments = [seconds]
    job.spec = spec
    return job


@pytest.mark.clause("example-wait")
def test_submit_and_wait_for_n_jobs() -> None:
    jex = psij.JobExecutor.get_instance("local")

    jobs = []
    for _ in range(N):
        job = make_job()
        jobs.append(job)
        jex.submit(job)
    for job in jobs:
        job.wait()

    assert {job.status.state for job in jobs} == {psij.JobState.COMPLETED}


class ThrottledSubmitter:
    def __init__(self) -> None:
        self.jex = psij.JobExecutor.get_instance("local", ">= 0.1")
        # keep track of completed jobs so that we can submit the rest
        self.jex.set_job_status_callback(self.callback)
        self.count = 0
        self.active = 0
        self.most_active = 0
        self.lock = threading.Lock()

    def submit_next(self) -> None:
        with self.lock:
            if self.count == N:
                return
            job = self.jobs[self.count]
            self.count += 1
            self.active += 1
            self.most_active = max(self.active, self.most_active)
        self.jex.submit(job)

    def start(self) -> None:
        # create list of jobs
        self.jobs = [make_job() for _ in range(N)]
        # submit initial M jobs
        for _ in range(M):
            self.submit_next()

    def callback(self, job: psij.Job, status: psij.JobStatus) -> None:
        if status.final:
            # a previously submitted job is now done, we have room to submit another
            with self.lock:
                self.active -= 1
            self.submit_next()


def test_run_n_jobs_while_throttling_to_m_concurrent_jobs() -> None:
    submitter = ThrottledSubmitter()

    submitter.start()
    for job in submitter.jobs:
        assert job.wait(PATIENCE) is not None

    assert submitter.most_active <= M


@pytest.mark.clause("example-malformed")
def test_submit_a_malformed_job() -> None:
    jex = psij.JobExecutor()
    job_1 = psij.Job()
    job_2 = psij.Job()
    spec_1 = psij.JobSpec()
    spec_2 = psij.JobSpec()
    spec_1.executable = "/bin/true"
    spec_2.executable = True  # type: ignore[assignment]  # the type error is the example
    job_1.spec = spec_1
    job_2.spec = spec_2

    jex.submit(job_1)
    with pytest.raises(psij.InvalidJobException, match="executable must be text, not True"):
        jex.submit(job_2)

    job_1.wait()
    assert job_1.status.state is psij.JobState.COMPLETED
    assert job_2.status.state is psij.JobState.NEW


@pytest.mark.clause("cancel-wait", "example-cancel")
def test_submit_a_job_wait_for_queued_cancel_it_and_wait_for_the_final_event() -> None:
    jex = psij.JobExecutor.get_instance("local")
    job = make_job("100")

    jex.submit(job)
    job.wait([psij.JobState.QUEUED])
    job.cancel()
    job.wait()

    assert job.status.state is psij.JobState.CANCELED
    assert [it.state for it in job._delivered_statuses()][1] is psij.JobState.QUEUED


def assert_needs_a_launcher(jex: psij.JobExecutor, job: psij.Job) -> None:
    with pytest.raises(psij.InvalidJobException, match="install jpsi-launchers"):
        jex.submit(job)


def test_run_a_job_with_p_processes_of_c_cores_and_g_gpus(no_launchers: None, tmp_path: Path) -> None:
    res_spec = psij.ResourceSpecV1()
    res_spec.process_count = 10
    res_spec.cpu_cores_per_process = 4
    res_spec.gpu_cores_per_process = 1
    job_spec = psij.JobSpec()
    job_spec.executable = "echo"
    job_spec.arguments = ["foo", "bar", "buz"]
    job_spec.directory = tmp_path
    job_spec.stdin_path = Path("/dev/null")
    job_spec.stdout_path = Path("work.out")
    job_spec.stderr_path = Path("work.err")
    job_spec.resources = res_spec
    job = psij.Job()
    job.spec = job_spec

    assert_needs_a_launcher(psij.JobExecutor(), job)

    # the same with one process
    res_spec.process_count = 1
    jex = psij.JobExecutor()
    jex.submit(job)
    job.wait()
    assert (tmp_path / "work.out").read_text() == "foo bar buz\n"


def test_n_exclusive_nodes_each_with_p_processes() -> None:
    res_spec = psij.ResourceSpecV1()
    res_spec.exclusive_node_use = True
    res_spec.process_count = 10
    res_spec.processes_per_node = 2
    job_spec = psij.JobSpec()
    job_spec.executable = "workload.py"
    job_spec.arguments = ["foo", "bar", "buz"]
    job_spec.resources = res_spec
    job = psij.Job()
    job.spec = job_spec

    with pytest.raises(psij.InvalidJobException, match="local is one machine, but the job needs 5 nodes"):
        psij.JobExecutor().submit(job)


def test_a_job_that_uses_all_the_knobs(no_launchers: None, tmp_path: Path) -> None:
    res_spec = psij.ResourceSpecV1()
    res_spec.exclusive_node_use = False  # other jobs can run on the job's nodes
    res_spec.process_count = 10  # run a total of 10 ranks
    res_spec.processes_per_node = 10  # place 10 ranks per node
    res_spec.cpu_cores_per_process = 4  # each rank obtains 4 cores
    res_spec.gpu_cores_per_process = 2  # ... and 2 GPUs
    job_spec = psij.JobSpec()
    job_spec.name = "psij_example"  # common name to identify job
    job_spec.directory = tmp_path / "foo"  # dir to create for the job
    job_spec.create_directory = True
    job_spec.executable = "env"  # executable or script to run
    job_spec.arguments = []
    job_spec.resources = res_spec  # resources to allocate (see above)
    # we use the default environment, but also set some additional environment variables
    job_spec.inherit_environment = True
    job_spec.environment = {"FOO": "foo", "BAR": "bar"}
    job_spec.attributes = psij.JobAttributes(
        duration=timedelta(seconds=1000),  # expected job runtime
        queue_name="debug",  # batch queue to submit to
        project_name="psij_devel",  # project allocation to use
        reservation_id="R123_456",  # reservation ID to use
    )
    job = psij.Job()
    job.spec = job_spec
    jex = psij.JobExecutor()

    assert_needs_a_launcher(jex, job)

    # the same with one process
    res_spec.process_count = res_spec.processes_per_node = 1
    jex.submit(job)
    status = job.wait()
    assert status is not None
    assert status.state is psij.JobState.COMPLETED
    assert job.streams is not None
    assert {"FOO=foo", "BAR=bar"} <= set(job.streams.stdout.read_text().splitlines())


def submit_with_exponential_backoff(
    jex: psij.JobExecutor, job: psij.Job, sleep: Callable[[float], None]
) -> None:
    times_attempted = 0
    while True:
        try:
            jex.submit(job)
        except psij.SubmitException as se:
            if not se.is_transient():
                raise  # re-raise to let caller see and handle it
            times_attempted += 1
            sleep(random.randint(0, 2**times_attempted - 1))
        else:
            break


@pytest.mark.clause("exception-transient", "example-retry")
def test_submit_a_job_check_for_transient_error_retry_if_one_occurred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jex = psij.JobExecutor.get_instance("local")
    job = make_job()
    slept: list[float] = []

    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 2:
                patch.undo()

        patch.setattr("jpsi_engine.host.write_all", full)
        submit_with_exponential_backoff(jex, job, sleep)
    job.wait()

    assert len(slept) == 2
    assert job.status.state is psij.JobState.COMPLETED
