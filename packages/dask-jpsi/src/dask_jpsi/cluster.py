"""The cluster: its jobs, of one kind or of several."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dask.utils import parse_bytes
from dask_jobqueue.core import JobQueueCluster
from distributed.core import Status
from distributed.deploy.adaptive import Adaptive
from distributed.utils import NoOpAwaitable

from .job import JpsiJob, open_requests
from .requests import JobRequests


class JpsiCluster(JobQueueCluster):  # type: ignore[misc]  # dask-jobqueue is not typed
    """A Dask cluster whose workers are jobs of any executor of jpsi.

    Parameters
    ----------
    cores : int
        Cores of a job.
    memory : str
        Memory of a job, such as 16GB.
    processes : int
        Workers of a job, which share its cores and memory.
    executor, url, queue, account, walltime, gpus, job_extra_directives :
        As in `JpsiJob`.
    kinds : dict
        Further kinds of workers, by name: what their jobs have in place of the cluster's own parameters,
        {"gpu": {"gpus": 1, "queue": "gpu", "worker_extra_args": ["--resources", "GPU=1"]}}.
        `scale(jobs=2, kind="gpu")` starts them.

    The other parameters are those that all clusters of dask-jobqueue have.
    """

    job_cls = JpsiJob

    def __init__(
        self,
        n_workers: int = 0,
        *args: Any,  # noqa: ANN401  dask-jobqueue's
        executor: str | JobRequests | None = None,
        url: str | None = None,
        kinds: Mapping[str, Mapping[str, Any]] | None = None,
        **options: Any,  # noqa: ANN401  dask-jobqueue's
    ) -> None:
        self._kinds = dict(kinds or {})
        config_name = options.get("config_name") or self.job_cls.config_name
        requests = open_requests(config_name, executor, url)
        super().__init__(0, *args, executor=requests, **options)
        for kind in self._kinds:
            self._sample(kind)  # raises if the parameters are wrong
        if n_workers:
            self.scale(n_workers)

    def scale(
        self,
        n: int | None = None,
        jobs: int = 0,
        memory: str | None = None,
        cores: int | None = None,
        *,
        kind: str | None = None,
    ) -> NoOpAwaitable | None:
        """Start or end jobs, until there are as many as are needed; those of other kinds stay.

        Args:
            n: workers.
            jobs: jobs.
            memory: memory of all workers.
            cores: cores of all workers.
            kind: the kind of workers; None is the cluster's own.
        """
        sample = self._sample(kind)
        count = max(
            jobs,
            math.ceil((n or 0) / sample.worker_processes),
            math.ceil(parse_bytes(memory or 0) / sample.worker_memory),
            math.ceil((cores or 0) / sample.worker_cores),
        )
        present = {it["name"] for it in self.scheduler_info["workers"].values()}
        names = self._names(kind)
        # those that have not come yet are ended first
        names.sort(key=lambda it: present.isdisjoint(_workers(it, self.worker_spec[it])))
        for name in names[count:]:
            del self.worker_spec[name]
        if self.status in {Status.closing, Status.closed}:
            # Dask scales to 0 then, and means workers of all kinds
            self.worker_spec.clear()
        else:
            for _ in range(count - len(names)):
                self.worker_spec.update(self._new_spec(kind))
        self.loop.add_callback(self._correct_state)
        return NoOpAwaitable() if self.asynchronous else None

    def adapt(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  dask-jobqueue's
        """Scale by the work that there is, as dask-jobqueue says; workers of further kinds stay."""
        return super().adapt(*args, **{"Adaptive": _Adaptive, **options})

    def job_script(self, kind: str | None = None) -> str:
        """Return the script of a job of a kind, with the directives that jpsi writes for the batch system."""
        return str(self._sample(kind).job_script())

    def further_workers(self) -> set[str]:
        """Return the names of the workers of further kinds, those that have not come yet included."""
        names = [name for kind in self._kinds for name in self._names(kind)]
        return {worker for name in names for worker in _workers(name, self.worker_spec[name])}

    def _sample(self, kind: str | None) -> Any:  # noqa: ANN401  a JpsiJob
        if kind is None:
            return self._dummy_job
        return self.job_cls(self._dummy_job.scheduler, name="dummy-name", **self._options(kind))

    def _options(self, kind: str) -> dict[str, Any]:
        if kind not in self._kinds:
            known = ", ".join(self._kinds) or "none"
            raise ValueError(f"no kind of workers {kind!r}; there are: {known}")
        return {**self._job_kwargs, **self._kinds[kind]}

    def _names(self, kind: str | None) -> list[str]:
        return [name for name, spec in self.worker_spec.items() if spec.get("kind") == kind]

    def _new_spec(self, kind: str | None) -> dict[str, dict[str, Any]]:
        if kind is None:
            return dict(self.new_worker_spec())
        options = self._options(kind)
        processes = self._sample(kind).worker_processes
        group = {"group": [f"-{it}" for it in range(processes)]} if processes > 1 else {}
        self._i += 1
        name = f"{self._new_worker_name(self._i)}-{kind}"
        return {name: {"cls": self.job_cls, "options": options, "kind": kind, **group}}


class _Adaptive(Adaptive):
    """Dask's adaptive scaling, which sees the cluster's own workers only, not those of further kinds."""

    cluster: JpsiCluster

    @property
    def plan(self) -> set[Any]:
        """The workers that there are to be."""
        return set(self.cluster.plan) - self.cluster.further_workers()

    @property
    def requested(self) -> set[Any]:
        """The workers whose jobs were submitted."""
        return set(self.cluster.requested) - self.cluster.further_workers()

    @property
    def observed(self) -> set[Any]:
        """The workers that have come."""
        return set(self.cluster.observed) - self.cluster.further_workers()

    async def workers_to_close(self, target: int) -> list[str]:
        """Return idle workers, so that `target` stay."""
        further = self.cluster.further_workers()
        if not further:
            return await super().workers_to_close(target)
        idle = [it for it in await super().workers_to_close(0) if it not in further]
        return idle[: len(self.plan) - target]


def _workers(name: str, spec: Mapping[str, Any]) -> list[str]:
    return [f"{name}{suffix}" for suffix in spec.get("group", [""])]
