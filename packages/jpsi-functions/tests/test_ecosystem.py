"""Libraries that work with executors of concurrent.futures: joblib, dask and tqdm."""

from __future__ import annotations

from concurrent.futures import as_completed

import pytest

import functions_to_call as calls
from jpsi_functions import FunctionExecutor


def test_joblib_runs_tasks_as_jobs() -> None:
    joblib = pytest.importorskip("joblib")
    joblib_backend = pytest.importorskip("jpsi_functions.joblib_backend")
    joblib_backend.register()

    with joblib.parallel_backend("jpsi", name="local", n_jobs=4):
        results = joblib.Parallel(batch_size=3)(joblib.delayed(calls.square)(it) for it in range(10))

    assert results == [it * it for it in range(10)]


def test_joblib_raises_what_a_task_raised() -> None:
    joblib = pytest.importorskip("joblib")
    joblib_backend = pytest.importorskip("jpsi_functions.joblib_backend")
    joblib_backend.register()

    with joblib.parallel_config(backend="jpsi", name="local", n_jobs=2), pytest.raises(ZeroDivisionError):
        joblib.Parallel()(joblib.delayed(calls.divide)(1, it) for it in (1, 0, 2))


def test_dask_computes_on_the_executor(executor: FunctionExecutor) -> None:
    dask = pytest.importorskip("dask")
    total = dask.delayed(sum)([dask.delayed(calls.square)(it) for it in range(4)])

    assert dask.compute(total, scheduler=executor) == (14,)


def test_tqdm_shows_the_progress_of_map(
    executor: FunctionExecutor, capsys: pytest.CaptureFixture[str]
) -> None:
    tqdm = pytest.importorskip("tqdm")

    results = list(tqdm.tqdm(executor.map(calls.square, range(5)), total=5))
    assert results == [0, 1, 4, 9, 16]
    assert "5/5" in capsys.readouterr().err
    futures = [executor.submit(calls.square, it) for it in range(3)]
    assert sum(it.result() for it in tqdm.tqdm(as_completed(futures), total=3)) == 5
