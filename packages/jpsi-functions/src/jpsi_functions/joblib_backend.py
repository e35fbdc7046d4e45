"""A backend of joblib whose tasks are jobs.

    import joblib
    from jpsi_functions import joblib_backend

    joblib_backend.register()
    with joblib.parallel_config(backend="jpsi", name="slurm", walltime="1h", n_jobs=100):
        joblib.Parallel(batch_size=20)(joblib.delayed(simulate)(it) for it in range(10_000))

Each job makes the calls of one batch, so that `batch_size` says how many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from joblib import ParallelBackendBase, register_parallel_backend  # type: ignore[import-untyped]

from .executor import FunctionExecutor
from .futures import CallFuture

# The number of jobs at a time for `n_jobs=-1`, where the batch system sets the limit.
_JOBS = 64


def register() -> None:
    """Make the backend known to joblib by the name `jpsi`."""
    register_parallel_backend("jpsi", JpsiBackend)


class JpsiBackend(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """A backend of joblib; its arguments are those of `FunctionExecutor`."""

    default_n_jobs = -1
    supports_retrieve_callback = True
    supports_timeout = True

    def __init__(
        self,
        nesting_level: int | None = None,
        inner_max_num_threads: int | None = None,
        **options: Any,  # noqa: ANN401  the executor's
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._options = options
        self._executor: FunctionExecutor | None = None
        self._futures: set[CallFuture[Any]] = set()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return the number of jobs at a time."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        return n_jobs if n_jobs is not None and n_jobs > 0 else self._options.get("max_workers") or _JOBS

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:  # noqa: ANN401  joblib has no types
        """Open the executor; return the number of jobs at a time."""
        self.parallel = parallel
        self._executor = FunctionExecutor(**self._options)
        return self.effective_n_jobs(n_jobs)

    def terminate(self) -> None:
        """Shut the executor down."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def submit(
        self, func: Callable[[], Any], callback: Callable[[Any], Any] | None = None
    ) -> CallFuture[Any]:
        """Submit a batch of tasks."""
        assert self._executor is not None  # noqa: S101  joblib configures a backend first
        future = self._executor.submit(func)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: CallFuture[Any]) -> Any:  # noqa: ANN401  as the tasks return
        """Return the results of a batch."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: FBT001, FBT002, ARG002  joblib's signature
        """Cancel all jobs, as a task has failed."""
        for future in list(self._futures):
            future.cancel()
