"""Reads the files of all jobs in one spool, no matter which process submitted them; changes none of them.

It may read thousands of jobs in one call, so it opens only those files that decide what became of a job, and
keeps a copy of the records of jobs that have ended.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from jpsi_engine.host import list_names, read_text
from jpsi_engine.spool import damage
from jpsi_engine.spool.arrays import ArrayFiles, ArrayIntent, ArrayMember, read_link, read_reason
from jpsi_engine.spool.claims import STARTER, UNNAMED, UNREADABLE, Claim, claimant, is_revoked, read_claim
from jpsi_engine.spool.ended_records import COPIED, EndedRecords
from jpsi_engine.spool.run_evidence import has_run, last_attempt
from jpsi_engine.spool.spool import RETRY_FILE, RETRY_KEY, UNSENT_FILE
from jpsi_engine.spool.stage_out_files import STAGE_OUT_FILE
from jpsi_engine.verdict import Marker, parse, scan

#: Returns the native ids of array elements, given the native id of the array and their indices.
ElementIds = Callable[[str, Sequence[int]], Sequence[str]]

_JSON = json.JSONDecoder()
# So many jobs are worth a file with copies.
_MANY = 200
# Any file name of a second or later attempt matches; other names may match, too.
_LATER_ATTEMPT = re.compile(r"\.(?:[2-9]|1[0-9])")


@attrs.frozen(slots=True, kw_only=True)
class JobRecord:
    """The files in the spool about the last attempt of one job, parsed."""

    job_id: str
    attempt: int
    #: The request, as the submitting process wrote it.
    intent: Mapping[str, Any]
    #: The id that the backend gave it, as the submitting process or the runner wrote it; for an array element
    #: None or a function that returns it, as plugins spell these ids.
    _native_id: str | Callable[[], str] | None
    #: The array and the element that it is; None for a job by itself.
    place: ArrayMember | None = None
    #: The id that the backend gave that array; None if it is not known.
    array_native_id: str | None = None
    #: True if a client has revoked it, so that it can never run.
    is_revoked: bool = False
    #: The reason why its submission failed, as its program got it; None if it did not fail, or if another
    #: version wrote none.
    unsent_reason: str | None = None
    #: The time when its runner began, in nanoseconds since 1970; for processes of this machine only.
    started_ns: int | None = None
    markers: Sequence[Marker] = ()
    #: The record of jpsi's request to end it, with the reason.
    stop: Mapping[str, Any] | None = None
    #: The final status, if it does not follow from the markers alone.
    final: Mapping[str, Any] | None = None
    #: The record of an attempt that is over, and that another is to follow, which has not been made.
    retry: Mapping[str, Any] | None = None
    #: The record of the attempt before this one.
    retried: Mapping[str, Any] | None = None
    #: True if only `final` says how the attempt ended, as another may follow it.
    may_be_retried: bool = False
    #: True if its stage out is not complete, and it does not end before.
    is_stage_out_pending: bool = False
    #: The progress of its stage out, in words; empty if it is unknown.
    stage_out_progress: str = ""
    #: True if any file is evidence that it began to run.
    has_run: bool = False
    #: The problems with its files, a clause each.
    damage: Sequence[str] = ()

    @property
    def has_native_id(self) -> bool:
        """True if the backend has given it an id."""
        return self._native_id is not None

    @property
    def is_settled(self) -> bool:
        """True if no file of the job is written to any more: whatever comes is a new file."""
        has_ended = self.final is not None or any(marker.kind == "exit" for marker in self.markers)
        is_open = (
            self.is_stage_out_pending or self.may_be_retried or self.is_revoked or self.place is not None
        )
        return has_ended and self.has_native_id and not is_open and not self.damage

    @property
    def native_id(self) -> str | None:
        """The id that the backend gave it; None if it is not known."""
        return self._native_id() if callable(self._native_id) else self._native_id


class JobRecords:
    """The jobs in one spool.

    Args:
        root: the root of the spool.
        are_processes: True if they are processes, whose claims hold pids, and not jobs of a batch system.
        element_ids: returns the native ids of array elements.
    """

    def __init__(self, root: str, element_ids: ElementIds, *, are_processes: bool) -> None:
        self._root = root
        self._jobs = f"{root}/jobs"
        self._events = f"{root}/events"
        self._arrays = ArrayFiles(root)
        self._element_ids = element_ids
        self._are_processes = are_processes

    def read(self, members: Mapping[str, ArrayMember | None] | None = None) -> list[JobRecord]:
        """Return all jobs, or some of them; a job whose files are damaged has its `damage` filled.

        Args:
            members: the ids of the jobs to return, with the array elements that they were when they were read
                before; files of other jobs are not opened. None for all jobs.

        Raises:
            OSError: the directories cannot be read.
        """
        # before the folders, as another process may move markers into them meanwhile
        markers: dict[str, dict[str, Marker]] = {}
        with contextlib.suppress(FileNotFoundError):
            for marker in scan(self._events, members):
                markers.setdefault(marker.job_id, {})[marker.name] = marker
        find_array = functools.cache(self._read_array)
        if members is None:
            job_ids, names = list_names(self._jobs), self._arrays.all_names()
        else:
            job_ids, names = list(members), list({it.array for it in members.values() if it is not None})
        arrays = list(filter(None, map(find_array, names)))
        found = dict[str, JobRecord | None]()
        with contextlib.ExitStack() as stack:
            ended = None
            if members is None and len(job_ids) >= _MANY:
                ended = stack.enter_context(contextlib.closing(EndedRecords(self._root)))
            for job_id in job_ids:
                new, record = markers.get(job_id, {}), None
                copied = None if ended is None or new else ended.find(job_id)
                if copied is not None:
                    found[job_id] = JobRecord(job_id=job_id, **copied)
                    continue
                with contextlib.suppress(OSError, *damage.DAMAGE):
                    record = self._read_folder(job_id, new, find_array)
                if ended is not None and record is not None and record.is_settled:
                    ended.add(job_id, {name: getattr(record, name) for name in COPIED})
                found[job_id] = record or self.read_damaged(job_id, new)
        for array in arrays:
            for index, element in enumerate(array.intent.elements, 1):
                earlier, is_wanted = found.get(element["id"]), members is None or element["id"] in members
                if is_wanted and (earlier is None or _may_be_followed(earlier, element["attempt"])):
                    # the job has no files of its own for this attempt
                    found[element["id"]] = array.element(index)
        return [record for record in found.values() if record is not None]

    def read_damaged(self, job_id: str, new: Mapping[str, Marker] | None = None) -> JobRecord | None:
        """Return the record of a job whose files are damaged; None if they are sound or there is no such job.

        Args:
            job_id: the job.
            new: the markers of the job, by name, that no process has moved into its folder yet.
        """
        folder = f"{self._jobs}/{job_id}"
        try:
            names = os.listdir(folder)  # noqa: PTH208  as above
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as e:
            problem = f"its folder cannot be read: {e.strerror}"
            return JobRecord(
                job_id=job_id,
                attempt=1,
                intent=damage.fallback_intent(folder),
                native_id=None,
                damage=[problem],
            )
        problems = list(damage.folder_problems(self._root, job_id, {*names, *(new or ())}))
        if not problems:
            return None
        files = _AttemptFiles(job_id, folder, names, new or {}, self._arrays.is_over)
        intent, native_id = files.read_intent(
            lambda path: damage.file_problem(path, damage.check_intent) is None
        )
        claim = None
        with contextlib.suppress(OSError):
            claim = read_claim(files.path("claim"))
        is_claimed = claimant(claim) is not None
        markers = files.read_markers(OSError)
        return JobRecord(
            job_id=job_id,
            attempt=files.attempt,
            intent=damage.fallback_intent(folder) if intent is None else intent,
            native_id=native_id or (None if self._are_processes else _native_id_of_claim(claim)),
            is_revoked=is_revoked(claim),
            started_ns=claim.time_ns if claim is not None and is_claimed and self._are_processes else None,
            markers=markers,
            stop=damage.read_stop(files.path("stop", ".json")),
            final=damage.read_final(files.path("final", ".json")),
            is_stage_out_pending=files.has(STAGE_OUT_FILE),
            has_run=is_claimed or bool(markers) or has_run(job_id, files.attempt, files.all_names),
            damage=problems,
        )

    def _read_array(self, name: str) -> _Array | None:
        """Return an array; None if its files are damaged, or there is no such array."""
        with contextlib.suppress(OSError, *damage.DAMAGE):
            intent = self._arrays.read(name)
            if intent is None:
                return None
            claim = None if intent.native_id else self._arrays.claim(name)
            native_id = intent.native_id or _native_id_of_claim(claim)
            unsent_reason = self._arrays.read_unsent_reason(name) if is_revoked(claim) else None
            return _Array(intent, native_id, self._element_ids, is_revoked(claim), unsent_reason)
        return None

    def _read_folder(
        self, job_id: str, new: Mapping[str, Marker], find_array: Callable[[str], _Array | None]
    ) -> JobRecord | None:
        """Return the record of a job; None if its files are damaged, or there is no job."""
        folder = f"{self._jobs}/{job_id}"
        files = _AttemptFiles(job_id, folder, os.listdir(folder), new, self._arrays.is_over)  # noqa: PTH208
        own = files.read_outcome() | files.read_retries()
        if not files.has("intent", ".json"):
            if files.has("array"):
                place = read_link(folder, files.attempt)
                array = None if place is None else find_array(place.array)
                record = None if place is None or array is None else array.element(place.index, **own)
                return record if _is_of(record, job_id, files.attempt) else None
            if own["markers"]:
                return None
        intent, native_id = files.read_intent(lambda _: True)
        if intent is None and own.get("retried"):
            intent = self._request_of_element(files, find_array)
        claim = self._claim(files, native_id, has_run=bool(own["markers"]))
        if intent is None or (claim is not None and claim.text == UNREADABLE):
            return None
        if is_revoked(claim) and own["stop"] is None and RETRY_KEY not in (own["final"] or ()):
            # older versions recorded a job that was not submitted as cancelled, although no client had
            # cancelled it
            own["final"] = None
        has_begun = claim is not None and not is_revoked(claim) and self._are_processes
        return JobRecord(
            job_id=job_id,
            attempt=files.attempt,
            intent=intent,
            native_id=native_id or _native_id_of_claim(claim),
            is_revoked=is_revoked(claim),
            unsent_reason=read_reason(files.path(UNSENT_FILE)) if files.has(UNSENT_FILE) else None,
            started_ns=claim.time_ns if claim is not None and has_begun else None,
            has_run=native_id is None and has_run(job_id, files.attempt, files.names),
            **own,
        )

    @staticmethod
    def _request_of_element(
        files: _AttemptFiles, find_array: Callable[[str], _Array | None]
    ) -> dict[str, Any] | None:
        """Return the request of the last attempt that was an array element; None if there was none."""
        for number, place in files.places():
            array = find_array(place.array)
            record = None if array is None else array.element(place.index)
            if record is not None and _is_of(record, files.job_id, number):
                return dict(record.intent)
        return None

    def _claim(self, files: _AttemptFiles, native_id: str | None, *, has_run: bool) -> Claim | None:
        """Return a claim; only its time counts if the native id is known otherwise."""
        if not files.has("claim") or (native_id is not None and not self._are_processes):
            return None
        if native_id is None or not has_run:
            return read_claim(files.path("claim"))
        # the runner that left the markers made the claim, so only its time needs to be read
        return Claim(native_id, os.stat(files.path("claim")).st_mtime_ns)  # noqa: PTH116


class _AttemptFiles:
    """The files of the last attempt of a job.

    Args:
        job_id: the job.
        folder: the path of its folder.
        names: the names of the files in it.
        new: the markers of the job, by name, that no process has moved into its folder yet.
        is_over: see `ArrayFiles`.
    """

    def __init__(
        self,
        job_id: str,
        folder: str,
        names: Collection[str],
        new: Mapping[str, Marker],
        is_over: Callable[[str], bool],
    ) -> None:
        self.job_id = job_id
        self._folder = folder
        self._new = new
        self._is_over = is_over
        self.names = names
        self.all_names = [*names, *new]
        # most jobs have one attempt, and thousands are read
        has_later = _LATER_ATTEMPT.search("\n".join(self.all_names)) is not None
        self.attempt = last_attempt(job_id, self.all_names) if has_later else 1
        self._has_retries = any(name.startswith(f"{RETRY_FILE}.") for name in names)
        while self._has_retries and self.attempt > 1 and self._never_ran() and self._is_retried():
            # the retry of the attempt before it is still due
            self.attempt -= 1

    def _never_ran(self) -> bool:
        """Return True if the attempt can never run, and does not end the job either."""
        if self.has("final", ".json"):
            return False
        if self.has("claim") or self.has("intent", ".json"):
            return is_revoked(read_claim(self.path("claim")))
        place = read_link(self._folder, self.attempt)
        is_over = place is not None and self._is_over(place.array)
        return is_over and not has_run(self.job_id, self.attempt, self.all_names)

    def _is_retried(self) -> bool:
        """Return True if the attempt was to follow another."""
        return any(self._read_end(attempt) for attempt in range(1, self.attempt))

    def _read_end(self, attempt: int) -> Mapping[str, Any] | None:
        """Return the record of an attempt that another is to follow; None for other attempts."""
        content = damage.read_final(f"{self._folder}/final.{attempt}.json")
        return content[RETRY_KEY] if content is not None and content.get(RETRY_KEY) else None

    def read_retries(self) -> dict[str, Any]:
        """Return the fields of `JobRecord` about the attempts of a job that may be submitted again."""
        if not self._has_retries:
            return {}
        ends = [it for it in map(self._read_end, range(1, self.attempt)) if it is not None]
        retry = self._read_end(self.attempt)
        found = {"retry": retry, "retried": ends[-1] if ends else None, "may_be_retried": True}
        return found if retry is None else {**found, "final": None}

    def has(self, kind: str, ending: str = "") -> bool:
        """Return True if the attempt has a file of this kind."""
        return f"{kind}.{self.attempt}{ending}" in self.names

    def path(self, kind: str, ending: str = "") -> str:
        """Return the path of the file of this kind."""
        return f"{self._folder}/{kind}.{self.attempt}{ending}"

    def read_json(self, kind: str, check: Callable[[Any], None]) -> Any:  # noqa: ANN401  whatever is there
        """Return the content of a JSON file, or None; raise one of `DAMAGE` if it is damaged."""
        if not self.has(kind, ".json"):
            return None
        found = json.loads(read_text(self.path(kind, ".json")))
        check(found)
        return found

    def places(self) -> Iterator[tuple[int, ArrayMember]]:
        """Yield the earlier attempts that were array elements, with these, the last one first."""
        for number in range(self.attempt - 1, 0, -1):
            place = read_link(self._folder, number) if f"array.{number}" in self.names else None
            if place is not None:
                yield number, place

    def read_intent(self, is_sound: Callable[[str], bool]) -> tuple[dict[str, Any] | None, str | None]:
        """Return the request and the native id of the attempt.

        For an intent that is being written, or is not sound, it is the request of the intent before.
        """
        for number in range(self.attempt, 0, -1):
            path = f"{self._folder}/intent.{number}.json"
            if f"intent.{number}.json" in self.names and is_sound(path):
                text = read_text(path)
                with contextlib.suppress(ValueError):
                    request, end = _JSON.raw_decode(text)
                    # the native id follows the newline
                    return request, (text[end + 1 :] or None) if number == self.attempt else None
        return None, None

    def read_outcome(self) -> dict[str, Any]:
        """Return the fields of `JobRecord` that say what became of the attempt."""
        is_pending = self.has(STAGE_OUT_FILE)
        return {
            "markers": self.read_markers(),
            "stop": self.read_json("stop", damage.check_stop),
            "final": self.read_json("final", damage.check_status),
            "is_stage_out_pending": is_pending,
            # another process may be writing it, or has removed it
            "stage_out_progress": (read_reason(self.path(STAGE_OUT_FILE)) or "") if is_pending else "",
        }

    def read_markers(self, *tolerated: type[OSError]) -> list[Marker]:
        """Return the markers of the attempt, from its folder and from `events`, but for tolerated errors."""
        beginning = f"{self.job_id}.{self.attempt}."
        found = [
            marker
            for name, marker in self._new.items()
            if name.startswith(beginning) and name not in self.names
        ]
        for name in self.names:
            if name.startswith(beginning):
                with contextlib.suppress(*tolerated):
                    marker = parse(name, os.stat(f"{self._folder}/{name}").st_mtime_ns)  # noqa: PTH116
                    found += [] if marker is None else [marker]
        return found


@attrs.frozen(slots=False)
class _Array:
    """An array with the native ids of its elements, which are computed once for all of them."""

    intent: ArrayIntent
    native_id: str | None
    element_ids: ElementIds
    is_revoked: bool
    unsent_reason: str | None

    @functools.cached_property
    def _native_ids(self) -> Sequence[str]:
        return self.element_ids(self.native_id or "", range(1, 1 + len(self.intent.elements)))

    def element(self, index: int, **own: Any) -> JobRecord | None:  # noqa: ANN401  fields of `JobRecord`
        """Return the record of an element, with the fields from its own files; None if there is none."""
        if index > len(self.intent.elements):
            return None
        content = self.intent.content(index)
        return JobRecord(
            job_id=content["id"],
            attempt=content["attempt"],
            intent=content,
            native_id=None if self.native_id is None else lambda: self._native_ids[index - 1],
            place=ArrayMember(self.intent.array, index),
            array_native_id=self.native_id,
            is_revoked=self.is_revoked,
            unsent_reason=self.unsent_reason,
            **own,
        )


def _may_be_followed(earlier: JobRecord, attempt: int) -> bool:
    """Return True if a job may have a later attempt, although its folder has no file of that.

    A job that may be submitted again has a link to the array before that is submitted.
    """
    return earlier.attempt < attempt and not earlier.may_be_retried


def _is_of(record: JobRecord | None, job_id: str, attempt: int) -> bool:
    """Return True if a record is that of an attempt; a link to the element of another job is damaged."""
    return record is not None and (record.job_id, record.attempt) == (job_id, attempt)


def _native_id_of_claim(claim: Claim | None) -> str | None:
    """Return the native id in a claim, or None."""
    text = claimant(claim)
    return None if text is None or text.startswith((UNNAMED, STARTER)) else text
