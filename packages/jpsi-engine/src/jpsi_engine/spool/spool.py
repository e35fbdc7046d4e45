"""The files on disk for the jobs of one executor on one target; docs/reference/spool.md draws the layout.

    <root>/layout                       the version of this layout
    <root>/jobs/<id>/intent.<n>.json    attempt n: the request, written before anything is started;
                                        the client adds the native id as a second line
    <root>/jobs/<id>/run.<n>            the script that runs attempt n
    <root>/jobs/<id>/claim.<n>          made exclusively, by the runner (its pid) or a client that revokes it
    <root>/jobs/<id>/stop.<n>.json      jpsi's request to end attempt n
    <root>/jobs/<id>/final.<n>.json     the final status, if it does not follow from the exit marker alone
    <root>/jobs/<id>/retry.<n>          final.<n>.json alone says how attempt n ended, and if another follows
    <root>/jobs/<id>/no_retry.<n>       jpsi's request that no attempt follow attempt n
    <root>/jobs/<id>/unsent.<n>         attempt n was revoked and its submission failed; the reason, in words
    <root>/jobs/<id>/deferred           the job is submitted once other jobs have ended; see `deferral`
    <root>/jobs/<id>/given_up           the job was deferred, and its batch system refused it for good
    <root>/jobs/<id>/after              what the deferred job waits for; see `shared_dependencies`
    <root>/jobs/<id>/get.<n>            the stage out of attempt n is not complete; its progress, in words
    <root>/jobs/<id>/found              another machine has submitted the job
    <root>/jobs/<id>/stdout, stderr     streams without a path of their own
    <root>/arrays/                      jobs that were submitted as one array; see `arrays`
    <root>/deferred/                    submissions that are deferred until other jobs have ended
    <root>/trash/                       folders that are being removed
    <root>/staged/<id>                  the remote host still has staged files of a job that is done with them
    <root>/events/                      markers, until a client moves them into the folders of their jobs
    <root>/repetitions                  locked by the process that submits jobs again; see `job_store`
    <root>/requeue.json                 the exit codes after which a job is requeued; see `requeue_codes`
    <root>/shared_poll/                 the poll results that processes share; see `shared_poll`

All files are private to the user. A file that processes may read at any time appears complete or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from jpsi.plugin import ConfigError, SubmitException
from jpsi_engine import host
from jpsi_engine.spool.arrays import (
    ArrayFiles,
    ArrayMember,
    add_native_id,
    adopt,
    append_native_id,
    link_path,
    read_link,
)
from jpsi_engine.spool.claims import Claim, claimant, is_revoked, read_claim, revoke
from jpsi_engine.spool.damage import folder_problems, read_final, read_stop
from jpsi_engine.spool.retry_writer import RetryWriter
from jpsi_engine.spool.roots import RETRY_LAYOUT, Root
from jpsi_engine.spool.run_evidence import has_run, last_attempt
from jpsi_engine.spool.stage_out_files import STAGE_OUT_FILE, StageOutFiles
from jpsi_engine.spool.status_values import encode_status
from jpsi_engine.verdict import CANCEL, Marker, Stop, name_with_memory, never_ran_status, parse, scan

#: The file name that says that another machine has submitted a job or an array.
FOUND = "found"
#: The file name, without the attempt's number, that says that the submission of an attempt failed.
UNSENT_FILE = "unsent"
#: The file name that says that a process submits a job once other jobs have ended.
DEFERRED_FILE = "deferred"
#: Its name once that process has given the job up.
GIVEN_UP_FILE = "given_up"


#: The file name, without the attempt's number, of an attempt of a job that may be submitted again after it.
RETRY_FILE = "retry"
#: The file name that says that none may follow an attempt.
NO_RETRY_FILE = "no_retry"
#: The key of a final status that says if another attempt follows; such a status is never of an older jpsi.
RETRY_KEY = "retry"


class RetryCancelledError(SubmitException):
    """A job was cancelled before its next attempt was made; that is on disk as its end."""


@attrs.frozen(slots=True)
class Intent:
    """An attempt to run a job, as read from the spool."""

    job_id: str
    attempt: int
    content: dict[str, Any]
    #: None if the submitting process died before it could add it, and for an array element.
    native_id: str | None
    #: The array and the element that it is; None for a job by itself.
    place: ArrayMember | None = None


def final_file(job_id: str, attempt: int) -> str:
    """Return the path, relative to the root, of the record of the end of an attempt."""
    return f"jobs/{job_id}/final.{attempt}.json"


def stop_file(job_id: str, attempt: int) -> str:
    """Return the path, relative to the root, of the record of a request to end an attempt."""
    return f"jobs/{job_id}/stop.{attempt}.json"


class Spool:
    """The files below one root.

    Threads and processes may share them; every method is safe between both. Methods raise OSError unchanged;
    the engine translates it for the caller.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.jobs = f"{root}/jobs"
        self.events = f"{root}/events"
        self._trash = f"{root}/trash"
        self._staged = f"{root}/staged"
        self.deferrals = f"{root}/deferred"
        self._root = Root(self.root, (self.jobs, f"{root}/arrays", self.events, self._trash))
        #: The arrays in this spool.
        self.arrays = ArrayFiles(self.root, self._root.check)
        #: Writes to this spool, and retries the writes that failed.
        self.retry_writer = RetryWriter(self.root)
        #: The files about stage out that is not complete.
        self.stage_out_files = StageOutFiles(self.jobs)

    def open(self) -> None:
        """Make the directories, or check those that exist.

        Raises:
            ConfigError: a newer jpsi wrote this spool, or other users can change the root, its contents or a
                directory that leads to it.
            OSError: the directories cannot be made.
        """
        self._root.open()

    def folder(self, job_id: str) -> str:
        """Return the path of a job's folder."""
        return f"{self.jobs}/{job_id}"

    def prepare(self, job_id: str, attempt: int, intent: dict[str, Any], script: str | None) -> int:
        """Write the files of an attempt and return a descriptor that holds its lock; see `reserve`.

        For None, the caller writes the script, if one is needed, or discards the attempt.
        """
        lock = self.reserve(job_id, attempt)
        try:
            self.write_attempt(lock, job_id, attempt, intent, script)
        except BaseException:
            os.close(lock)
            self.discard(job_id, attempt)
            raise
        return lock

    def reserve(self, job_id: str, attempt: int) -> int:
        """Make an empty intent for an attempt and return a descriptor that holds the lock on it.

        While that descriptor or a copy of it is open, no other process decides what became of the attempt. If
        this process dies before `write_attempt` has returned, the attempt counts as never made: nothing of it
        is started before.

        Raises:
            FileExistsError: another process made this attempt, or one in its place, or ended the job.
            ConfigError: other users can change the root, the folder or a directory that leads there.
        """
        folder = self.folder(job_id)
        try:
            self._root.check()
            self._make_folder(folder, attempt)
        except FileNotFoundError:
            # The user or a cleanup job removed the root.
            self.open()
            self._make_folder(folder, attempt)
        try:
            lock = host.create_locked(f"{folder}/intent.{attempt}.json")
        except BaseException:
            if attempt == 1:
                self.discard(job_id, attempt)
            raise
        is_contested = True
        try:
            is_contested = attempt > 1 and self._is_contested(job_id, attempt)
        finally:
            if is_contested:
                os.close(lock)
                host.forget(f"{folder}/intent.{attempt}.json")
        if is_contested:
            raise FileExistsError(folder)
        if attempt > 1:
            self._refuse_cancelled(lock, job_id, attempt)
        return lock

    def _is_contested(self, job_id: str, attempt: int) -> bool:
        """Return True if an attempt is another process's, or if another one that follows the same may run.

        Before its intent was locked, a process that recovers the job may have revoked it.
        """
        if host.exists(link_path(self.folder(job_id), attempt)) or self.is_revoked(job_id, attempt):
            return True
        return self._is_overtaken(job_id, attempt)

    def _is_overtaken(self, job_id: str, attempt: int) -> bool:
        """Return True if another attempt that follows the same one may run, or the job was ended."""
        ended = self.last_retried(job_id, attempt)
        if ended is None and self._was_ended(job_id):
            return True
        others = () if ended is None else range(ended[0] + 1, self.last_attempt(job_id) + 1)
        return any(
            not self.is_revoked(job_id, it) or self.read_final(job_id, it) is not None
            for it in others
            if it != attempt
        )

    def _was_ended(self, job_id: str) -> bool:
        """Return True if a client has ended a job that was never submitted.

        That client writes the request before it looks for a further attempt, so one of both sees the other.
        """
        # of a deferred job, the process that submits it decides
        return self.was_stopped(job_id) and self.read_deferral_name(job_id) is None

    def _refuse_cancelled(self, lock: int, job_id: str, attempt: int) -> None:
        """Raise if a client has cancelled a job before this attempt, and end the job under the lock of it.

        Who cancels it writes the request before it looks for this attempt, so one of both sees the other.
        """
        try:
            ended = self._cancelled_retry(job_id, attempt)
            if ended is None:
                return
            self.end_between_attempts(job_id, attempt, ended, encode_status(never_ran_status()))
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
        raise RetryCancelledError(f"job {job_id} was cancelled")

    def _cancelled_retry(self, job_id: str, attempt: int) -> int | None:
        """Return the attempt that this one was to follow, if the job was cancelled since; otherwise None."""
        ended = self.last_retried(job_id, attempt)
        return ended[0] if ended is not None and self.is_retry_cancelled(job_id, ended[0]) else None

    def end_between_attempts(self, job_id: str, attempt: int, last: int, status: dict[str, Any]) -> None:
        """End a job whose next attempt, whose lock the caller holds, is not submitted.

        Args:
            job_id: the job.
            attempt: the next attempt; it can never run.
            last: the attempt that has run, with whose request the files of the next one begin.
            status: the final status of the job.
        """
        # first of all, while the lock is held: a revoked attempt without an end is followed by another, and
        # the intent that is written next is another file than the one that is locked
        self.finish(job_id, attempt, {**status, RETRY_KEY: None})
        intent = self.find_intent(job_id, last)
        if intent is not None:
            content = json.dumps({**intent.content, "attempt": attempt}).encode("ascii")
            host.write(f"{self.folder(job_id)}/intent.{attempt}.json", content)
        self.revoke(job_id, attempt)

    def may_be_retried(self, job_id: str, attempt: int) -> bool:
        """Return True if `finish` alone decides the end of an attempt, as another may follow it."""
        return host.exists(f"{self.folder(job_id)}/{RETRY_FILE}.{attempt}")

    def last_retried(self, job_id: str, before: int) -> tuple[int, dict[str, Any]] | None:
        """Return the last attempt before this one that another was to follow, with its end; None if none."""
        for attempt in range(before - 1, 0, -1):
            content = self.read_final(job_id, attempt)
            if content is not None and content.get(RETRY_KEY):
                return attempt, content
        return None

    def pending_retry(self, job_id: str) -> tuple[int, dict[str, Any]] | None:
        """Return the attempt that another is to follow, which was not made, with its end; None if none.

        Attempts that were made after it, and can never run, do not count.
        """
        names = self.names(job_id)
        if not any(name.startswith(f"{RETRY_FILE}.") for name in names):
            return None
        for attempt in range(last_attempt(job_id, names), 0, -1):
            content = self.read_final(job_id, attempt)
            if content is not None:
                return (attempt, content) if content.get(RETRY_KEY) else None
            if not self.is_revoked(job_id, attempt):
                return None
        return None

    def retry_reasons(self, job_id: str, before: int) -> list[str]:
        """Return the reasons of the attempts before this one that others were to follow, the oldest first."""
        contents = [self.read_final(job_id, attempt) for attempt in range(1, before)]
        return [str(it[RETRY_KEY]["reason"]) for it in contents if it is not None and it.get(RETRY_KEY)]

    def cancel_retry(self, job_id: str, attempt: int) -> None:
        """Request that no attempt follow this one, which has ended."""
        host.write_once(f"{self.folder(job_id)}/{NO_RETRY_FILE}.{attempt}", b"")

    def is_retry_cancelled(self, job_id: str, attempt: int) -> bool:
        """Return True if a client requested the end of a job before or during this attempt, or after it."""
        # a request of earlier, too: it came too late for the attempt that was being submitted
        stops = (self.read_stop(job_id, it) for it in range(attempt, 0, -1))
        return any(it is not None and it.why == CANCEL for it in stops) or any(
            name.startswith(f"{NO_RETRY_FILE}.") for name in self.names(job_id)
        )

    @staticmethod
    def _make_folder(folder: str, attempt: int) -> None:
        try:
            host.make_directory(folder)
        except FileExistsError:
            if attempt == 1:
                raise
            host.check_directory_here(folder, "the folder of a job")

    def write_attempt(
        self, lock: int, job_id: str, attempt: int, intent: dict[str, Any], script: str | None
    ) -> None:
        """Write the files of an attempt that `reserve` made, and whose lock the caller holds."""
        try:
            if intent.get("spec", {}).get("attributes", {}).get("retry"):
                self.allow_retry(job_id, attempt)
            host.write_all(lock, json.dumps(intent).encode("ascii"))
        except BaseException:
            host.forget(f"{self.folder(job_id)}/intent.{attempt}.json")
            raise
        if script is not None:
            self.write_script(job_id, attempt, script)

    def allow_retry(self, job_id: str, attempt: int) -> None:
        """Record that another attempt may follow this one, before it can run.

        Without that record, a client would take an exit marker for the end.
        """
        self._root.require(RETRY_LAYOUT)
        host.write(f"{self.folder(job_id)}/{RETRY_FILE}.{attempt}", b"")

    def write_script(self, job_id: str, attempt: int, script: str) -> None:
        """Write the script that runs an attempt."""
        host.write_new(f"{self.folder(job_id)}/run.{attempt}", os.fsencode(script))

    @staticmethod
    def sync(lock: int) -> None:
        """Flush a prepared attempt to disk, so that it survives a crash of this machine."""
        os.fsync(lock)

    @staticmethod
    def started(lock: int, native_id: str) -> None:
        """Add the native id to the attempt whose lock the caller holds."""
        append_native_id(lock, native_id)

    def discard(self, job_id: str, attempt: int, reason: str = "") -> None:
        """Forget an attempt that was never started; never raises.

        Args:
            job_id: the job.
            attempt: the attempt.
            reason: the reason, in words; it is written to the spool if there are earlier attempts.
        """
        if attempt == 1:
            shutil.rmtree(self.folder(job_id), ignore_errors=True)
            return
        with contextlib.suppress(OSError):
            # An intent that stays counts as an attempt that was made; revoked, it is not taken for running.
            if self.has_intent(job_id, attempt) and self.revoke(job_id, attempt):
                self.give_up(job_id, attempt, reason)

    def has_intent(self, job_id: str, attempt: int) -> bool:
        """Return True if the attempt has an intent of its own."""
        return host.exists(f"{self.folder(job_id)}/intent.{attempt}.json")

    def has_script(self, job_id: str, attempt: int) -> bool:
        """Return True if an attempt was made as a job by itself, although its intent may be lost."""
        return self.has_intent(job_id, attempt) or host.exists(f"{self.folder(job_id)}/run.{attempt}")

    def claim(self, job_id: str, attempt: int) -> Claim | None:
        """Return the claim on an attempt; None if there is none."""
        return read_claim(f"{self.folder(job_id)}/claim.{attempt}")

    def revoke(self, job_id: str, attempt: int) -> bool:
        """Claim an attempt so that it can never run; return False if it is claimed already."""
        return revoke(f"{self.folder(job_id)}/claim.{attempt}")

    def is_revoked(self, job_id: str, attempt: int) -> bool:
        """Return True if a client has revoked an attempt, or its array, which can then never run."""
        claim = self.claim(job_id, attempt)
        if claim is not None or self.has_intent(job_id, attempt):
            return is_revoked(claim)
        place = read_link(self.folder(job_id), attempt)
        # the folder of the array may have been removed
        return place is not None and self.arrays.is_over(place.array) and not self.has_run(job_id, attempt)

    def give_up(self, job_id: str, attempt: int, reason: str) -> None:
        """Record that the submission of a revoked attempt failed, and that its submitter knows."""
        host.write_once(f"{self.folder(job_id)}/{UNSENT_FILE}.{attempt}", json.dumps(reason).encode("ascii"))

    def is_given_up(self, job_id: str, attempt: int) -> bool:
        """Return True if `give_up` was called for an attempt."""
        return host.exists(f"{self.folder(job_id)}/{UNSENT_FILE}.{attempt}")

    def deferred_attempt(self, job_id: str) -> int | None:
        """Return the last attempt of a deferred job, which is revoked and has no end; None for other jobs."""
        names = self.names(job_id)
        attempt = last_attempt(job_id, names)
        if DEFERRED_FILE not in names or self.read_final(job_id, attempt) is not None:
            return None
        if self.last_retried(job_id, attempt) is not None:
            return None
        has_own_claim = f"intent.{attempt}.json" in names
        place = None if has_own_claim else read_link(self.folder(job_id), attempt)
        is_over = self.is_revoked(job_id, attempt) if place is None else self.arrays.is_revoked(place.array)
        return attempt if is_over else None

    def read_deferral_name(self, job_id: str) -> str | None:
        """Return the name in the file `deferred` of a job; None if there is no file, or it is damaged."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
            return host.read_text(f"{self.folder(job_id)}/{DEFERRED_FILE}")
        return None

    def was_stopped(self, job_id: str) -> bool:
        """Return True if jpsi requested the end of any attempt of a job."""
        return any(name.startswith("stop.") for name in self.names(job_id))

    def adopt(self, job_id: str, attempt: int, place: ArrayMember) -> None:
        """Make the folder of a job that was submitted as an array element, unless it exists."""
        adopt(self.folder(job_id), attempt, place, self.arrays.folder(place.array))

    def link_retry(self, job_id: str, attempt: int, place: ArrayMember) -> None:
        """Link a retried job to its new array, before the array is submitted.

        Without the link, a process that reads the folder would take the previous attempt for the last one.

        Raises:
            FileExistsError: another process made this attempt, or one in its place, or the job was ended or
                cancelled.
        """
        is_new_link = adopt(self.folder(job_id), attempt, place, self.arrays.folder(place.array))
        # after the link, as in `reserve`
        is_contested = not is_new_link or self.has_intent(job_id, attempt)
        if is_contested or self._is_overtaken(job_id, attempt) or self._cancelled_retry(job_id, attempt):
            if is_new_link:
                self.unlink_retry(job_id, attempt)
            raise FileExistsError(self.folder(job_id))

    def unlink_retry(self, job_id: str, attempt: int) -> None:
        """Remove the link that `link_retry` made, as the array is not submitted; never raises."""
        host.forget(link_path(self.folder(job_id), attempt))

    def attempt_exists(self, job_id: str, attempt: int) -> bool:
        """Return True if an attempt was made, as a job by itself or as an array element."""
        return self.has_intent(job_id, attempt) or host.exists(link_path(self.folder(job_id), attempt))

    def stop(self, job_id: str, attempt: int, stop: Stop) -> Stop:
        """Record a request to end an attempt, and return the first such record."""
        path = f"{self.root}/{stop_file(job_id, attempt)}"
        is_first = host.write_once(path, json.dumps(stop.content).encode("ascii"))
        return stop if is_first else self.read_stop(job_id, attempt) or stop

    def replace_stop(self, job_id: str, attempt: int, stop: Stop) -> None:
        """Replace the record that `stop` wrote by one that says more."""
        host.write(f"{self.root}/{stop_file(job_id, attempt)}", json.dumps(stop.content).encode("ascii"))

    def read_stop(self, job_id: str, attempt: int) -> Stop | None:
        """Return the record that `stop` wrote for an attempt, or None.

        If the file is damaged, the record says only when the file was made.
        """
        content = read_stop(f"{self.root}/{stop_file(job_id, attempt)}")
        return None if content is None else Stop.from_content(content)

    def find_stop(self, job_id: str, attempt: int) -> Stop | None:
        """Return the request to end an attempt, as `read_stop`, or what follows from an earlier request.

        The job may have been cancelled while this attempt was being made, by a client that did not know of
        it. If the attempt has not ended, that request becomes one for this attempt, and is recorded as such.
        """
        stop = self.read_stop(job_id, attempt)
        if stop is not None or attempt == 1 or self._cancelled_retry(job_id, attempt) is None:
            return stop
        markers = [*self.new_markers({job_id}), *self.consumed(job_id)]
        if any(it.kind == "exit" and it.attempt == attempt for it in markers):
            return None
        return self.stop(job_id, attempt, Stop(CANCEL, datetime.now(UTC)))

    def read_final(self, job_id: str, attempt: int) -> dict[str, Any] | None:
        """Return the status that `finish` wrote for an attempt; None if there is none or it is damaged."""
        return read_final(f"{self.root}/{final_file(job_id, attempt)}")

    def finish(self, job_id: str, attempt: int, content: dict[str, Any]) -> None:
        """Write a final status that does not follow from the exit marker alone.

        A status that was written before is replaced only if it is damaged.
        """
        path, data = f"{self.root}/{final_file(job_id, attempt)}", json.dumps(content).encode("ascii")
        if not host.write_once(path, data) and read_final(path) is None and not os.path.isdir(path):  # noqa: PTH112
            # the file that exists is damaged
            host.write(path, data)

    def damage(self, job_id: str) -> str | None:
        """Return the problems with the files of a job, joined by semicolons; None if there are none.

        A submission that was cut short before anything was started is not a job and has no problems.
        """
        return "; ".join(folder_problems(self.root, job_id, self.names(job_id))) or None

    def mark_staged_files_unneeded(self, job_id: str) -> None:
        """Record that the files staged in for a job are to be removed from the remote host."""
        host.make_directories(self._staged)
        host.write(f"{self._staged}/{job_id}", b"")

    def jobs_with_unneeded_files(self) -> list[str]:
        """Return the jobs for which `mark_staged_files_unneeded` was called."""
        return host.list_names(self._staged)

    def clear_unneeded_files(self, job_ids: Iterable[str]) -> None:
        """Record that the files staged in for these jobs are removed from the remote host."""
        for job_id in job_ids:
            host.forget(f"{self._staged}/{job_id}")

    def collect(
        self,
        job_ids: Iterable[str],
        *,
        only_new: bool = False,
        enter: Callable[[str], object] = lambda _: None,
        memory: Mapping[tuple[str, int], int] = MappingProxyType({}),
    ) -> dict[str, list[Marker]]:
        """Move the markers of these jobs from `events` into their folders, and return all of their markers.

        Args:
            job_ids: the jobs.
            only_new: leave out jobs without a new marker.
            enter: called with the id of a job that has left a marker, before the marker is moved; it may make
                the folder.
            memory: the bytes of memory that attempts of these jobs have used, which their exit markers then
                say.

        Raises:
            PermissionError: other users can change the root, its folders or a directory that leads there.
        """
        wanted = set(job_ids)
        try:
            self._root.check()
            new = scan(self.events, wanted)
        except FileNotFoundError:
            # The user or a cleanup job removed the folder: jobs that start from now on find it again.
            host.make_directories(self.events)
            new = []
        except ConfigError as e:
            # markers that other users may have left are not evidence, and neither is a missing one
            raise PermissionError(errno.EPERM, str(e), self.events) from e
        consumed_ids, unmoved_markers = set[str](), dict[str, list[Marker]]()
        for marker in new:
            try:
                is_consumed = self.consume(marker, enter, memory.get((marker.job_id, marker.attempt)))
            except OSError as e:
                # The disk is full or read-only: the marker counts although it could not be moved.
                self.retry_writer.failed(e)
                unmoved_markers.setdefault(marker.job_id, []).append(marker)
                is_consumed = True
            consumed_ids.update([marker.job_id] if is_consumed else [])
        if consumed_ids and not unmoved_markers:
            self.retry_writer.succeeded()
        if only_new:
            wanted = consumed_ids
        return {job_id: [*self.consumed(job_id), *unmoved_markers.get(job_id, ())] for job_id in wanted}

    def has_new_markers(self, job_id: str) -> bool:
        """Return True if a job has left markers that no process has moved into its folder yet."""
        return bool(self.new_markers({job_id}))

    def new_markers(self, job_ids: Collection[str]) -> list[Marker]:
        """Return the markers of these jobs that no process has moved into their folders yet."""
        return _scan_if_exists(self.events, job_ids)

    def consumed(self, job_id: str) -> list[Marker]:
        """Return the markers that this process or another has moved into the job's folder."""
        return _scan_if_exists(self.folder(job_id))

    def consume(
        self, marker: Marker, enter: Callable[[str], object] = lambda _: None, memory: int | None = None
    ) -> bool:
        """Move a marker into its job's folder, unless another process has done so.

        Returns True if the folder has it. The marker stays in `events` while the folder does not exist: a
        folder that another machine made may become visible on this one later.
        """
        # memory comes after the CPU time in the name
        name = marker.name if memory is None or marker.cpu is None else name_with_memory(marker, memory)
        # a runner that makes the folder may wait before the folder says which element it is
        with contextlib.suppress(OSError):
            enter(marker.job_id)
        return self._move(marker, name)

    def take_markers_of_lost_attempts(self, job_ids: Collection[str]) -> frozenset[str]:
        """Move the markers of attempts whose other files are lost into their jobs' folders.

        A client that recovers jobs does so first: such an attempt has run, and would be made again otherwise.
        Returns the jobs that have such markers.
        """
        last: dict[str, int] = {}
        found = set()
        for marker in self.new_markers(frozenset(job_ids)):
            if marker.job_id not in last:
                last[marker.job_id] = self.last_attempt(marker.job_id)
            if marker.attempt > last[marker.job_id] and self.consume(marker):
                found.add(marker.job_id)
        return frozenset(found)

    def _move(self, marker: Marker, name: str) -> bool:
        folder = self.folder(marker.job_id)
        try:
            os.rename(f"{self.events}/{marker.name}", f"{folder}/{name}")  # noqa: PTH104
        except FileNotFoundError:
            return os.path.isdir(folder)  # noqa: PTH112
        return True

    def job_ids(self) -> list[str]:
        """Return the ids of all jobs that have a folder."""
        return os.listdir(self.jobs)  # noqa: PTH208

    def has_begun(self, job_id: str, attempt: int) -> bool:
        """Return True if the job's folder says that an attempt began to run, even if its markers are lost."""
        return any(name.startswith(f"start.{attempt}.") for name in self.names(job_id))

    def has_run(self, job_id: str, attempt: int) -> bool:
        """Return True if any file is evidence that an attempt began to run, even if its claim is lost."""
        return self.have_run({job_id: attempt})

    def have_run(self, attempts: Mapping[str, int]) -> bool:
        """Return True if any of these attempts of jobs began to run; see `has_run`."""
        # another process may move a marker from `events` into the folder meanwhile, so the folder comes last
        if any(marker.attempt == attempts[marker.job_id] for marker in self.new_markers(attempts.keys())):
            return True
        claims = (self.claim(job_id, attempt) for job_id, attempt in attempts.items())
        return any(map(claimant, claims)) or any(
            has_run(job_id, attempt, self.names(job_id)) for job_id, attempt in attempts.items()
        )

    def is_final(self, job_id: str, is_conclusive: Callable[[list[Marker]], bool]) -> bool:
        """Return True if the last attempt of a job is settled, so that it need not be followed any more.

        Args:
            job_id: the job.
            is_conclusive: returns True if these markers of an attempt decide its final status; called only if
                jpsi did not request the end of the attempt, and it waits for no stage out.
        """
        names = self.names(job_id)
        attempt = last_attempt(job_id, names)
        content = self.read_final(job_id, attempt) if f"final.{attempt}.json" in names else None
        if content is not None:
            return not content.get(RETRY_KEY)
        if f"{UNSENT_FILE}.{attempt}" in names:
            return self.pending_retry(job_id) is None
        if (
            f"{RETRY_FILE}.{attempt}" in names
            or f"stop.{attempt}.json" in names
            or f"{STAGE_OUT_FILE}.{attempt}" in names
        ):
            return False
        markers = (parse(name, 0) for name in names)
        return is_conclusive([it for it in markers if it is not None and it.attempt == attempt])

    def last_attempt(self, job_id: str) -> int:
        """Return the number of the last attempt that the folder of a job shows; 0 if there is none."""
        return last_attempt(job_id, self.names(job_id))

    def places(self, job_id: str) -> dict[int, ArrayMember | None]:
        """Return the array elements that the attempts of a job are, by attempt number.

        The value is None if the link to the array cannot be read. Attempts that the job made by itself, and
        those that its folder does not know, are left out.
        """
        linked = [name for name in self.names(job_id) if name.startswith("array.")]
        return {attempt: read_link(self.folder(job_id), attempt) for attempt in _attempts(linked)}

    def last_array_member(self, job_id: str) -> ArrayMember | None:
        """Return the array element that the last attempt of a job is; None for a job by itself.

        It does not read the intent of the array, which takes longer the larger the array is.
        """
        attempt = self.last_attempt(job_id)
        return None if self.has_intent(job_id, attempt) else read_link(self.folder(job_id), attempt)

    def last_intent(self, job_id: str) -> Intent | None:
        """Return the last attempt of a job, with the last intent that can be read; None if there is none.

        If the last intent was cut short, or is missing while other files show the attempt, the intent before
        it stands for it, without a native id. If the attempt was in an array that is gone, the result is
        None: its request is unknown, and it runs no more.
        """
        names = self.names(job_id)
        last = last_attempt(job_id, names)
        attempts = sorted(set(_attempts(names)), reverse=True)
        if attempts:
            self._check_folder(job_id)
        for attempt in attempts:
            intent = self.find_intent(job_id, attempt)
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

    def _check_folder(self, job_id: str) -> None:
        """Raise PermissionError if other users can change the job's folder, and so could forge an intent."""
        try:
            host.check_directory_here(self.folder(job_id), "the folder of a job")
        except ConfigError as e:
            raise PermissionError(errno.EPERM, str(e), self.folder(job_id)) from e

    def intent(self, job_id: str, attempt: int) -> Intent | None:
        """Return the intent of a job by itself; None if there is none that can be read."""
        try:
            path = f"{self.folder(job_id)}/intent.{attempt}.json"
            with open(path, encoding="ascii", opener=host.open_private) as file:
                content = json.loads(file.readline())
                native_id = file.readline() or None
        except (FileNotFoundError, IsADirectoryError, PermissionError, ValueError, RecursionError):
            return None
        return Intent(job_id, attempt, content, native_id) if isinstance(content, dict) else None

    def find_intent(self, job_id: str, attempt: int) -> Intent | None:
        """Return the intent of an attempt, of a single job or an array element; None if it is unreadable."""
        return self.intent(job_id, attempt) or self._read_element(job_id, attempt)

    def _read_element(self, job_id: str, attempt: int) -> Intent | None:
        place = read_link(self.folder(job_id), attempt)
        if place is None or self.arrays.is_of_another_job(place, job_id, attempt):
            return None
        content = self.arrays.read_element(place)
        return None if content is None else Intent(job_id, attempt, content, None, place)

    @contextlib.contextmanager
    def hold_lock(self, job_id: str, attempt: int, patience_seconds: float) -> Iterator[bool]:
        """Hold the lock on an attempt while the caller decides what became of it.

        The submitting process holds the lock until the attempt is started, its runner until it has made its
        claim. Yields False if another process still holds it after `patience_seconds`, or if the intent is
        gone and the attempt is not the last.
        """
        path = f"{self.folder(job_id)}/intent.{attempt}.json"
        with host.hold_lock(path, patience_seconds) as is_held:
            # no process submits an attempt whose intent is lost
            yield self.last_attempt(job_id) == attempt if is_held is None else is_held

    def record_native_id(self, job_id: str, attempt: int, native_id: str) -> None:
        """Add the native id that the batch system gave to an attempt; called within `hold_lock`.

        A process that reads the intent afterwards sees that the attempt was submitted, and does not revoke
        it.
        """
        add_native_id(f"{self.folder(job_id)}/intent.{attempt}.json", native_id)

    def remove(self, job_id: str) -> None:
        """Remove the folder of a job; never raises."""
        # A half-removed folder would look like a job that is not final, so it is renamed away at once.
        with contextlib.suppress(OSError):
            os.rename(self.folder(job_id), f"{self._trash}/{job_id}")  # noqa: PTH104

    def trash(self) -> list[str]:
        """Return the names of removed folders that still take disk space."""
        return host.list_names(self._trash)

    def removed(self, name: str) -> list[str]:
        """Return the names of the files in a removed folder that still takes disk space."""
        return _names_in_folder(f"{self._trash}/{name}")

    def empty_trash(self, names: Iterable[str]) -> None:
        """Delete these removed folders, to free their disk space; never raises."""
        for name in names:
            shutil.rmtree(f"{self._trash}/{name}", ignore_errors=True)
            # a file that another program has left among the folders
            host.forget(f"{self._trash}/{name}")

    def names(self, job_id: str) -> list[str]:
        """Return the names of the files in the folder of a job."""
        return _names_in_folder(self.folder(job_id))


def _names_in_folder(path: str) -> list[str]:
    """Return the names in a folder; none if it is gone, or is a file that another program has left."""
    with contextlib.suppress(NotADirectoryError):
        return host.list_names(path)
    return []


_ATTEMPT = re.compile(r"intent\.(\d+)\.json|array\.(\d+)")


def _attempts(names: Iterable[str]) -> list[int]:
    """Return the numbers of the attempts that have an intent, or a link to an array."""
    return [int(it[1] or it[2]) for it in map(_ATTEMPT.fullmatch, names) if it is not None]


def _scan_if_exists(path: str, job_ids: Collection[str] | None = None) -> list[Marker]:
    try:
        return scan(path, job_ids)
    except FileNotFoundError:
        return []
