"""What is written down to be submitted: one attempt of a job, or an array."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Protocol

import attrs

from jpsi_engine.host import exists
from jpsi_engine.spool.claims import REVOKED, Claim
from jpsi_engine.spool.spool import Spool
from jpsi_engine.spool.tags import array_tag, tag
from jpsi_engine.verdict import SETUP_CODE, SHELL


class JobAttempt(Protocol):
    """What is written down to be submitted. Its files are named as below the root of the spool."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def tag(self) -> str:
        """What the batch system carries for it."""

    @property
    def folder(self) -> str:
        """The folder that it is in."""

    @property
    def is_new(self) -> bool:
        """Whether nobody has made that folder before."""

    @property
    def files(self) -> Sequence[str]:
        """What stands in the folder for whoever runs it, the intent first."""

    def file(self, kind: str) -> str:
        """The file of this kind, such as `run` or `claim`."""

    @property
    def shell_is_missing(self) -> str:
        """The marker by which it says that; empty if a batch system alone can tell it."""

    def claim(self) -> Claim | None:
        """Who runs it, if anybody does, by what the spool says."""

    def revoke(self) -> bool:
        """Claim it in the spool, so that nobody ever runs it; False if somebody has."""

    def give_up(self, why: str) -> None:
        """Write down that the caller is told that it failed, after it was revoked: nobody recovers it."""

    def discard(self, why: str = "") -> bool:
        """Forget it, as it was never submitted; never raises. False if it is revoked instead.

        Args:
            why: the reason, in words, for those who look at what is left of it.
        """


@attrs.frozen(slots=True)
class WrittenJob:
    """One attempt of a job."""

    spool: Spool
    job_id: str
    attempt: int

    @property
    def name(self) -> str:
        """See `JobAttempt`."""
        return f"job {self.job_id}"

    @property
    def tag(self) -> str:
        """See `JobAttempt`."""
        return tag(self.job_id, self.attempt)

    @property
    def folder(self) -> str:
        """See `JobAttempt`."""
        return f"jobs/{self.job_id}"

    @property
    def is_new(self) -> bool:
        """See `JobAttempt`."""
        return self.attempt == 1

    @property
    def files(self) -> Sequence[str]:
        """See `JobAttempt`."""
        return [f"intent.{self.attempt}.json", f"run.{self.attempt}"]

    def file(self, kind: str) -> str:
        """See `JobAttempt`."""
        return f"jobs/{self.job_id}/{kind}.{self.attempt}"

    @property
    def shell_is_missing(self) -> str:
        """See `JobAttempt`."""
        return f"events/{self.job_id}.{self.attempt}.exit.{SHELL}.{SETUP_CODE}"

    def claim(self) -> Claim | None:
        """See `JobAttempt`."""
        return self.spool.claim(self.job_id, self.attempt)

    def revoke(self) -> bool:
        """See `JobAttempt`."""
        return self.spool.revoke(self.job_id, self.attempt)

    def give_up(self, why: str) -> None:
        """See `JobAttempt`."""
        self.spool.give_up(self.job_id, self.attempt, why)

    def discard(self, why: str = "") -> bool:
        """See `JobAttempt`."""
        self.spool.discard(self.job_id, self.attempt, why)
        return self.attempt == 1

    def is_over(self) -> bool:
        """Whether it cannot run any more: it was revoked, or forgotten."""
        claim = self.claim()
        return (
            not self.spool.has_intent(self.job_id, self.attempt) if claim is None else claim.text == REVOKED
        )


@attrs.frozen(slots=True)
class WrittenArray:
    """An array."""

    spool: Spool
    array: str
    #: The job that comes first in it, by which users know it.
    first: str = ""
    #: Whether folders of jobs name it already, as they do of jobs that were tried before.
    is_named: bool = False

    @property
    def name(self) -> str:
        """See `JobAttempt`."""
        return f"the array that begins with job {self.first}" if self.first else f"array {self.array}"

    @property
    def tag(self) -> str:
        """See `JobAttempt`."""
        return array_tag(self.array)

    @property
    def folder(self) -> str:
        """See `JobAttempt`."""
        return f"arrays/{self.array}"

    @property
    def is_new(self) -> bool:
        """See `JobAttempt`."""
        return True

    @property
    def files(self) -> Sequence[str]:
        """See `JobAttempt`."""
        found = os.listdir(self.spool.arrays.folder(self.array))  # noqa: PTH208  text, as in the spool
        return ["intent.json", "run", *sorted(name for name in found if name.startswith("elements."))]

    def file(self, kind: str) -> str:
        """See `JobAttempt`."""
        return f"arrays/{self.array}/{kind}"

    @property
    def shell_is_missing(self) -> str:
        """See `JobAttempt`; which element it is, the shell would have to find out."""
        return ""

    def claim(self) -> Claim | None:
        """See `JobAttempt`."""
        return self.spool.arrays.claim(self.array)

    def revoke(self) -> bool:
        """See `JobAttempt`."""
        return self.spool.arrays.revoke(self.array)

    def give_up(self, why: str) -> None:
        """See `JobAttempt`."""
        self.spool.arrays.give_up(self.array, why)

    def discard(self, why: str = "") -> bool:
        """See `JobAttempt`."""
        if self.is_named:
            # it alone tells what became of that attempt of its jobs
            with contextlib.suppress(OSError):
                if self.revoke():
                    self.give_up(why)
            return False
        self.spool.arrays.discard(self.array)
        return True

    def is_over(self) -> bool:
        """Whether none of its elements can run any more: it was revoked, or forgotten."""
        claim = self.claim()
        if claim is None:
            return not exists(f"{self.spool.root}/{self.file('run')}")
        return claim.text == REVOKED
