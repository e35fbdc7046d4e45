"""Reads the files of all jobs in one spool, no matter which process submitted them; changes nothing.

It reads thousands of jobs at once, so it opens only those files that decide what became of a job.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from jpsi_engine.host import read_text
from jpsi_engine.spool.arrays import ArrayFiles, ArrayIntent, ArrayMember, read_link, read_reason
from jpsi_engine.spool.claims import REVOKED, UNNAMED, UNREADABLE, Claim, read_claim
from jpsi_engine.spool.damage import (
    DAMAGE,
    check_intent,
    check_status,
    check_stop,
    fallback_intent,
    file_problem,
    folder_problems,
    read_final,
    read_stop,
)
from jpsi_engine.spool.run_evidence import has_run, last_attempt
from jpsi_engine.spool.spool import STAGE_OUT_FILE, UNSENT_FILE
from jpsi_engine.verdict import Marker, parse, scan

#: Returns the native ids of array elements, given the native id of the array and their indices.
ElementIds = Callable[[str, Sequence[int]], Sequence[str]]

_JSON = json.JSONDecoder()
# Any file name of a second or later attempt matches; other names may match, too.
_LATER_ATTEMPT = re.compile(r"\.(?:[2-9]|1[0-9])")


@attrs.frozen(slots=True, kw_only=True)
class JobRecord:
    """The files in the spool about the last attempt of one job, parsed."""

    job_id: str
    attempt: int
    #: The request, as the submitting process wrote it.
    intent: Mapping[str, Any]
    #: The id that the backend gave it, as the submitting process or the runner wrote it.
    native_id: str | None
    #: The array and the element that it is; None for a job by itself.
    place: ArrayMember | None = None
    #: True if a client has revoked it, so that it can never run.
    is_revoked: bool = False
    #: The reason why its submission failed, as its program got it; None if it did not fail, or if another
    #: version wrote none.
    unsent_reason: str | None = None
    #: The time when its runner began, in nanoseconds since 1970; for processes of this machine only.
    started_ns: int | None = None
    markers: Sequence[Marker] = ()
    #: The record that it was asked to end, with the reason.
    stop: Mapping[str, Any] | None = None
    #: The final status, if it does not follow from the markers alone.
    final: Mapping[str, Any] | None = None
    #: True if its stage out is not complete, and it does not end before.
    is_stage_out_pending: bool = False
    #: The progress of its stage out, in words; empty if it is unknown.
    stage_out_progress: str = ""
    #: True if any file is evidence that it began to run.
    has_run: bool = False
    #: The problems with its files, a clause each.
    damage: Sequence[str] = ()


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

    def read(self) -> list[JobRecord]:
        """Return all jobs; a job whose files are damaged has its `damage` filled.

        Raises:
            OSError: the directories cannot be read.
        """
        # before the folders, as another process may move markers into them meanwhile
        markers: dict[str, dict[str, Marker]] = {}
        with contextlib.suppress(FileNotFoundError):
            for marker in scan(self._events):
                markers.setdefault(marker.job_id, {})[marker.name] = marker
        arrays = dict(self._read_arrays())
        try:
            job_ids = os.listdir(self._jobs)  # noqa: PTH208  text, as in the spool
        except FileNotFoundError:
            return []
        found = {}
        for job_id in job_ids:
            new = markers.get(job_id, {})
            try:
                record = self._read_folder(job_id, new, arrays)
            except (OSError, *DAMAGE):
                record = None
            if record is None:
                record = self.read_damaged(job_id, new)
            if record is not None:
                found[job_id] = record
        for array in arrays.values():
            for index, (job_id, attempt) in enumerate(array.attempts, 1):
                earlier = found.get(job_id)
                if earlier is None or earlier.attempt < attempt:
                    # the job has no files of its own for this attempt
                    found[job_id] = array.element(index)
        return list(found.values())

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
                job_id=job_id, attempt=1, intent=fallback_intent(folder), native_id=None, damage=[problem]
            )
        names += [name for name in new or () if name not in names]
        problems = list(folder_problems(self._root, job_id, names))
        if not problems:
            return None
        attempt = last_attempt(job_id, names)
        intent, native_id = read_sound_intent(folder, job_id, names)
        claim = None
        with contextlib.suppress(OSError):
            claim = read_claim(f"{folder}/claim.{attempt}")
        markers = dict(new or {})
        for name in names:
            with contextlib.suppress(OSError):
                marker = parse(name, os.stat(f"{folder}/{name}").st_mtime_ns)  # noqa: PTH116  as above
                markers |= {} if marker is None or marker.job_id != job_id else {name: marker}
        own = [marker for marker in markers.values() if marker.attempt == attempt]
        is_claimed = claim is not None and claim.text not in {"", REVOKED}
        return JobRecord(
            job_id=job_id,
            attempt=attempt,
            intent=intent,
            native_id=native_id or (None if self._are_processes else _native_id_of_claim(claim)),
            is_revoked=claim is not None and claim.text == REVOKED,
            started_ns=claim.time_ns if claim is not None and is_claimed and self._are_processes else None,
            markers=own,
            stop=read_stop(f"{folder}/stop.{attempt}.json"),
            final=read_final(f"{folder}/final.{attempt}.json"),
            is_stage_out_pending=f"{STAGE_OUT_FILE}.{attempt}" in names,
            has_run=is_claimed or bool(own) or has_run(job_id, attempt, names),
            damage=problems,
        )

    def _read_arrays(self) -> Iterator[tuple[str, _Array]]:
        for name in self._arrays.all_names():
            with contextlib.suppress(OSError, *DAMAGE):
                intent = self._arrays.read(name)
                if intent is None:
                    continue
                claim = None if intent.native_id else self._arrays.claim(name)
                native_id = intent.native_id or _native_id_of_claim(claim)
                indices = range(1, 1 + len(intent.elements))
                ids = None if native_id is None else self._element_ids(native_id, indices)
                is_revoked = claim is not None and claim.text == REVOKED
                unsent_reason = self._arrays.read_unsent_reason(name) if is_revoked else None
                yield name, _Array(intent, ids, is_revoked=is_revoked, unsent_reason=unsent_reason)

    def _read_folder(
        self, job_id: str, new: Mapping[str, Marker], arrays: Mapping[str, _Array]
    ) -> JobRecord | None:
        folder = f"{self._jobs}/{job_id}"
        names = os.listdir(folder)  # noqa: PTH208
        attempt = _last_attempt(job_id, [*names, *new])
        awaited = f"{STAGE_OUT_FILE}.{attempt}"
        stop, final = f"stop.{attempt}.json", f"final.{attempt}.json"
        unsent = f"{UNSENT_FILE}.{attempt}"
        own: dict[str, Any] = {
            "markers": _markers(folder, names, f"{job_id}.{attempt}.", new),
            "stop": _read_json(f"{folder}/{stop}", check_stop) if stop in names else None,
            "final": _read_json(f"{folder}/{final}", check_status) if final in names else None,
            "is_stage_out_pending": awaited in names,
            "stage_out_progress": _read_words(f"{folder}/{awaited}") if awaited in names else "",
        }
        if f"array.{attempt}" in names and f"intent.{attempt}.json" not in names:
            place = read_link(folder, attempt)
            array = None if place is None else arrays.get(place.array)
            if place is None or array is None or place.index > array.element_count:
                return None
            return array.element(place.index, **own)
        intent, native_id = _read_intent(folder, attempt, names)
        if intent is None or (f"intent.{attempt}.json" not in names and own["markers"]):
            return None
        claim = None
        if f"claim.{attempt}" in names:
            claim = self._claim(f"{folder}/claim.{attempt}", native_id, has_run=bool(own["markers"]))
            if claim is not None and claim.text == UNREADABLE:
                return None
        is_revoked = claim is not None and claim.text == REVOKED
        has_begun = claim is not None and not is_revoked and self._are_processes
        if is_revoked and own["stop"] is None:
            # older versions recorded a job that was not submitted as cancelled, although no client had
            # cancelled it
            own["final"] = None
        return JobRecord(
            job_id=job_id,
            attempt=attempt,
            intent=intent,
            native_id=native_id or _native_id_of_claim(claim),
            is_revoked=is_revoked,
            unsent_reason=read_reason(f"{folder}/{unsent}") if unsent in names else None,
            started_ns=claim.time_ns if claim is not None and has_begun else None,
            has_run=native_id is None and has_run(job_id, attempt, names),
            **own,
        )

    def _claim(self, path: str, native_id: str | None, *, has_run: bool) -> Claim | None:
        """Return a claim; only its time counts if the native id is known otherwise."""
        if native_id is None:
            return read_claim(path)
        if not self._are_processes:
            return None
        # the runner that left the markers made the claim, so only its time needs to be read
        return Claim(native_id, os.stat(path).st_mtime_ns) if has_run else read_claim(path)  # noqa: PTH116


class _Array:
    """An array with the native ids of its elements, which are computed once for all of them."""

    def __init__(
        self,
        intent: ArrayIntent,
        native_ids: Sequence[str] | None,
        *,
        is_revoked: bool,
        unsent_reason: str | None,
    ) -> None:
        self._intent = intent
        self._native_ids = native_ids
        self._is_revoked = is_revoked
        self._unsent = unsent_reason

    @property
    def element_count(self) -> int:
        """The number of elements, which is the index of the last one."""
        return len(self._intent.elements)

    @property
    def attempts(self) -> Iterator[tuple[str, int]]:
        """The job id and the attempt number of each element."""
        return ((element["id"], element["attempt"]) for element in self._intent.elements)

    def element(self, index: int, **own: Any) -> JobRecord:  # noqa: ANN401  fields of `JobRecord`
        """Return the record of an element, with the fields from its own files."""
        content = self._intent.content(index)
        return JobRecord(
            job_id=content["id"],
            attempt=content["attempt"],
            intent=content,
            native_id=None if self._native_ids is None else self._native_ids[index - 1],
            place=ArrayMember(self._intent.array, index),
            is_revoked=self._is_revoked,
            unsent_reason=self._unsent,
            **own,
        )


def _native_id_of_claim(claim: Claim | None) -> str | None:
    """Return the native id in a claim, or None."""
    is_id = claim is not None and claim.text not in {"", REVOKED} and not claim.text.startswith(UNNAMED)
    return claim.text if claim is not None and is_id else None


def _last_attempt(job_id: str, names: Collection[str]) -> int:
    # most jobs have one attempt, and thousands are read
    return last_attempt(job_id, names) if _LATER_ATTEMPT.search("\n".join(names)) else 1


def _read_intent(
    folder: str, attempt: int, names: Collection[str]
) -> tuple[dict[str, Any] | None, str | None]:
    """Return the request and the native id of an attempt.

    For an intent that is being written, it is the request of the intent before.
    """
    for number in range(attempt, 0, -1):
        if f"intent.{number}.json" in names:
            text = read_text(f"{folder}/intent.{number}.json")
            with contextlib.suppress(ValueError):
                request, end = _JSON.raw_decode(text)
                # the native id follows the newline
                return request, (text[end + 1 :] or None) if number == attempt else None
    return None, None


def read_sound_intent(
    folder: str, job_id: str, names: Collection[str]
) -> tuple[Mapping[str, Any], str | None]:
    """Return the request of the last attempt that can be read, or the fallback, and the native id."""
    for number in range(last_attempt(job_id, names), 0, -1):
        path = f"{folder}/intent.{number}.json"
        if f"intent.{number}.json" in names and file_problem(path, check_intent) is None:
            request, end = _JSON.raw_decode(read_text(path))
            is_last = number == last_attempt(job_id, names)
            return request, (read_text(path)[end + 1 :] or None) if is_last else None
    return fallback_intent(folder), None


def _read_json(path: str, check: Callable[[Any], None]) -> Any:  # noqa: ANN401  whatever is there
    found = json.loads(read_text(path))
    check(found)
    return found


def _read_words(path: str) -> str:
    # another process may be writing it, or has removed it
    with contextlib.suppress(OSError, ValueError):
        found = _JSON.decode(read_text(path))
        return found if isinstance(found, str) else ""
    return ""


def _markers(folder: str, names: Collection[str], beginning: str, new: Mapping[str, Marker]) -> list[Marker]:
    """Return the markers of an attempt, from its folder and from `events`."""
    found = [marker for name, marker in new.items() if name.startswith(beginning) and name not in names]
    for name in names:
        if name.startswith(beginning):
            marker = parse(name, os.stat(f"{folder}/{name}").st_mtime_ns)  # noqa: PTH116
            found += [] if marker is None else [marker]
    return found
