"""Clusters on this machine and on a fake Slurm."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from distributed import Client

import jpsi
from dask_jpsi import JpsiCluster, JpsiJob
from jpsi_engine import job_store
from jpsi_testing.fake import on_path

_PATIENCE = 300


@pytest.fixture(autouse=True)
def _slurm() -> Iterator[None]:
    with on_path("slurm"):
        yield


def _cluster(executor: str = "local", **options: Any) -> JpsiCluster:
    """Return a cluster with workers that are single processes, which start fast."""
    small = {"cores": 1, "memory": "500MB", "nanny": False}
    return JpsiCluster(
        executor=executor, scheduler_options={"dashboard_address": ":0"}, **{**small, **options}
    )


def test_workers_are_jobs_of_slurm_that_compute_and_end_with_the_cluster() -> None:
    with _cluster("slurm") as cluster:
        cluster.scale(jobs=2)
        with Client(cluster) as client:
            client.wait_for_workers(2, timeout=_PATIENCE)
            assert client.gather(client.map(abs, range(-3, 0))) == [3, 2, 1]
        jobs = [it._job for it in cluster.workers.values()]
        assert cluster.dashboard_link.startswith("http://")

    assert len(jobs) == 2
    # a worker that Dask has told to end may do so before its job is cancelled
    assert {job.wait().state for job in jobs} <= {jpsi.JobState.CANCELED, jpsi.JobState.COMPLETED}


def test_jobs_that_start_together_are_one_array(caplog: pytest.LogCaptureFixture) -> None:
    with _cluster("slurm") as cluster:
        cluster.scale(jobs=3)
        with Client(cluster) as client:
            client.wait_for_workers(3, timeout=_PATIENCE)
        ids = {it.native_id or "" for it in job_store.jobs()}
        assert len({it.partition("_")[0] for it in ids}) == 1
        assert len(ids) == 3
    assert not [it for it in caplog.records if it.name.startswith("dask_jpsi")]


def test_several_kinds_of_workers_are_in_one_cluster() -> None:
    kinds = {
        "big": {"cores": 2, "processes": 2, "nanny": True, "worker_extra_args": ["--resources", "BIG=1"]}
    }
    with _cluster(kinds=kinds) as cluster:
        cluster.scale(jobs=1)
        cluster.scale(n=2, kind="big")
        with Client(cluster) as client:
            client.wait_for_workers(3, timeout=_PATIENCE)
            assert client.submit(sum, [1, 2], resources={"BIG": 1}).result() == 3
        assert "--resources BIG=1" in cluster.job_script("big")
        assert "BIG" not in cluster.job_script()

        cluster.scale(jobs=0)

        assert [spec.get("kind") for spec in cluster.worker_spec.values()] == ["big"]
        with pytest.raises(ValueError, match="no kind of workers 'huge'; there are: big"):
            cluster.scale(jobs=1, kind="huge")


@pytest.mark.parametrize("kinds", [{}, {"idle": {"worker_extra_args": []}}], ids=["one", "two"])
def test_a_cluster_adapts_to_its_work_and_further_kinds_stay(kinds: dict[str, dict[str, Any]]) -> None:
    own = ["--resources", "OWN=1"]
    with _cluster(kinds=kinds, worker_extra_args=own) as cluster, Client(cluster) as client:
        for kind in kinds:
            cluster.scale(jobs=1, kind=kind)
        cluster.adapt(minimum=0, maximum=2, interval="20ms", wait_count=1)

        assert client.submit(abs, -1, resources={"OWN": 1}).result(timeout=_PATIENCE) == 1

        while [it for it in cluster.worker_spec.values() if it.get("kind") is None]:
            time.sleep(0.01)
        assert [it.get("kind") for it in cluster.worker_spec.values()] == list(kinds)


async def _start(cluster: JpsiCluster) -> None:
    """Wait until the jobs of all workers were submitted."""
    await cluster


def test_a_job_that_ends_by_itself_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "dask_jpsi")
    with _cluster(python="/bin/false") as cluster:
        cluster.scale(jobs=1)
        cluster.sync(_start, cluster)
        (worker,) = cluster.workers.values()
        worker._job.wait()

        (record,) = [it for it in caplog.records if it.name.startswith("dask_jpsi")]
        assert (
            "ended: FAILED, exit code 1: the executable returned exit code 1, exit_code. " in record.message
        )
        assert f"More: jpsi explain {worker.job_id}" in record.message


def test_a_worker_that_is_closed_while_it_is_submitted_is_cancelled() -> None:
    worker = JpsiJob("tcp://127.0.0.1:1", "w", "local", cores=1, memory="100MB", python="sleep 100 #")

    async def submit_and_close() -> None:
        submission = asyncio.ensure_future(worker._submit_job(""))
        await asyncio.sleep(0)
        await worker.close()
        await submission

    asyncio.run(submit_and_close())

    assert worker._job.wait().state is jpsi.JobState.CANCELED


def test_dask_logs_why_a_job_was_not_submitted(caplog: pytest.LogCaptureFixture) -> None:
    with _cluster("slurm", queue="two words") as cluster:
        cluster.scale(jobs=1)
        cluster.sync(_start, cluster)

    assert "Invalid partition name specified" in caplog.text
    assert not [it for it in caplog.records if it.name.startswith("dask_jpsi")]


def test_wrong_parameters_of_a_kind_are_an_error_at_once() -> None:
    with pytest.raises(TypeError, match="nonsense"):
        _cluster(kinds={"big": {"nonsense": 1}})
