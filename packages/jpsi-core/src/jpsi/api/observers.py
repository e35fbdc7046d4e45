"""Reports every status to the observers: in order for each observer, and without one delaying another."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jpsi import notifier
from jpsi.model import JobSpec, JobStatus, copy_spec

if TYPE_CHECKING:
    from jpsi.contract import ObserverHooks


class Observers:
    """The observers of one executor."""

    def __init__(self, executor: str, observers: Sequence[ObserverHooks]) -> None:
        self._executor = executor
        self._observers = [(observer, notifier.Lane()) for observer in observers]
        self._specs: dict[str, JobSpec] = {}

    def add_job(self, job_id: str, spec: JobSpec) -> None:
        """Remember the spec of a job, which observers receive with its statuses."""
        if self._observers:
            # the observers of one job share a copy: they must not change the engine's spec
            self._specs[job_id] = copy_spec(spec)

    def forget_job(self, job_id: str) -> None:
        """Forget the spec of a job."""
        self._specs.pop(job_id, None)

    def notify(self, job_id: str, native_id: str | None, status: JobStatus) -> None:
        """Post a call of each observer to the notifier's threads."""
        spec = self._specs.get(job_id)
        for observer, lane in self._observers:
            call = functools.partial(
                observer.status_changed,
                executor=self._executor,
                job_id=job_id,
                native_id=native_id,
                spec=spec,
                status=status,
            )
            notifier.shared().post(lane, call)
        if status.final:
            self.forget_job(job_id)
