"""The jobs of a cluster: what they request, and the script that they run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dask
import pytest

import jpsi
from dask_jpsi import JpsiJob
from jpsi_testing.fake import on_path


@pytest.fixture(autouse=True)
def _slurm() -> Iterator[None]:
    with on_path("slurm"):
        yield


def _job(**options: Any) -> JpsiJob:
    return JpsiJob("tcp://127.0.0.1:8786", "worker-0", **{"cores": 4, "memory": "2GiB", **options})


def test_a_job_requests_the_cores_and_memory_of_its_workers() -> None:
    spec = _job(processes=2, gpus=1, walltime="2h", queue="long", account="physics")._make_spec("work")

    assert spec.resources == jpsi.ResourceSpecV1(
        cpu_cores_per_process=4, gpu_cores_per_process=1, memory=2 * 2**30
    )
    assert spec.attributes == jpsi.JobAttributes(
        duration=timedelta(hours=2), queue_name="long", project_name="physics", custom_attributes={}
    )
    assert (spec.name, spec.launcher) == ("dask-worker", "single")


def test_the_script_runs_in_the_interpreter_of_its_shebang_and_nothing_in_it_is_expanded() -> None:
    job = _job(shebang="#!/bin/sh -e", job_script_prologue=[". ${HOME}/venv/bin/activate"])

    spec = job._make_spec(job.job_script())

    assert (spec.executable, (spec.arguments or ())[:2]) == ("/bin/sh", ["-e", "-c"])
    assert "\n. $${HOME}/venv/bin/activate\n" in (spec.arguments or ())[2]


def test_the_script_shows_the_directives_of_the_batch_system() -> None:
    script = _job(executor="slurm", queue="long", job_extra_directives={"slurm.qos": "debug"}).job_script()

    assert script.startswith("#!/usr/bin/env bash\n\n#SBATCH --job-name=dask-worker\n")
    assert "\n#SBATCH --partition=long\n" in script
    assert "\n#SBATCH --qos=debug\n" in script
    assert " -m distributed.cli.dask_worker tcp://127.0.0.1:8786 --name worker-0 " in script


def test_the_script_shows_why_jpsi_would_refuse_the_job() -> None:
    script = _job(executor="slurm", gpus=-1).job_script()

    assert "\n# jpsi: " in script
    assert "gpu_cores_per_process" in script


def test_the_configuration_of_dask_has_the_defaults_of_jobs() -> None:
    with dask.config.set({"jobqueue.jpsi.executor": "slurm", "jobqueue.jpsi.walltime": "1h"}):
        job = _job()

    assert job._requests.executor.name == "slurm"
    assert job._attributes.duration == timedelta(hours=1)


def test_directives_are_no_text_that_could_be_skipped() -> None:
    with pytest.raises(ValueError, match="instead of job_directives_skip, request less"):
        _job(job_directives_skip=["--mem"])
