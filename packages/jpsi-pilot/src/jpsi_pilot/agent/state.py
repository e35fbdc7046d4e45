"""What the agent knows of jobs and pilots: it follows from what has happened, event by event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..protocol import Need, Settings, pilot_of
from .placement import Kind, Waiting

#: The words by which the agent tells of jobs; those of `FINAL` are final.
FINAL = frozenset({"done", "failed", "cancelled", "timeout", "lost", "unable"})

#: Something that has happened, as the journal has it: `what` tells which method of `AgentState` takes
#: the rest.
Event = Mapping[str, Any]  # Any: as JSON has it


@attrs.define(slots=True, kw_only=True)
class Submission:
    """What was submitted at once: a job, or an array."""

    number: int
    tag: str
    script: str
    #: The key of its environment.
    environment: str
    umask: int
    settings: str
    need: Need
    #: The process that submitted it; None once that is gone.
    client: str | None
    #: Whether a job runs again whose pilot was lost.
    retry: bool
    #: How many jobs it has, if it is an array.
    elements: int | None
    #: How many of these may run at a time.
    at_a_time: int | None
    running: int = 0
    unfinished: int = 0

    @property
    def kind(self) -> Kind:
        """What placing sees of its jobs."""
        array = None if self.at_a_time is None else self.number
        return Kind(need=self.need, settings=self.settings, client=self.client, array=array)


@attrs.define(slots=True, kw_only=True)
class Job:
    """A job, as it is now."""

    native_id: str
    #: Which element of its array it is.
    index: int | None
    submission: Submission
    word: str = "waiting"
    code: int | None = None
    #: When it came to be what it is.
    time: float
    restarts: int = 0
    #: Where it runs, or ran; several if it needs several nodes.
    places: tuple[str, ...] = ()
    #: Whether it was told to end.
    stopped: bool = False
    #: What is told of how it ended.
    message: str = ""

    @property
    def run(self) -> tuple[str, int]:
        """A name for this run of it."""
        return self.native_id, self.restarts

    @property
    def pilot(self) -> str | None:
        """The pilot that it runs in, or ran in."""
        return pilot_of(self.places[0]) if self.places else None


@attrs.define(slots=True, kw_only=True)
class PilotEntry:
    """A pilot that is to start, or runs."""

    name: str
    settings: str
    #: The process that it was started for; None once that is gone, or if all share it.
    client: str | None
    #: The jpsi id of the job that it is.
    job_id: str
    #: When it was started.
    time: float


class AgentState:
    """The jobs and pilots; `take` is the only way in which it changes, but for clients that go."""

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

    def take(self, event: Event) -> None:
        """Learn of something that has happened."""
        rest = {name: value for name, value in event.items() if name != "what"}
        getattr(self, f"_{event['what']}")(**rest)

    # What happens.

    def _begun(self, *, letters: str, number: int, pilot: int) -> None:
        self.letters, self.last_number, self.last_pilot = letters, number, pilot

    def _settings(self, *, values: Mapping[str, Any]) -> None:  # as above
        settings = Settings.of(values)
        self.settings[settings.key] = settings

    def _submitted(self, *, number: int, time: float, need: Mapping[str, Any], **values: Any) -> None:  # noqa: ANN401  as above
        submission = Submission(number=number, need=Need.of(need), **values)
        self.last_number = max(self.last_number, number)
        self.submissions[number] = submission
        self._tags[submission.tag] = number
        for index in self._indices(submission):
            job = Job(native_id=self.native_id(number, index), index=index, submission=submission, time=time)
            self.jobs[job.native_id] = job
            submission.unfinished += 1
            self._wait(job)

    def _started(self, *, ids: Sequence[str], places: Sequence[str], time: float) -> None:
        for native_id in ids:
            job = self.jobs[native_id]
            self._leave(job)
            job.word, job.places, job.time = "running", tuple(places), time
            job.submission.running += 1
            self._running[native_id] = job

    def _stopped(self, *, ids: Sequence[str]) -> None:
        for native_id in ids:
            self.jobs[native_id].stopped = True

    def _ended(self, *, id: str, word: str, code: int | None, time: float, message: str = "") -> None:  # noqa: A002  as the journal has it
        job = self.jobs[id]
        self._leave(job)
        job.word, job.code, job.time, job.message = word, code, time, message
        job.submission.unfinished -= 1

    def _back(self, *, id: str, ran: bool, time: float) -> None:  # noqa: A002  as above
        job = self.jobs[id]
        self._leave(job)
        job.word, job.places, job.time = "waiting", (), time
        # one that was only on its way has not run
        job.restarts += ran
        self._wait(job)

    def _pilot(self, **values: Any) -> None:  # noqa: ANN401  as above
        entry = PilotEntry(**values)
        self.pilots[entry.name] = entry
        self.last_pilot = max(self.last_pilot, int(entry.name))

    def _pilot_gone(self, *, name: str, time: float) -> None:  # noqa: ARG002  for people
        del self.pilots[name]

    def disown(self, client: str) -> None:
        """A client is gone: nobody has a claim to its pilots any more, and its jobs to no others'."""
        for kind in [it for it in self._waiting if it.client == client]:
            jobs = self._waiting.pop(kind)
            for job in jobs.values():
                job.submission.client = None
            into = self._waiting.setdefault(attrs.evolve(kind, client=None), {})
            into.update(jobs)
        for submission in self.submissions.values():
            if submission.client == client:
                submission.client = None
        for entry in self.pilots.values():
            if entry.client == client:
                entry.client = None

    def forget(self, before: float) -> None:
        """Drop what was submitted and has ended, all of it before this time."""
        ended = [it for it in self.submissions.values() if not it.unfinished]
        for submission in ended:
            ids = [self.native_id(submission.number, it) for it in self._indices(submission)]
            if all(self.jobs[it].time < before for it in ids):
                for native_id in ids:
                    del self.jobs[native_id]
                self._tags.pop(submission.tag, None)
                del self.submissions[submission.number]

    # What is asked.

    def native_id(self, number: int, index: int | None) -> str:
        """The native id of a job."""
        return f"{self.letters}-{number}" + ("" if index is None else f"[{index}]")

    def number_of(self, tag: str) -> int | None:
        """What was submitted with this tag."""
        return self._tags.get(tag)

    def named(self, native_id: str) -> list[Job]:
        """The job of this id, or all of this array; none if there is no such."""
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
        return [self.jobs[self.native_id(submission.number, it)] for it in self._indices(submission)]

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
        """The processes that have a claim to something."""
        clients = {kind.client for kind in self._waiting} | {it.client for it in self.pilots.values()}
        return {it for it in clients if it is not None}

    def waiting(self) -> list[Waiting]:
        """The jobs that wait, those that have waited for longest first, as far as more may run at a time."""
        by_age = sorted(self._waiting.items(), key=lambda it: self._first(it[1]).submission.number)
        return [Waiting(kind=kind, count=self._startable(jobs)) for kind, jobs in by_age]

    def next(self, kind: Kind, count: int) -> list[Job]:
        """The jobs of a kind that start first."""
        jobs = iter(self._waiting[kind].values())
        return [job for job, _ in zip(jobs, range(count), strict=False)]

    def events(self) -> Iterator[Event]:
        """What could have happened so that everything is as it is now."""
        yield {"what": "begun", "letters": self.letters, "number": self.last_number, "pilot": self.last_pilot}
        for settings in self.settings.values():
            yield {"what": "settings", "values": settings.plain()}
        for entry in self.pilots.values():
            yield {"what": "pilot", **attrs.asdict(entry)}
        for submission in self.submissions.values():
            yield from self._events_of(submission)

    def _events_of(self, submission: Submission) -> Iterator[Event]:
        jobs = [self.jobs[self.native_id(submission.number, it)] for it in self._indices(submission)]
        values = attrs.asdict(submission, filter=lambda it, _: it.name not in {"running", "unfinished"})
        yield {"what": "submitted", "time": min(job.time for job in jobs), **values}
        for job in jobs:
            for _ in range(job.restarts):
                yield {"what": "back", "id": job.native_id, "ran": True, "time": job.time}
            if job.places:
                yield {"what": "started", "ids": [job.native_id], "places": job.places, "time": job.time}
            if job.stopped:
                yield {"what": "stopped", "ids": [job.native_id]}
            if job.word in FINAL:
                yield {
                    "what": "ended",
                    "id": job.native_id,
                    "word": job.word,
                    "code": job.code,
                    "time": job.time,
                    "message": job.message,
                }

    @staticmethod
    def _startable(jobs: Mapping[str, Job]) -> int:
        submission = AgentState._first(jobs).submission
        if submission.at_a_time is None:
            return len(jobs)
        return min(len(jobs), submission.at_a_time - submission.running)

    @staticmethod
    def _first(jobs: Mapping[str, Job]) -> Job:
        return next(iter(jobs.values()))

    @staticmethod
    def _indices(submission: Submission) -> Iterable[int | None]:
        return (None,) if submission.elements is None else range(1, submission.elements + 1)

    def _wait(self, job: Job) -> None:
        self._waiting.setdefault(job.submission.kind, {})[job.native_id] = job

    def _leave(self, job: Job) -> None:
        """A job is not any more where it was."""
        if self._running.pop(job.native_id, None) is not None:
            job.submission.running -= 1
            return
        kind = job.submission.kind
        jobs = self._waiting.get(kind, {})
        if jobs.pop(job.native_id, None) is not None and not jobs:
            del self._waiting[kind]
