"""The agent's knowledge of jobs and pilots, rebuilt event by event from the journal.

The request handler and the scheduling loop read it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..protocol import Need, Settings, pilot_of
from .placement import Kind, Waiting

#: The words for a job's state in the agent's answers; those in `FINAL` are final.
FINAL = frozenset({"done", "failed", "cancelled", "timeout", "lost", "unable"})

#: An event as the journal has it: `what` names the method of `AgentState` that takes the other values.
Event = Mapping[str, Any]  # Any: as JSON has it


@attrs.define(slots=True, kw_only=True, eq=False)
class Submission:
    """A job or an array, as a client submitted it."""

    #: Its position among all submissions to this agent's directory, from which its native id is made.
    number: int
    #: The tag by which the client finds it again.
    tag: str
    #: The script, which a shell runs.
    script: str
    #: The name of the file that holds its environment, in the agent's directory.
    environment: str
    umask: int
    #: The key of the settings of its pilots.
    settings: str
    need: Need
    #: The process that submitted it; None once that process is gone, or if pilots are shared.
    client: str | None
    #: True if a job runs again after the loss of its pilot.
    retry: bool
    #: The number of array elements; None if it is no array.
    elements: int | None
    #: The number of elements that may run at a time; None if there is no limit.
    at_a_time: int | None
    #: Its jobs, in order.
    jobs: list[Job] = attrs.field(init=False, factory=list, repr=False)
    #: The number of its jobs that run.
    running: int = attrs.field(init=False, default=0)
    #: The number of its jobs that wait or run.
    unfinished: int = attrs.field(init=False, default=0)

    @property
    def kind(self) -> Kind:
        """The properties of its jobs that placement looks at."""
        array = None if self.at_a_time is None else self.number
        return Kind(need=self.need, settings=self.settings, client=self.client, array=array)

    def to_event(self, time: float) -> Event:
        """Return the event of its submission at this time."""
        values = attrs.asdict(self, filter=lambda it, _: it.init)
        return {"what": "submitted", "time": time, **values}


@attrs.define(slots=True, kw_only=True)
class Job:
    """A job in its current state."""

    native_id: str
    #: The index of this array element; None if the job is none.
    index: int | None
    submission: Submission
    #: `waiting`, `running`, or one of `FINAL`.
    state: str = "waiting"
    #: The exit code of its script; None if there is none.
    code: int | None = None
    #: The time of its last change of state.
    time: float
    #: The number of times that it was requeued after a run had begun.
    restarts: int = 0
    #: The nodes where it runs or ran; several if it needs several nodes.
    nodes: tuple[str, ...] = ()
    #: True if a client cancelled it.
    stopped: bool = False
    #: An explanation of how it ended.
    message: str = ""

    @property
    def run_key(self) -> tuple[str, int]:
        """The name of its current run."""
        return self.native_id, self.restarts

    @property
    def pilot(self) -> str | None:
        """The pilot that it runs in, or ran in."""
        return pilot_of(self.nodes[0]) if self.nodes else None


@attrs.define(slots=True, kw_only=True)
class PilotEntry:
    """A pilot that is about to start, or runs, as the journal records it."""

    name: str
    #: The key of its settings.
    settings: str
    #: The client that it was started for; None once that process is gone, or if all clients share it.
    client: str | None
    #: The jpsi id of the pilot's job.
    job_id: str
    #: The time when it was started.
    time: float


class AgentState:
    """Jobs and pilots; only `apply` changes them, apart from `release_client` and `prune`."""

    def __init__(self) -> None:
        self.letters = ""
        self.last_number = 0
        self.settings: dict[str, Settings] = {}
        self.submissions: dict[int, Submission] = {}
        self.jobs: dict[str, Job] = {}
        self.pilots: dict[str, PilotEntry] = {}
        self.last_pilot = 0
        self._tags: dict[str, int] = {}
        self._waiting: dict[Kind, dict[str, Job]] = {}
        self._running: dict[str, Job] = {}

    def apply(self, event: Event) -> None:
        """Apply an event."""
        rest = {name: value for name, value in event.items() if name != "what"}
        getattr(self, f"_{event['what']}")(**rest)

    # The events.

    def _begun(self, *, letters: str, number: int, pilot: int) -> None:
        self.letters, self.last_number, self.last_pilot = letters, number, pilot

    def _settings(self, *, values: Mapping[str, Any]) -> None:  # as above
        settings = Settings.from_dict(values)
        self.settings[settings.key] = settings

    def _submitted(self, *, number: int, time: float, need: Mapping[str, Any], **values: Any) -> None:  # noqa: ANN401  as above
        submission = Submission(number=number, need=Need.from_dict(need), **values)
        self.last_number = max(self.last_number, number)
        self.submissions[number] = submission
        self._tags[submission.tag] = number
        indices = (None,) if submission.elements is None else range(1, submission.elements + 1)
        for index in indices:
            job = Job(native_id=self.native_id(number, index), index=index, submission=submission, time=time)
            self.jobs[job.native_id] = job
            submission.jobs.append(job)
            submission.unfinished += 1
            self._enqueue(job)

    def _started(self, *, ids: Sequence[str], places: Sequence[str], time: float) -> None:
        for native_id in ids:
            job = self.jobs[native_id]
            self._dequeue(job)
            job.state, job.nodes, job.time = "running", tuple(places), time
            job.submission.running += 1
            self._running[native_id] = job

    def _stopped(self, *, ids: Sequence[str]) -> None:
        for native_id in ids:
            self.jobs[native_id].stopped = True

    def _ended(self, *, id: str, state: str, code: int | None, time: float, message: str = "") -> None:  # noqa: A002  as the journal has it
        job = self.jobs[id]
        self._dequeue(job)
        job.state, job.code, job.time, job.message = state, code, time, message
        job.submission.unfinished -= 1

    def _back(self, *, id: str, ran: bool, time: float) -> None:  # noqa: A002  as above
        job = self.jobs[id]
        self._dequeue(job)
        job.state, job.nodes, job.time = "waiting", (), time
        # a run that never began does not count
        job.restarts += ran
        self._enqueue(job)

    def _pilot(self, **values: Any) -> None:  # noqa: ANN401  as above
        entry = PilotEntry(**values)
        self.pilots[entry.name] = entry
        self.last_pilot = max(self.last_pilot, int(entry.name))

    def _pilot_gone(self, *, name: str, time: float) -> None:  # noqa: ARG002  for people
        del self.pilots[name]

    def release_client(self, client: str) -> None:
        """Release the pilots and jobs of a client that is gone.

        Its pilots then take the jobs of every client, and its jobs may run only in such pilots.
        """
        for kind in [it for it in self._waiting if it.client == client]:
            jobs = self._waiting.pop(kind)
            self._waiting.setdefault(attrs.evolve(kind, client=None), {}).update(jobs)
        owned: list[Submission | PilotEntry] = [*self.submissions.values(), *self.pilots.values()]
        for it in owned:
            if it.client == client:
                it.client = None

    def prune(self, before: float) -> None:
        """Drop submissions all of whose jobs ended before this time."""
        for submission in list(self.submissions.values()):
            if not submission.unfinished and all(job.time < before for job in submission.jobs):
                for job in submission.jobs:
                    del self.jobs[job.native_id]
                self._tags.pop(submission.tag, None)
                del self.submissions[submission.number]

    # The queries.

    def native_id(self, number: int, index: int | None) -> str:
        """Return the native id of a job."""
        return f"{self.letters}-{number}" + ("" if index is None else f"[{index}]")

    def submission_number(self, tag: str) -> int | None:
        """Return the number of the submission with this tag; None if there is none."""
        return self._tags.get(tag)

    def find_jobs(self, native_id: str) -> list[Job]:
        """Return the job with this id, or all elements of this array; an empty list if there is none."""
        if native_id in self.jobs:
            return [self.jobs[native_id]]
        number = native_id.rpartition("-")[2]
        submission = self.submissions.get(int(number)) if number.isdigit() else None
        if (
            submission is None
            or submission.elements is None
            or native_id != self.native_id(int(number), None)
        ):
            return []
        return list(submission.jobs)

    @property
    def unfinished(self) -> list[Job]:
        """The jobs that wait or run."""
        return [*self.running, *(job for jobs in self._waiting.values() for job in jobs.values())]

    @property
    def running(self) -> list[Job]:
        """The jobs that run."""
        return list(self._running.values())

    @property
    def clients(self) -> set[str]:
        """The clients that own a waiting job or a pilot."""
        clients = {kind.client for kind in self._waiting} | {it.client for it in self.pilots.values()}
        return {it for it in clients if it is not None}

    def waiting(self) -> list[Waiting]:
        """Return the waiting jobs by kind, the oldest kinds first, within each array's limit."""
        oldest = {kind: next(iter(jobs.values())).submission for kind, jobs in self._waiting.items()}
        found = []
        for kind, submission in sorted(oldest.items(), key=lambda it: it[1].number):
            count = len(self._waiting[kind])
            if submission.at_a_time is not None:
                count = min(count, submission.at_a_time - submission.running)
            found.append(Waiting(kind=kind, count=count))
        return found

    def next_jobs(self, kind: Kind, count: int) -> list[Job]:
        """Return the jobs of a kind that start first."""
        return list(itertools.islice(self._waiting[kind].values(), count))

    def events(self) -> Iterator[Event]:
        """Yield events that lead to the current state, for a rewrite of the journal."""
        yield {"what": "begun", "letters": self.letters, "number": self.last_number, "pilot": self.last_pilot}
        for settings in self.settings.values():
            yield {"what": "settings", "values": settings.to_dict()}
        for entry in self.pilots.values():
            yield {"what": "pilot", **attrs.asdict(entry)}
        for submission in self.submissions.values():
            yield from self._events_of(submission)

    def _events_of(self, submission: Submission) -> Iterator[Event]:
        yield submission.to_event(min(job.time for job in submission.jobs))
        for job in submission.jobs:
            for _ in range(job.restarts):
                yield {"what": "back", "id": job.native_id, "ran": True, "time": job.time}
            if job.nodes:
                yield {"what": "started", "ids": [job.native_id], "places": job.nodes, "time": job.time}
            if job.stopped:
                yield {"what": "stopped", "ids": [job.native_id]}
            if job.state in FINAL:
                values = {name: getattr(job, name) for name in ("state", "code", "time", "message")}
                yield {"what": "ended", "id": job.native_id, **values}

    def _enqueue(self, job: Job) -> None:
        self._waiting.setdefault(job.submission.kind, {})[job.native_id] = job

    def _dequeue(self, job: Job) -> None:
        """Remove a job from the waiting or the running jobs."""
        if self._running.pop(job.native_id, None) is not None:
            job.submission.running -= 1
            return
        kind = job.submission.kind
        jobs = self._waiting.get(kind, {})
        if jobs.pop(job.native_id, None) is not None and not jobs:
            del self._waiting[kind]
