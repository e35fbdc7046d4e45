"""Compares the reported outcomes of jobs with their acts; pure, so that a test can use made-up proofs.

It counts four kinds of findings. A job is *lost* if it ran and its end was not reported, or reported as LOST;
*doubled* if it ran more often than was requested; *wrong* if its outcome is not its own, if CANCELED was
reported without a request, or if a command reached a foreign job; *stuck* if it is not final in bounded
time.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

# The exit codes of a job that TERM or KILL has ended.
_KILLED_CODES = frozenset({128 + 15, 128 + 9, 128 + 1, 128 + 2})
# The exit code of a job that could not be set up.
_SETUP_CODE = 125
_ABSENT = frozenset({"LOST", "ATTACH_UNVERIFIED"})


class Kind(enum.Enum):
    """A kind of finding about a job."""

    LOST = "lost"
    DOUBLED = "doubled"
    WRONG = "wrong"
    STUCK = "stuck"


@dataclass(frozen=True)
class ReportedStatus:
    """A final status that was reported for a job."""

    #: The source of the report: a client, or the disk.
    source: str
    state: str
    exit_code: int | None = None
    reason: str | None = None

    def __str__(self) -> str:
        code = "" if self.exit_code is None else f" {self.exit_code}"
        reason = "" if self.reason is None else f" ({self.reason})"
        return f"{self.state}{code}{reason}"

    @property
    def outcome(self) -> tuple[str, int | None]:
        """The outcome upon which all clients and the disk must agree."""
        return self.state, self.exit_code


@dataclass(frozen=True)
class JobFacts:
    """A job of a round: its plan, its acts, what happened to it, and the statuses that were reported."""

    key: int
    #: Its own exit code.
    code: int
    #: Its proofs, in order: `start`, `end`, `killed`.
    proof: Sequence[str] = ()
    reported: Sequence[ReportedStatus] = ()
    #: True if a program has begun to submit it; true if it is on disk.
    is_begun: bool = True
    is_on_disk: bool = True
    #: True if a client requested its end.
    is_cancelled: bool = False
    #: The number of further runs that were requested.
    reruns: int = 0
    #: True if the batch system has forgotten it.
    is_forgotten: bool = False
    #: True if the trial itself has ended its processes.
    is_killed: bool = False
    #: True if its files, such as its claim, could not be written for a while.
    is_unwritable: bool = False
    #: True if its files were damaged so that its request is lost.
    is_damaged: bool = False

    @property
    def starts(self) -> int:
        """The number of its runs."""
        return sum(it == "start" for it in self.proof)

    @property
    def has_ended(self) -> bool:
        """True if its last run came to its own end."""
        return bool(self.proof) and self.proof[-1] == "end"

    @property
    def was_ended(self) -> bool:
        """True if a signal or a cancel has ended it, or may have."""
        return self.is_cancelled or self.is_killed or "killed" in self.proof

    @property
    def truth(self) -> str:
        """The acts of the job, in words."""
        done = " ".join(self.proof) or "never ran"
        notes = [
            word
            for word, holds in {
                "cancel requested": self.is_cancelled,
                f"{self.reruns} reruns requested": self.reruns,
                "forgotten by the system": self.is_forgotten,
                "killed by the trial": self.is_killed,
                "not writable for a while": self.is_unwritable,
                "files damaged": self.is_damaged,
            }.items()
            if holds
        ]
        return ", ".join([f"{done} (its code is {self.code})", *notes])


@dataclass(frozen=True)
class ForeignJobFacts:
    """A job that jpsi did not submit, and that no command of jpsi's may reach."""

    native_id: str
    #: The effect of a command on it, such as `cancelled`; empty if there is none.
    reached: str = ""


@dataclass(frozen=True)
class Finding:
    """A wrong outcome."""

    kind: Kind
    #: The job.
    about: str
    why: str
    reported: str = ""
    truth: str = ""

    def __str__(self) -> str:
        reported = self.reported or "nothing"
        return f"{self.kind.value}: {self.about}: {self.why}; reported: {reported}; true: {self.truth}"


@dataclass(frozen=True)
class Verdict:
    """The findings of the referee about a round."""

    jobs: int
    findings: Sequence[Finding] = field(default=())

    def count(self, kind: Kind) -> int:
        """Return the number of jobs that have a fault of this kind."""
        return len({it.about for it in self.findings if it.kind is kind})


def judge(jobs: Iterable[JobFacts], foreign_jobs: Iterable[ForeignJobFacts] = ()) -> Verdict:
    """Return the findings about the jobs of a round."""
    jobs = list(jobs)
    findings = [finding for job in jobs for finding in _find_in_job(job)]
    findings += [
        Finding(
            Kind.WRONG, f"foreign job {it.native_id}", f"a command reached it: {it.reached}", truth="not ours"
        )
        for it in foreign_jobs
        if it.reached
    ]
    return Verdict(len(jobs), findings)


def _find_in_job(job: JobFacts) -> Iterator[Finding]:
    reported = ", ".join(f"{it.source}: {it}" for it in job.reported)
    for kind, why in _check_job(job):
        yield Finding(kind, f"job {job.key}", why, reported, job.truth)


def _check_job(job: JobFacts) -> Iterator[tuple[Kind, str]]:
    if job.starts > 1 + job.reruns:
        yield Kind.DOUBLED, f"it ran {job.starts} times, and was to run {1 + job.reruns} at most"
    if len({it.outcome for it in job.reported}) > 1:
        yield Kind.WRONG, "two outcomes were reported"
    if not job.reported:
        yield from _unreported(job)
    elif (lost := _lost_reason(job)) is not None:
        yield Kind.LOST, lost
    else:
        for it in dict.fromkeys(job.reported):
            if (why := _wrong_outcome(job, it)) is not None:
                yield Kind.WRONG, why
                return


def _unreported(job: JobFacts) -> Iterator[tuple[Kind, str]]:
    if job.is_damaged:
        return
    if job.is_on_disk:
        yield Kind.STUCK, "it did not become final in time"
    elif job.proof:
        yield Kind.LOST, "it ran, and is not on disk"


def _lost_reason(job: JobFacts) -> str | None:
    """Return why a job counts as lost although its end was reported; None if it does not."""
    if not any(it.reason in _ABSENT for it in job.reported):
        return None
    if not job.proof or job.is_damaged:
        return None
    if job.has_ended and not job.is_killed:
        return "it ran to its end, and was reported as LOST"
    return None if job.was_ended or job.has_ended else "it began to run, and was reported as LOST"


def _wrong_outcome(job: JobFacts, reported: ReportedStatus) -> str | None:
    """Return why a status cannot be that of a job; None if it can."""
    match reported.state:
        case "COMPLETED":
            if not job.has_ended:
                return "COMPLETED was reported of a job that has not run to its end"
            is_own = job.code == 0 and reported.exit_code == 0
            return None if is_own else "COMPLETED was reported of a job that failed"
        case "CANCELED":
            if not job.is_cancelled:
                return "CANCELED was reported, and no client requested it"
            is_own = reported.exit_code in {None, job.code} | _KILLED_CODES
            return None if is_own else "the exit code of a job that was cancelled is not its own"
        case "FAILED":
            return _wrong_failure_reason(job, reported)
    return f"{reported.state} is not a final state"


def _wrong_failure_reason(job: JobFacts, reported: ReportedStatus) -> str | None:
    if reported.exit_code is not None:
        return None if reported.exit_code in _own_codes(job) else "the exit code is not its own"
    if reported.reason not in _ABSENT:
        return "FAILED was reported for a reason that does not apply"
    is_known = job.is_forgotten or job.is_unwritable or job.is_damaged
    return None if is_known or job.was_ended else "LOST was reported of a job that the batch system has"


def _own_codes(job: JobFacts) -> frozenset[int]:
    """Return the exit codes with which a job can have failed."""
    own = {job.code} if job.has_ended and job.code != 0 else set()
    setup_failure = {_SETUP_CODE} if not job.proof and (job.is_unwritable or job.is_damaged) else set()
    return frozenset(own | setup_failure | (_KILLED_CODES if job.was_ended else set()))
