"""The messages of commands that make requests or wait for them, each of them once.

They are about the placement of a request, its job, and the dispatcher that is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING

import jpsi
from jpsi_engine import QueueLimits, describe_ignored, describe_never, describe_rounding

from .. import formatting
from ..model import Placement
from .command import dispatch_command

if TYPE_CHECKING:
    from ..records import Records

# A job or a dispatcher that starts soon needs no message.
_PATIENCE_SECONDS = 5.0
_NUMBER = re.compile("[0-9]+")


class PlacementMessage:
    """The warning that the placement of a request has no effect, as its execution has another."""

    def __init__(self, records: Records, request_id: str) -> None:
        """Prepare.

        Args:
            records: those of the request.
            request_id: the request; it may get its execution later.
        """
        self._records = records
        self._request_id = request_id
        self._is_known = False

    def update(self) -> Iterator[str]:
        """Yield the sentence if it is new."""
        if self._is_known:
            return
        request = self._records.request(self._request_id)
        if request.execution is None:
            return
        self._is_known = True
        execution = self._records.execution(request.execution)
        attempts = self._records.attempts(execution.id)
        interested = self._records.requests(execution=execution.id)
        configuration = _configuration_of_dispatcher(self._records)
        warning = formatting.placement_warning(request, execution, attempts, interested, configuration)
        if warning is not None:
            yield f"warning: {warning}"


def _configuration_of_dispatcher(records: Records) -> jpsi.Configuration | None:
    """Return the configuration that a dispatcher of these records uses; None if it is unknown or wrong."""
    try:
        return jpsi.configuration() if records.may_dispatch else None
    except jpsi.ConfigError:
        return None


def describe_placement(executor: jpsi.JobExecutor, placement: Placement) -> Iterator[str]:
    """Yield the sentences about what an executor changes or ignores of what a job is placed with."""
    resources = jpsi.ResourceSpecV1(
        memory=placement.memory,
        memory_per_cpu=placement.memory_per_cpu,
        memory_per_gpu=placement.memory_per_gpu,
    )
    specs = [jpsi.JobSpec(resources=resources, attributes=placement.job_attributes)]
    unit = executor.system.capabilities.walltime_unit
    if (rounding := describe_rounding(executor.name, unit, specs)) is not None:
        yield rounding
    if (ignored := describe_ignored(executor.name, specs)) is not None:
        yield f"warning: {ignored}"
    yield from (f"warning: {it}" for it in QueueLimits(executor).find_unlisted([("", specs[0])]))


def describe_missing_dispatcher(records: Records) -> str:
    """Return the sentence that no dispatcher runs, with the command that starts one."""
    who = "start one" if records.may_dispatch else f"{records.database.owner} starts one"
    return f"no dispatcher runs, without which no request ends; {who} by `{dispatch_command(records)}`"


class DispatcherMessage:
    """The sentence that no dispatcher runs, after some seconds without one."""

    def __init__(self, records: Records, *, clock: Callable[[], float] = monotonic) -> None:
        """Prepare.

        Args:
            records: the records whose dispatcher is meant.
            clock: returns seconds.
        """
        self._records = records
        self._clock = clock
        # when the lack of a dispatcher was first seen
        self._since: float | None = None
        self._is_told = False

    def update(self, *, is_last: bool = False) -> Iterator[str]:
        """Yield the sentence if it is new; at once if this is the last call."""
        if self._is_told or self._records.dispatchers():
            self._since = None
            return
        now = self._clock()
        self._since = now if self._since is None else self._since
        if is_last or now - self._since >= _PATIENCE_SECONDS:
            self._is_told = True
            yield describe_missing_dispatcher(self._records)


class JobMessages:
    """The messages about one job, each once."""

    def __init__(self, *, is_terminal: bool, clock: Callable[[], float] = monotonic) -> None:
        """Prepare.

        Args:
            is_terminal: True to tell each state.
            clock: returns seconds.
        """
        self._is_terminal = is_terminal
        self._clock = clock
        self._state: jpsi.JobState | None = None
        # when the job was first seen to wait
        self._since: float | None = None
        self._reasons: set[str] = set()

    def update(self, job: jpsi.Job) -> Iterator[str]:
        """Yield the sentences that are new."""
        status = job.status
        if status.state is not self._state:
            self._state = status.state
            if self._is_terminal and status.state in _SENTENCES:
                where = "" if job.executor is None else job.executor.name
                yield _SENTENCES[status.state].format(job=job.id, native_id=job.native_id, executor=where)
        if status.state is jpsi.JobState.QUEUED and status.message:
            yield from self._reason(status.message)

    def _reason(self, message: str) -> Iterator[str]:
        now = self._clock()
        self._since = now if self._since is None else self._since
        # PBS's reasons have the number of free cores, which changes all the time
        reason = _NUMBER.sub("0", message)
        if reason not in self._reasons and now - self._since >= _PATIENCE_SECONDS:
            self._reasons.add(reason)
            advice = describe_never(message)
            yield f"the job waits: {message}{f'; {advice}' if advice else ''}"


_SENTENCES = {
    jpsi.JobState.QUEUED: "job {job} waits on {executor}, native id {native_id}",
    jpsi.JobState.ACTIVE: "the job runs",
}
