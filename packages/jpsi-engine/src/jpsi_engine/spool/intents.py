"""Represents an attempt to be submitted: of a single job (`JobIntent`) or an array (`ArrayAttempt`).

Both have the same properties and methods: names of files, lock, claim, revocation, native id. So the
submission, handoff and recovery of batch jobs treat them alike. For the processes of attempts that run on
this machine, see `attempts`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager

import attrs

from jpsi_engine.host import list_names
from jpsi_engine.spool.claims import REVOKED, Claim
from jpsi_engine.spool.layout import array_tag, tag
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict import SETUP_CODE, SHELL


@attrs.frozen(slots=True)
class JobIntent:
    """An attempt of a job by itself. Its files are named relative to the spool's root."""

    spool: Spool
    job_id: str
    attempt: int

    @property
    def id(self) -> str:
        """The id of the job or the array."""
        return self.job_id

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"job {self.job_id}"

    @property
    def tag(self) -> str:
        """The tag that the batch system stores with it."""
        return tag(self.job_id, self.attempt)

    @property
    def folder(self) -> str:
        """The folder that holds its files."""
        return f"jobs/{self.job_id}"

    @property
    def is_new(self) -> bool:
        """True if no earlier attempt has made that folder."""
        return self.attempt == 1

    @property
    def files(self) -> Sequence[str]:
        """The files in the folder that the runner needs, the intent first."""
        return [f"intent.{self.attempt}.json", f"run.{self.attempt}"]

    def file(self, kind: str) -> str:
        """Return the path of the file of this kind, such as `run` or `claim`."""
        return f"jobs/{self.job_id}/{kind}.{self.attempt}"

    @property
    def missing_shell_marker(self) -> str:
        """The marker that says that the shell is missing; empty if only the batch system can report that."""
        return f"events/{self.job_id}.{self.attempt}.exit.{SHELL}.{SETUP_CODE}"

    def hold_lock(self, patience_seconds: float) -> AbstractContextManager[bool]:
        """Hold its lock while the caller decides what became of it; see `Spool.hold_lock`."""
        return self.spool.hold_lock(self.job_id, self.attempt, patience_seconds)

    def read_native_id(self) -> str | None:
        """Return its native id; None if the submitting process died before it could add it."""
        intent = self.spool.intent(self.job_id, self.attempt)
        return None if intent is None else intent.native_id

    def record_native_id(self, native_id: str) -> None:
        """Add the native id that the batch system gave to it; called within `hold_lock`."""
        self.spool.record_native_id(self.job_id, self.attempt, native_id)

    def has_run(self) -> bool:
        """Return True if any file shows that it has begun; jpsi never submits it again then."""
        return self.spool.has_run(self.job_id, self.attempt)

    def claim(self) -> Claim | None:
        """Return the claim on it in the spool; None if there is none."""
        return self.spool.claim(self.job_id, self.attempt)

    def revoke(self) -> bool:
        """Claim it in the spool, so that it never runs; return False if it is claimed already."""
        return self.spool.revoke(self.job_id, self.attempt)

    def give_up(self, reason: str) -> None:
        """Record that its submission failed, after it was revoked, so that no process recovers it."""
        self.spool.give_up(self.job_id, self.attempt, reason)

    def discard(self, reason: str = "") -> bool:
        """Forget it, as it was never submitted; return False if it is revoked instead. Never raises.

        Args:
            reason: the reason, in words, for users who look at the files that are left.
        """
        self.spool.discard(self.job_id, self.attempt, reason)
        return self.attempt == 1

    def is_over(self) -> bool:
        """Return True if it cannot run any more: a client revoked it, or it was discarded."""
        claim = self.claim()
        return (
            not self.spool.has_intent(self.job_id, self.attempt) if claim is None else claim.text == REVOKED
        )


@attrs.frozen(slots=True)
class ArrayAttempt:
    """An array in the spool, with the properties and methods of `JobIntent`."""

    spool: Spool
    array: str
    #: The first job in it, by which messages name the array.
    first: str = ""
    #: True if folders of jobs link to it already, as those of retried jobs do.
    is_named: bool = False
    #: The jobs whose folders it has made; it takes them with it.
    made: Sequence[str] = ()
    #: True, as each attempt of an array has a folder of its own.
    is_new: bool = attrs.field(default=True, init=False)
    #: Empty, as a marker needs the element, and only a shell could find that out.
    missing_shell_marker: str = attrs.field(default="", init=False)

    @property
    def id(self) -> str:
        """See `JobIntent`."""
        return self.array

    @property
    def name(self) -> str:
        """See `JobIntent`."""
        return f"the array that begins with job {self.first}" if self.first else f"array {self.array}"

    @property
    def tag(self) -> str:
        """See `JobIntent`."""
        return array_tag(self.array)

    @property
    def folder(self) -> str:
        """See `JobIntent`."""
        return f"arrays/{self.array}"

    @property
    def files(self) -> Sequence[str]:
        """See `JobIntent`."""
        found = list_names(self.spool.arrays.folder(self.array))
        return ["intent.json", "run", *sorted(name for name in found if name.startswith("elements."))]

    def file(self, kind: str) -> str:
        """See `JobIntent`."""
        return f"arrays/{self.array}/{kind}"

    def hold_lock(self, patience_seconds: float) -> AbstractContextManager[bool]:
        """See `JobIntent`."""
        return self.spool.arrays.hold_lock(self.array, patience_seconds)

    def read_native_id(self) -> str | None:
        """See `JobIntent`."""
        return self.spool.arrays.read_native_id(self.array)

    def record_native_id(self, native_id: str) -> None:
        """See `JobIntent`."""
        self.spool.arrays.record_native_id(self.array, native_id)

    def has_run(self) -> bool:
        """Return True if any element has begun, by its files, even if the claim of the array is lost."""
        array = self.spool.arrays.read(self.array)
        elements = () if array is None else array.elements
        return self.spool.have_run({it["id"]: it["attempt"] for it in elements})

    def claim(self) -> Claim | None:
        """See `JobIntent`."""
        return self.spool.arrays.claim(self.array)

    def revoke(self) -> bool:
        """See `JobIntent`."""
        return self.spool.arrays.revoke(self.array)

    def give_up(self, reason: str) -> None:
        """See `JobIntent`."""
        self.spool.arrays.give_up(self.array, reason)

    def discard(self, reason: str = "") -> bool:
        """See `JobIntent`."""
        if self.is_named:
            # only the array's folder says what became of that attempt of its jobs
            with contextlib.suppress(OSError):
                if self.revoke():
                    self.give_up(reason)
            return False
        # first: without its array, the folder of a job would say nothing
        for job_id in self.made:
            self.spool.discard(job_id, 1)
        self.spool.arrays.discard(self.array)
        return True

    def is_over(self) -> bool:
        """See `ArrayFiles`."""
        return self.spool.arrays.is_over(self.array)


#: A job or an array that is to be submitted.
JobAttempt = JobIntent | ArrayAttempt
