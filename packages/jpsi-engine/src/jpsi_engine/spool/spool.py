"""What is on disk for the jobs of one executor on one target; docs/reference/spool.md draws it.

    <root>/layout                       the version of this layout
    <root>/jobs/<id>/intent.<n>.json    attempt n: what was asked for, written before anything is started;
                                        its native id is added as a second line
    <root>/jobs/<id>/run.<n>            what carries it out
    <root>/jobs/<id>/claim.<n>          made exclusively by the runner (its pid) or by whoever revokes it
    <root>/jobs/<id>/stop.<n>.json      jpsi told attempt n to end
    <root>/jobs/<id>/final.<n>.json     the final status, where it does not follow from the exit marker alone
    <root>/jobs/<id>/unsent.<n>         attempt n was revoked, and its submitter told so; why, in words
    <root>/jobs/<id>/get.<n>            files of attempt n are elsewhere, and not yet here as they are to be;
                                        how far they are, in words
    <root>/jobs/<id>/found              another machine has submitted it
    <root>/jobs/<id>/stdout, stderr     streams without a path of their own
    <root>/arrays/                      jobs that were submitted as one; see `array_files`
    <root>/trash/                       folders that are being removed
    <root>/staged/<id>                  what was staged for a job is still elsewhere, and nobody needs it
    <root>/events/                      markers until somebody consumes them; then they are in the folder
    <root>/requeue.json                 after which exit codes a job is run again; see `site_codes`
    <root>/asking/                      what processes tell each other about the batch system; see `sharing`

Everything is private to the user. What more than one process may read at any time appears complete or not at
all.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from jpsi.plugin import ConfigError
from jpsi.plugin.kit import (
    check_directory_here,
    make_directories,
    make_directory,
    open_private,
    private_opener,
)
from jpsi_engine.host import exists, forget, is_transient, take_lock, write, write_all, write_new, write_once
from jpsi_engine.spool.arrays import ArrayFiles, Place, add_native_id, adopt, link, read_link
from jpsi_engine.spool.claims import REVOKED, Claim, read_claim, revoke
from jpsi_engine.spool.damage import folder_problems, read_final, read_stop
from jpsi_engine.spool.roots import Root
from jpsi_engine.spool.run_evidence import has_run, last_attempt
from jpsi_engine.spool.write_retries import Unwritten
from jpsi_engine.verdict import Marker, parse, scan

__all__ = ["REVOKED", "Claim", "Intent", "Spool", "is_transient"]

#: How the file is called that says that files of an attempt are still elsewhere, before its number.
AWAITED = "get"
#: How the file is called that says that another machine has submitted a job or an array.
FOUND = "found"
#: How the file is called that says that the submission of an attempt failed, before its number.
UNSENT = "unsent"


@attrs.frozen(slots=True)
class Intent:
    """One attempt to run a job, as it was written down."""

    job_id: str
    attempt: int
    content: dict[str, Any]
    #: None if the submitter died before it could add it, and for an element of an array.
    native_id: str | None
    #: Which element of which array it is; None for a job by itself.
    place: Place | None = None


def stop_file(job_id: str, attempt: int) -> str:
    """The file, below the root, that says that an attempt was told to end."""
    return f"jobs/{job_id}/stop.{attempt}.json"


class Spool:
    """The files below one root. Threads and processes may share them; every method is safe between both.

    Methods raise OSError as it comes; the engine says what it means for a submission.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.jobs = f"{root}/jobs"
        self.events = f"{root}/events"
        self._trash = f"{root}/trash"
        self._staged = f"{root}/staged"
        self._root = Root(self.root, (self.jobs, f"{root}/arrays", self.events, self._trash))
        #: Jobs that were submitted as one.
        self.arrays = ArrayFiles(self.root, self._root.check)
        #: What could not be written here.
        self.unwritten = Unwritten(self.root)

    def open(self) -> None:
        """Make the directories, or check that they are what they must be.

        Raises:
            ConfigError: a newer jpsi wrote here, or others can change what is in the root or leads there.
            OSError: the directories cannot be made.
        """
        self._root.open()

    def folder(self, job_id: str) -> str:
        """The folder of a job."""
        return f"{self.jobs}/{job_id}"

    def prepare(self, job_id: str, attempt: int, intent: dict[str, Any], script: str) -> int:
        """Write down one attempt and return a descriptor that holds the lock on it; see `reserve`."""
        lock = self.reserve(job_id, attempt)
        try:
            self.write_down(lock, job_id, attempt, intent, script)
        except BaseException:
            os.close(lock)
            self.discard(job_id, attempt)
            raise
        return lock

    def reserve(self, job_id: str, attempt: int) -> int:
        """Make one attempt, of which nothing is known yet, and return a descriptor that holds the lock on it.

        While that descriptor or a copy of it is open, nobody else judges the attempt. Cut short before
        `write_down` has returned, it counts as never made: until then nothing of it is started.

        Raises:
            FileExistsError: somebody else made this attempt.
            ConfigError: others can change what is in the root, or leads there, or in the folder.
        """
        folder = self.folder(job_id)
        try:
            self._root.check()
            self._make_folder(folder, attempt)
        except FileNotFoundError:
            # Somebody removed the root, as those do who clean up.
            self.open()
            self._make_folder(folder, attempt)
        try:
            lock = _open_intent(folder, attempt)
        except BaseException:
            if attempt == 1:
                self.discard(job_id, attempt)
            raise
        if attempt > 1 and exists(link(folder, attempt)):
            os.close(lock)
            forget(f"{folder}/intent.{attempt}.json")
            raise FileExistsError(folder)
        return lock

    @staticmethod
    def _make_folder(folder: str, attempt: int) -> None:
        try:
            make_directory(folder)
        except FileExistsError:
            if attempt == 1:
                raise
            check_directory_here(folder, "the folder of a job")

    def write_down(self, lock: int, job_id: str, attempt: int, intent: dict[str, Any], script: str) -> None:
        """Write down what an attempt is that was reserved, and whose lock is held."""
        try:
            write_all(lock, json.dumps(intent).encode("ascii"))
        except BaseException:
            forget(f"{self.folder(job_id)}/intent.{attempt}.json")
            raise
        write_new(f"{self.folder(job_id)}/run.{attempt}", os.fsencode(script))

    @staticmethod
    def sync(lock: int) -> None:
        """Have an attempt that was prepared outlive a crash of this machine."""
        os.fsync(lock)

    @staticmethod
    def started(lock: int, native_id: str) -> None:
        """Add the native id to the attempt whose lock is held."""
        write_all(lock, b"\n" + native_id.encode("ascii"))

    def discard(self, job_id: str, attempt: int, why: str = "") -> None:
        """Forget an attempt that was never started; never raises.

        Args:
            job_id: the job.
            attempt: the attempt.
            why: the reason, in words, which is written down if there are earlier attempts.
        """
        if attempt == 1:
            shutil.rmtree(self.folder(job_id), ignore_errors=True)
        elif self.has_intent(job_id, attempt):
            # Left as it is, the attempt counts as made; revoked, nobody takes it for running.
            with contextlib.suppress(OSError):
                if self.revoke(job_id, attempt):
                    self.give_up(job_id, attempt, why)

    def has_intent(self, job_id: str, attempt: int) -> bool:
        """Whether an attempt was made."""
        return exists(f"{self.folder(job_id)}/intent.{attempt}.json")

    def has_script(self, job_id: str, attempt: int) -> bool:
        """Return True if an attempt was made by itself, although its intent may be lost."""
        return self.has_intent(job_id, attempt) or exists(f"{self.folder(job_id)}/run.{attempt}")

    def claim(self, job_id: str, attempt: int) -> Claim | None:
        """Who has claimed an attempt, or None."""
        return read_claim(f"{self.folder(job_id)}/claim.{attempt}")

    def revoke(self, job_id: str, attempt: int) -> bool:
        """Claim an attempt so that it can never run; False if it is claimed already."""
        return revoke(f"{self.folder(job_id)}/claim.{attempt}")

    def is_revoked(self, job_id: str, attempt: int) -> bool:
        """Return True if an attempt can never run, as somebody saw to that."""
        claim = self.claim(job_id, attempt)
        return claim is not None and claim.text == REVOKED

    def give_up(self, job_id: str, attempt: int, why: str) -> None:
        """Write down that the submitter of an attempt, which is revoked already, was told that it failed."""
        write_once(f"{self.folder(job_id)}/{UNSENT}.{attempt}", json.dumps(why).encode("ascii"))

    def is_given_up(self, job_id: str, attempt: int) -> bool:
        """Return True if `give_up` was called for an attempt."""
        return exists(f"{self.folder(job_id)}/{UNSENT}.{attempt}")

    def adopt(self, job_id: str, attempt: int, place: Place) -> None:
        """See to it that a job has a folder which was written down as an element of an array."""
        adopt(self.folder(job_id), attempt, place)

    def enrol(self, job_id: str, attempt: int, place: Place) -> None:
        """Write down, before an array is sent, that an attempt of a job that has earlier ones is in it.

        Without that, whoever finds the folder would take the attempt before for the last one.

        Raises:
            FileExistsError: somebody else made this attempt.
        """
        is_ours = adopt(self.folder(job_id), attempt, place)
        if not is_ours or self.has_intent(job_id, attempt):
            if is_ours:
                self.leave(job_id, attempt)
            raise FileExistsError(self.folder(job_id))

    def leave(self, job_id: str, attempt: int) -> None:
        """Take back what `enrol` wrote down, as the array is not sent; never raises."""
        forget(link(self.folder(job_id), attempt))

    def is_made(self, job_id: str, attempt: int) -> bool:
        """Whether an attempt was made, by itself or as an element of an array."""
        return self.has_intent(job_id, attempt) or exists(link(self.folder(job_id), attempt))

    def stop(self, job_id: str, attempt: int, content: dict[str, Any]) -> dict[str, Any]:
        """Write down that an attempt was told to end; the first one to say so is remembered."""
        path = f"{self.root}/{stop_file(job_id, attempt)}"
        is_first = write_once(path, json.dumps(content).encode("ascii"))
        return content if is_first else self.read_stop(job_id, attempt) or content

    def read_stop(self, job_id: str, attempt: int) -> dict[str, Any] | None:
        """What `stop` wrote down for an attempt, or None; of a file that is damaged, when it was made."""
        return read_stop(f"{self.root}/{stop_file(job_id, attempt)}")

    def read_final(self, job_id: str, attempt: int) -> dict[str, Any] | None:
        """What `finish` wrote down for an attempt, or None; nothing that is damaged tells an end."""
        return read_final(f"{self.folder(job_id)}/final.{attempt}.json")

    def finish(self, job_id: str, attempt: int, content: dict[str, Any]) -> None:
        """Write down a final status that does not follow from the exit marker alone."""
        path, data = f"{self.folder(job_id)}/final.{attempt}.json", json.dumps(content).encode("ascii")
        if not write_once(path, data) and read_final(path) is None and not os.path.isdir(path):  # noqa: PTH112
            # what is there is damaged
            write(path, data)

    def damage(self, job_id: str) -> str | None:
        """What is wrong with the files of a job; None if nothing is.

        One whose submission was cut short before anything was started is no job.
        """
        names = self.names(job_id)
        found = list(folder_problems(self.root, job_id, names))
        return "; ".join(found) or None

    def awaited(self, job_id: str, attempt: int) -> str:
        """The file that is there while files of an attempt are elsewhere that are to be here in the end."""
        return f"{self.folder(job_id)}/{AWAITED}.{attempt}"

    def await_files(self, job_id: str, attempt: int) -> None:
        """Write down that an attempt has not ended before its files are here."""
        write(self.awaited(job_id, attempt), b"")

    def tell_awaited(self, job_id: str, attempt: int, words: str) -> None:
        """Write down how far the files of an attempt are, for people; never raises."""
        # whoever holds the lock on it is to keep that: it is no other file afterwards
        with contextlib.suppress(OSError):
            fd = os.open(self.awaited(job_id, attempt), os.O_WRONLY | os.O_TRUNC)
            try:
                write_all(fd, json.dumps(words).encode("ascii"))
            finally:
                os.close(fd)

    def await_no_more(self, job_id: str, attempt: int) -> None:
        """The files of an attempt are here, or will never be."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.awaited(job_id, attempt))  # noqa: PTH108

    def need_no_more(self, job_id: str) -> None:
        """Write down that what was staged for a job is to be removed where it is."""
        make_directories(self._staged)
        write(f"{self._staged}/{job_id}", b"")

    def not_needed(self) -> list[str]:
        """The jobs for which `need_no_more` was called."""
        try:
            return os.listdir(self._staged)  # noqa: PTH208
        except FileNotFoundError:
            return []

    def has_removed(self, job_ids: Iterable[str]) -> None:
        """What was staged for these jobs is there no more."""
        for job_id in job_ids:
            forget(f"{self._staged}/{job_id}")

    def collect(
        self,
        job_ids: Iterable[str],
        *,
        only_new: bool = False,
        enter: Callable[[str], object] = lambda _: None,
    ) -> dict[str, list[Marker]]:
        """Take the markers of these jobs out of `events` into their folders, and return all that are there.

        Args:
            job_ids: the jobs.
            only_new: leave out jobs without a new marker.
            enter: called with the id of a job that has left a marker and has no folder, which it may make.

        Raises:
            PermissionError: others can change what is there.
        """
        wanted = set(job_ids)
        try:
            self._root.check()
            new = scan(self.events, wanted)
        except FileNotFoundError:
            # Somebody removed it, as those do who clean up: jobs that start from now on find it again.
            make_directories(self.events)
            new = []
        except ConfigError as e:
            # what others may have left there tells nothing, and nothing follows from what is missing
            raise PermissionError(errno.EPERM, str(e), self.events) from e
        taken, unmoved = set[str](), dict[str, list[Marker]]()
        for marker in new:
            try:
                is_there = self.consume(marker, enter)
            except OSError as e:
                # a disk that is full or read-only: what a job has left counts all the same
                self.unwritten.failed(e)
                unmoved.setdefault(marker.job_id, []).append(marker)
                is_there = True
            taken.update([marker.job_id] if is_there else [])
        if taken and not unmoved:
            self.unwritten.succeeded()
        if only_new:
            wanted = taken
        return {job_id: [*self.consumed(job_id), *unmoved.get(job_id, ())] for job_id in wanted}

    def has_news(self, job_id: str) -> bool:
        """Whether a job has left markers that nobody has taken to its folder yet."""
        return bool(self.news({job_id}))

    def news(self, job_ids: Collection[str]) -> list[Marker]:
        """The markers of these jobs that nobody has taken to their folders yet."""
        try:
            return scan(self.events, job_ids)
        except FileNotFoundError:
            return []

    def consumed(self, job_id: str) -> list[Marker]:
        """The markers that this process or another has taken to the job's folder."""
        try:
            return scan(self.folder(job_id))
        except FileNotFoundError:
            return []

    def consume(self, marker: Marker, enter: Callable[[str], object] = lambda _: None) -> bool:
        """Move a marker into its job's folder; whoever comes second finds it there.

        Returns whether it is there. It stays where it is while the folder is not to be seen: one that was
        made by another machine may appear here later.
        """
        if self._move(marker):
            return True
        with contextlib.suppress(OSError):
            enter(marker.job_id)
        return self._move(marker)

    def _move(self, marker: Marker) -> bool:
        folder = self.folder(marker.job_id)
        try:
            os.rename(f"{self.events}/{marker.name}", f"{folder}/{marker.name}")  # noqa: PTH104
        except FileNotFoundError:
            return os.path.isdir(folder)  # noqa: PTH112
        return True

    def job_ids(self) -> list[str]:
        """The ids of all jobs that have a folder."""
        return os.listdir(self.jobs)  # noqa: PTH208

    def has_begun(self, job_id: str, attempt: int) -> bool:
        """Whether an attempt began to run, as its folder tells, whatever became of its markers."""
        return any(name.startswith(f"start.{attempt}.") for name in self.names(job_id))

    def has_run(self, job_id: str, attempt: int, names: Collection[str] = ()) -> bool:
        """Whether an attempt is known to have begun, by whatever it has left, although its claim may be lost.

        Args:
            job_id: the job.
            attempt: the attempt.
            names: of markers that nobody has taken to the job's folder yet.
        """
        claim = self.claim(job_id, attempt)
        is_taken = claim is not None and claim.text not in {"", REVOKED}
        return is_taken or has_run(job_id, attempt, [*self.names(job_id), *names])

    def is_final(self, job_id: str, settles: Callable[[list[Marker]], bool]) -> bool:
        """Whether the last attempt of a job is settled: nobody needs to follow it any more.

        Args:
            job_id: the job.
            settles: whether these markers of an attempt say all that there is to know; it is asked only if
                the attempt was not told to end.
        """
        names = self.names(job_id)
        attempt = last_attempt(job_id, names)
        if f"{UNSENT}.{attempt}" in names:
            return True
        if f"final.{attempt}.json" in names and self.read_final(job_id, attempt) is not None:
            return True
        if f"stop.{attempt}.json" in names or f"{AWAITED}.{attempt}" in names:
            return False
        return settles([marker for marker in _markers_among(names) if marker.attempt == attempt])

    def last_attempt(self, job_id: str) -> int:
        """The number of the last attempt that the folder of a job tells of; 0 if there is none."""
        return last_attempt(job_id, self.names(job_id))

    def places(self, job_id: str) -> dict[int, Place | None]:
        """Which elements the attempts of a job are, by their numbers; None where that cannot be read.

        Those that the job made by itself, and those that its folder does not know, are left out.
        """
        linked = [name for name in self.names(job_id) if name.startswith("array.")]
        return {attempt: read_link(self.folder(job_id), attempt) for attempt in _attempts(linked)}

    def last_place(self, job_id: str) -> Place | None:
        """Which element the last attempt of a job is; None for a job by itself.

        What was asked for is not read, which takes the longer the larger the array is.
        """
        attempt = self.last_attempt(job_id)
        return None if self.has_intent(job_id, attempt) else read_link(self.folder(job_id), attempt)

    def last_intent(self, job_id: str) -> Intent | None:
        """The last attempt that was made, if there is one that can be read.

        One that was cut short while it was written, or that only other files tell of, asked for the same as
        the one before; one in an array that is gone asked for what nobody knows, and runs no more.
        """
        names = self.names(job_id)
        last = last_attempt(job_id, names)
        attempts = sorted(set(_attempts(names)), reverse=True)
        if attempts:
            self._check_folder(job_id)
        for attempt in attempts:
            intent = self._read_intent(job_id, attempt) or self._read_element(job_id, attempt)
            is_last = attempt == last
            if intent is None and is_last and not self.has_intent(job_id, attempt):
                return None
            if intent is not None:
                return attrs.evolve(
                    intent,
                    attempt=last,
                    native_id=intent.native_id if is_last else None,
                    place=intent.place if is_last else None,
                )
        return None

    def intent(self, job_id: str, attempt: int) -> Intent | None:
        """Return one attempt of a job by itself; None if there is none that can be read."""
        return self._read_intent(job_id, attempt)

    def _check_folder(self, job_id: str) -> None:
        """Raise if others can change what is in the folder of a job: it may ask for what nobody asked for."""
        try:
            check_directory_here(self.folder(job_id), "the folder of a job")
        except ConfigError as e:
            raise PermissionError(errno.EPERM, str(e), self.folder(job_id)) from e

    def _read_intent(self, job_id: str, attempt: int) -> Intent | None:
        try:
            path = f"{self.folder(job_id)}/intent.{attempt}.json"
            with open(path, encoding="ascii", opener=private_opener) as file:
                content = json.loads(file.readline())
                native_id = file.readline() or None
        except (FileNotFoundError, IsADirectoryError, PermissionError, ValueError, RecursionError):
            return None
        return Intent(job_id, attempt, content, native_id) if isinstance(content, dict) else None

    def _read_element(self, job_id: str, attempt: int) -> Intent | None:
        place = read_link(self.folder(job_id), attempt)
        content = None if place is None else self.arrays.read_element(place)
        return None if content is None else Intent(job_id, attempt, content, None, place)

    @contextlib.contextmanager
    def judging(self, intent: Intent, patience_seconds: float) -> Iterator[bool]:
        """Hold the lock on an attempt; yields False if somebody keeps it longer than that.

        Its submitter has it until the attempt is started, its runner until it has made its claim.
        """
        path = f"{self.folder(intent.job_id)}/intent.{intent.attempt}.json"
        try:
            fd = open_private(path, os.O_RDWR)
        except FileNotFoundError:
            # nobody submits an attempt whose intent is lost
            yield self.last_attempt(intent.job_id) == intent.attempt
            return
        try:
            yield take_lock(fd, patience_seconds)
        finally:
            os.close(fd)

    def note_found(self, job_id: str, attempt: int, native_id: str) -> None:
        """Add the native id by which the batch system has an attempt; called within `judging`.

        Whoever looks from now on sees that it was submitted, and does not take it back.
        """
        add_native_id(f"{self.folder(job_id)}/intent.{attempt}.json", native_id)

    def remove(self, job_id: str) -> None:
        """Remove the folder of a job; never raises."""
        # Half removed, it would look like a job that is not final: it disappears at once.
        with contextlib.suppress(OSError):
            os.rename(self.folder(job_id), f"{self._trash}/{job_id}")  # noqa: PTH104

    def trash(self) -> list[str]:
        """What removed folders were called that still take room."""
        try:
            return os.listdir(self._trash)  # noqa: PTH208
        except FileNotFoundError:
            return []

    def removed(self, name: str) -> list[str]:
        """What is in a removed folder that still takes room."""
        try:
            return os.listdir(f"{self._trash}/{name}")  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []

    def empty_trash(self, names: Iterable[str]) -> None:
        """Have the room again that these removed folders took."""
        for name in names:
            shutil.rmtree(f"{self._trash}/{name}", ignore_errors=True)
            # what somebody else has left among the folders
            forget(f"{self._trash}/{name}")

    def names(self, job_id: str) -> list[str]:
        """What is in the folder of a job."""
        try:
            return os.listdir(self.folder(job_id))  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []


# intent.<n>.json and array.<n>
_ATTEMPTS = frozenset({("intent", "json"), ("array",)})


def _attempts(names: Iterable[str]) -> list[int]:
    parts = [name.split(".") for name in names]
    return [
        int(number)
        for kind, number, *ending in (part for part in parts if len(part) > 1)
        if number.isdigit() and (kind, *ending) in _ATTEMPTS
    ]


def _markers_among(names: Iterable[str]) -> Iterator[Marker]:
    for name in names:
        marker = parse(name, 0)
        if marker is not None:
            yield marker


def _open_intent(folder: str, attempt: int) -> int:
    """Make the file for an intent, unless there is one, and return a descriptor that holds the lock on it."""
    path = f"{folder}/intent.{attempt}.json"
    fd = open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except BaseException:
        os.close(fd)
        forget(path)
        raise
    return fd
