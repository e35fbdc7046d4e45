"""A program inside an allocation that runs jobs on all its nodes."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1

_PROGRAM = """\
import sys
from datetime import timedelta
import jpsi
from jpsi_pilot.config import PilotConfig
from jpsi_testing.conformance.base import Gate
from pilot_support import wait_for_node
from pathlib import Path

gate = Gate(Path(sys.argv[1], "gate"))
config = PilotConfig(
    work_directory=sys.argv[1], target="here", nodes_per_pilot=2, cores_per_node=4, launcher="srun",
    idle_time=timedelta(seconds=2), walltime=timedelta(minutes=5),
)
spec = gate.job()
spec.attributes = jpsi.JobAttributes(duration=timedelta(minutes=1))
with jpsi.JobExecutor.get_instance("pilot", config=config) as executor:
    jobs = [jpsi.Job(spec) for _ in range(8)]
    executor.submit_many(jobs)
    nodes = [wait_for_node(executor, job) for job in jobs]
    gate.open()
    print(*sorted(nodes.count(node) for node in set(nodes)), *[job.wait().exit_code for job in jobs])
"""


def test_jobs_run_on_both_nodes_of_the_allocation_that_a_program_is_in(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    spec = JobSpec(
        sys.executable,
        [str(tmp_path / "program.py"), str(tmp_path / "inner")],
        launcher="single",
        stdout_path=tmp_path / "out",
        stderr_path=tmp_path / "err",
        resources=ResourceSpecV1(
            node_count=2, processes_per_node=1, cpu_cores_per_process=4, memory=4 * 2**30
        ),
        attributes=JobAttributes(duration=timedelta(minutes=10)),
    )
    with JobExecutor.get_instance("nodes") as executor:
        job = Job(spec)
        executor.submit(job)
        status = job.wait(240)

    assert status is not None
    assert status.state is JobState.COMPLETED, (tmp_path / "err").read_text()
    assert (tmp_path / "out").read_text() == "4 4 0 0 0 0 0 0 0 0\n"
