"""The journal of a run, or of a group run: the state of each entry, and requests to cancel.

The driver records each event there before it relies on it, so that another process can go on with the run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import attrs

from jpsi import JobState, JobStatus, Reason, SubmitException
from jpsi_engine import make_private_directory, open_private, sync_directory, write_all

from ..planning import Entry, Plan, flatten

#: A JSON object.
Event = dict[str, Any]
#: The reason of an entry that was cancelled because a dependency failed.
DEPENDENCY_FAILED = "dependency_failed"
#: The reason of an entry that the user cancelled.
CANCELLED = "cancelled"
#: The reason of a service that was ended because nothing is left that needs it.
NO_LONGER_NEEDED = "no_longer_needed"
#: The reason of an entry that failed because services leave no room for it.
NO_ROOM = "room"
#: The same as a sentence.
HELD_BY_SERVICES = "services hold the resources that it needs"
#: The reason of an entry whose submission failed for good: it has no job.
NOT_SUBMITTED = "submit"
#: The reason of an entry that completed in the run before, and does not run again.
COMPLETED_BEFORE = "completed_before"
#: What to do about a run whose files are damaged.
REPAIR = (
    "restore the file from a backup; or end the process that drives the run, if one does, and once jpsi ls "
    "shows that no job of the run is left, move its folder away, and begin a new one with jpsi workflow run "
    "--again"
)
#: Reasons of cancellations that are consequences: no user requested them.
CONSEQUENCES = {DEPENDENCY_FAILED, NO_LONGER_NEEDED}
#: Reasons of a job that ended with its allocation, not by itself.
LOST = {Reason.LOST, Reason.NODE_FAIL}
#: The name of the folder of group runs in that of their run.
INSIDE = "inside"


@attrs.define(slots=True, eq=False)
class Part:
    """A replica of an entry, and its state."""

    entry: Entry
    #: Replicas count from 1.
    replica: int
    state: JobState = JobState.NEW
    #: The id of its job; None if it has none yet.
    job_id: str | None = None
    #: True if the batch system is known to have the job.
    is_submitted: bool = False
    #: True once the probe of a service has succeeded.
    is_ready: bool = False
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None

    @property
    def is_live(self) -> bool:
        """True if it has a job that has not ended."""
        return self.job_id is not None and not self.state.final

    @property
    def is_done(self) -> bool:
        """True if it completed, or was not to run: it is cancelled only as a consequence of another end."""
        is_consequence = self.state is JobState.CANCELED and self.reason in CONSEQUENCES
        return self.state is JobState.COMPLETED or is_consequence

    def event(self, **content: Any) -> Event:  # noqa: ANN401  what JSON has
        """Return an event of this replica."""
        return {"entry": self.entry.id, "replica": self.replica, **content}

    def end_event(
        self,
        state: JobState,
        reason: str | None = None,
        message: str | None = None,
        exit_code: int | None = None,
    ) -> Event:
        """Return the event that it has ended."""
        return self.event(state=state.value, exit_code=exit_code, reason=reason, message=message)

    def end_event_from_status(self, status: JobStatus, why_cancelled: str | None = None) -> Event:
        """Return the event that it has ended as its job did; `why_cancelled` if the driver ended that."""
        reason = None if status.reason is None else status.reason.value
        if status.reason is Reason.DEPENDENCY:
            reason = DEPENDENCY_FAILED
        elif status.state is JobState.CANCELED and why_cancelled is not None:
            reason = why_cancelled
        return self.end_event(status.state, reason, status.message, status.exit_code)

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take in an event."""
        if "job" in event:
            self.job_id, self.is_submitted, self.is_ready = event["job"], False, False
        if event.get("is_submitted"):
            self.is_submitted, self.state = True, JobState.QUEUED
        if event.get("is_ready"):
            self.is_ready = True
        if "state" in event:
            self.state = JobState(event["state"])
            self.exit_code, self.reason = event.get("exit_code"), event.get("reason")
            self.message = event.get("message")


@attrs.define(slots=True)
class Journal:
    """A run of a document on disk, and the state of its entries."""

    path: Path
    plan: Plan
    parts: dict[str, list[Part]]
    _file: int | None = None
    # how many bytes of the journal were read
    _read: int = 0

    @property
    def states(self) -> dict[str, list[JobState]]:
        """The state of each replica of each entry."""
        return {name: [it.state for it in parts] for name, parts in self.parts.items()}

    def all_parts(self) -> list[Part]:
        """Return the replicas of all entries, in their order."""
        return [part for parts in self.parts.values() for part in parts]

    @property
    def is_over(self) -> bool:
        """True if all entries have ended."""
        return self.have_ended()

    def have_ended(self, entries: Collection[str] = ()) -> bool:
        """Return True if these entries have ended; without any, if all have."""
        return all(it.state.final for name in entries or self.parts for it in self.parts[name])

    @property
    def work(self) -> Path:
        """The folder for the files of the pilot that runs the tasks of a group on several nodes."""
        return self.path / "work"

    @property
    def staging(self) -> Path:
        """The folder of the archives of staged files; the insides of allocations use that of their run."""
        outer = self.path.parents[1] if self.path.parent.name == INSIDE else self.path
        return outer / "staged"

    @property
    def life(self) -> str | None:
        """The start of the allocation in which this inside runs; None if it has not begun."""
        return _read_optional(self.path / "life")

    def record_life(self, life: str) -> None:
        """Record the start of the allocation in which this inside runs."""
        self._write("life", life)

    def _write(self, name: str, text: str) -> None:
        """Write a file of the run; readers see it as a whole or not at all."""
        file, new_file = tempfile.mkstemp(dir=self.path, prefix="new.")
        with os.fdopen(file, "w", encoding="utf-8") as written:
            written.write(text)
        Path(new_file).rename(self.path / name)

    @property
    def is_cancelled(self) -> bool:
        """True if the run is to be cancelled as a whole."""
        return self.path.joinpath("cancel").exists()

    def is_cancel_requested(self, entry: str) -> bool:
        """Return True if this entry, or the whole run, is to be cancelled."""
        return self.is_cancelled or entry in self.cancelled_entries

    @property
    def cancel_reason(self) -> str:
        """The reason why the run is to end; `cancelled` if there is none."""
        return _read_optional(self.path / "cancel") or CANCELLED

    def cancel(self, *entries: str, reason: str = "") -> None:
        """Ask the process that drives the run, now or later, to end it, or some of its entries.

        Args:
            entries: those to end; none is all.
            reason: the reason in all ends that this causes; empty is `cancelled`.
        """
        with convert_disk_errors(f"{self.path / 'cancel'} cannot be made"):
            for name in entries:
                os.close(open_private(self.path / f"cancel.{quote(name, safe='')}", os.O_RDWR | os.O_CREAT))
            # the driver reads the reason as soon as the file exists
            if not entries and not self.is_cancelled:
                self._write("cancel", reason)

    def withdraw_cancel(self) -> None:
        """Withdraw the request to end the run."""
        self.path.joinpath("cancel").unlink()

    @property
    def cancelled_entries(self) -> set[str]:
        """The entries that the user wants to end."""
        return {unquote(it.name.partition(".")[2]) for it in self.path.glob("cancel.*")}

    @property
    def is_driven(self) -> bool:
        """True if a process drives the run."""
        with self.lock() as is_locked:
            return not is_locked

    def append(self, events: Sequence[Mapping[str, Any]], *, is_synced: bool = False) -> None:
        """Append events to the journal, and apply them.

        Args:
            events: each with the id of an entry.
            is_synced: True if the events must survive a crash of the machine before anything else is done.
        """
        if not events:
            return
        text = "".join(json.dumps(it, separators=(",", ":")) + "\n" for it in events)
        path = self.path / "journal"
        with convert_disk_errors(f"the journal of the workflow, {path}, cannot be written"):
            if self._file is None:
                self._file = _open_journal(path)
            write_all(self._file, text.encode())
            if is_synced:
                os.fsync(self._file)
        self._apply(events)

    def _apply(self, events: Iterable[Mapping[str, Any]]) -> None:
        for event in events:
            self.parts[event["entry"]][event["replica"] - 1].apply(event)

    def read_new_events(self) -> None:
        """Apply events that other processes have written since the last read; not for the writer itself.

        Raises:
            SubmitException: the journal cannot be read.
        """
        path = self.path / "journal"
        try:
            with path.open("rb") as file:
                file.seek(self._read)
                new_file = file.read()
            # the last line may be incomplete
            complete = new_file[: new_file.rfind(b"\n") + 1]
            self._apply(map(json.loads, complete.splitlines()))
        except FileNotFoundError:
            return
        except OSError as e:
            raise SubmitException(f"the journal {path} cannot be read: {e.strerror}", e) from e
        except (ValueError, LookupError, TypeError) as e:
            msg = f"the journal {path} cannot be read: {e!r}; {REPAIR}"
            raise SubmitException(msg, e) from e
        self._read += len(complete)

    def close(self) -> None:
        """Close the journal's file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @contextlib.contextmanager
    def lock(self, *, is_waiting: bool = False) -> Iterator[bool]:
        """Hold the lock of the run within the block; yield False if another process holds it.

        Args:
            is_waiting: True to wait until the process that drives the run has ended.
        """
        path = self.path / "lock"
        with convert_disk_errors(f"{path} cannot be opened"):
            file = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if is_waiting else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(file)


def _open_journal(path: Path) -> int:
    """Open a journal to append to it; cut away an incomplete last line."""
    is_new = not path.exists()
    file = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    if is_new:
        sync_directory(path.parent)
    written = os.pread(file, os.fstat(file).st_size, 0)
    os.ftruncate(file, written.rfind(b"\n") + 1)
    return file


def inner_journal(path: Path, allocation: Entry) -> Journal:
    """Return the journal of a group run; `path` is the folder of the run that the group is in."""
    folder = path / INSIDE / allocation.id
    with convert_disk_errors(f"{folder} cannot be made"):
        make_private_directory(folder, "the folder of what runs inside")
    return load_journal(folder, Plan(source=allocation.id, target="local", entries=flatten(allocation)))


def load_journal(path: Path, plan: Plan) -> Journal:
    """Return the journal in a folder, of a run of a plan, with all events read."""
    parts = {it.id: [Part(it, number) for number in range(1, it.replicas + 1)] for it in plan.entries}
    found = Journal(path, plan, parts)
    found.read_new_events()
    return found


@contextlib.contextmanager
def convert_disk_errors(message: str) -> Iterator[None]:
    """Within the block, turn an error of the disk into a SubmitException that begins with a sentence."""
    try:
        yield
    except OSError as e:
        raise SubmitException(f"{message}: {e.strerror}", e) from e


def _read_optional(path: Path) -> str | None:
    """Return the text of a file; None if there is no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
