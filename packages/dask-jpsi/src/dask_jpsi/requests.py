"""Sends the requests of one moment about many jobs to the batch system together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import jpsi

Send = Callable[[Sequence[jpsi.Job]], None]


class Requests:
    """Requests of one kind, such as submissions; those that tasks of one loop make in a moment are one.

    Args:
        send: the call that sends them; it may raise BulkException.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._jobs: list[jpsi.Job] = []
        self._sending: asyncio.Future[Mapping[jpsi.Job, jpsi.JpsiError]] | None = None

    async def add(self, job: jpsi.Job) -> None:
        """Send the request about a job; return once the batch system has it.

        Raises:
            JpsiError: the request failed for this job.
        """
        self._jobs.append(job)
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._send_all())
        # a task that is cancelled must not cancel the requests of others
        failed = await asyncio.shield(self._sending)
        if job in failed:
            raise failed[job]

    async def _send_all(self) -> Mapping[jpsi.Job, jpsi.JpsiError]:
        jobs, self._jobs, self._sending = self._jobs, [], None
        try:
            await asyncio.to_thread(self._send, jobs)
        except jpsi.BulkException as e:
            return e.failed
        return {}


class JobRequests:
    """The executor of the jobs of a cluster, and the requests to it.

    Raises:
        PluginError: no such executor is installed.
        ConfigError: the configuration of jpsi is wrong.
    """

    def __init__(self, executor: str | None, url: str | None) -> None:
        #: The executor.
        self.executor = jpsi.JobExecutor(executor, url=url)
        #: The submissions; jobs that are alike become one array of the batch system.
        self.submissions = Requests(self.executor.submit_many)
        #: The requests to end jobs.
        self.cancellations = Requests(self.executor.cancel_many)
