"""A real PBS or Torque whose server dies, whose qstat answers wrongly, and whose clients die."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import Job, JobExecutor
from jpsi_pbs import PbsConfig
from jpsi_testing.conformance.real_faults import GRACE, RealFaultTests


class TestFaultsOfPbs(RealFaultTests):
    status_commands = {"qstat": "*"}  # noqa: RUF012  as the base class has it
    # as OpenPBS 23.06.06: qsub had printed the ids of two jobs, of which the server then knew nothing
    forgets_new_jobs = True
    client_settings = {"array_size": 40}  # noqa: RUF012
    client_jobs = 100
    client_seconds = 0.3

    @pytest.fixture
    def executor(self, server_system: str, tmp_path: Path) -> Iterator[JobExecutor]:
        config = PbsConfig(
            work_directory=tmp_path / "work",
            shortest_interval=timedelta(seconds=0.5),
            longest_interval=timedelta(seconds=1),
            command_timeout=timedelta(seconds=5),
            grace=timedelta(seconds=GRACE),
        )
        with JobExecutor.get_instance(server_system, config=config) as executor:
            yield executor

    def is_stuck(self, executor: JobExecutor, job: Job) -> bool:
        """Return True if PBS shows a job in the state that it had when its server was killed.

        An element that OpenPBS 23.06.06 was starting may then be R with the substate 41 for ever, and never
        run; even qdel waits for ever. jpsi reports it as PBS does.
        """
        if executor.name != "pbs" or job.wait(self.patience / 2) is not None:
            return False
        found = executor.info(job)
        return found is not None and found.details.get("pbs.substate") == "41"
