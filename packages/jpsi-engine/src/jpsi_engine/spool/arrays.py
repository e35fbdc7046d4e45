"""The files on disk for native arrays; the client writes one submission record for all elements of an array.

    <root>/arrays/<array>/intent.json   the record: a line for the array, one for each element, its native id
    <root>/arrays/<array>/run           the script that all elements run
    <root>/arrays/<array>/elements.<n>  the parts of the script that differ, for `BLOCK` elements
    <root>/arrays/<array>/claim         made by the first element that runs or a client that revokes the array
    <root>/arrays/<array>/over          the array was abandoned: revoked, not submitted; the reason, in words
    <root>/jobs/<id>/array.<attempt>    to which array an attempt belongs, and which index in it

Elements count from 1.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from jpsi_engine import host
from jpsi_engine.spool.claims import Claim, is_revoked, read_claim, revoke

#: The number of elements that have their lines in one file. Larger blocks mean fewer files, smaller ones less
#: to read: a shell reads the lines of all elements in the file before it runs those of one.
BLOCK = 16
# Longer than any native id, in bytes.
_MAX_ID_BYTES = 256
# The exceptions for an intent that is gone, cut short or overwritten.
_UNREADABLE = (
    *(FileNotFoundError, NotADirectoryError, IndexError, KeyError, TypeError, ValueError),
    *(AttributeError, RecursionError),
)
# Names of jobs and arrays become folder names, and a file may have been written on another machine.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")


@attrs.frozen(slots=True)
class ArrayMember:
    """The membership of a job in an array: the array, and the index of the job in it."""

    array: str
    #: It counts from 1.
    index: int


@attrs.frozen(slots=True)
class ArrayIntent:
    """An array, as read from the spool."""

    array: str
    #: The part of the request that all elements have in common.
    common: Mapping[str, Any]
    #: The part of each element: its id and attempt, and its part of the spec.
    elements: Sequence[Mapping[str, Any]]
    #: None if the submitting process died before it could add it.
    native_id: str | None

    def content(self, index: int) -> dict[str, Any]:
        """Return the intent of one element, in the form that a job by itself has."""
        element_fields = self.elements[index - 1]
        return {**self.common, **element_fields, "spec": {**self.common["spec"], **element_fields["spec"]}}


class ArrayFiles:
    """The arrays below one root. Threads and processes may share them; methods raise OSError unchanged.

    Args:
        root: the root of the spool.
        check: raises if the root is not safe to use.
    """

    def __init__(self, root: str, check: Callable[[], None] = lambda: None) -> None:
        self.arrays = f"{root}/arrays"
        self._trash = f"{root}/trash"
        self._check = check

    def folder(self, array: str) -> str:
        """Return the path of an array's folder."""
        return f"{self.arrays}/{array}"

    def prepare(
        self,
        array: str,
        common: Mapping[str, Any],
        elements: Sequence[Mapping[str, Any]],
        run: str,
        blocks: Iterable[str],
    ) -> int:
        """Write the files of an array and return a descriptor that holds its lock; see `Spool.prepare`."""
        folder = self.folder(array)
        self._check()
        host.make_directory(folder)
        try:
            lock = _write_intent(f"{folder}/intent.json", common, elements)
            try:
                host.write_new(f"{folder}/run", os.fsencode(run))
                for number, block in enumerate(blocks):
                    host.write_new(f"{folder}/elements.{number}", os.fsencode(block))
            except BaseException:
                os.close(lock)
                raise
        except BaseException:
            self.discard(array)
            raise
        return lock

    def discard(self, array: str) -> None:
        """Forget an array that was never started; never raises."""
        shutil.rmtree(self.folder(array), ignore_errors=True)

    def names(self) -> list[str]:
        """Return the names of all arrays, without those that were abandoned."""
        return [array for array in self.all_names() if not os.path.exists(f"{self.folder(array)}/over")]  # noqa: PTH110

    def all_names(self) -> list[str]:
        """Return the names of all arrays, including those that were abandoned."""
        return host.list_names(self.arrays)

    def read(self, array: str) -> ArrayIntent | None:
        """Return the intent of an array; None if there is none, it was cut short, or it is not valid."""
        try:
            with open(f"{self.folder(array)}/intent.json", encoding="ascii") as file:  # noqa: PTH123
                lines = file.read().split("\n")
            count = json.loads(lines[0])["count"]
            # in one call, which takes a third of the time
            common, *elements = json.loads(f"[{','.join(lines[: 1 + count])}]")
        except _UNREADABLE:
            return None
        if (
            len(elements) != common["count"]
            or not all(map(_is_element, elements))
            or not isinstance(common.get("spec"), dict)
        ):
            return None
        native_id = "".join(lines[1 + len(elements) :])
        return ArrayIntent(array, common, elements, native_id or None)

    def read_native_id(self, array: str) -> str | None:
        """Return the native id of an array; None if the submitting process died before it could add it."""
        try:
            with open(f"{self.folder(array)}/intent.json", "rb") as file:  # noqa: PTH123
                file.seek(max(0, os.fstat(file.fileno()).st_size - _MAX_ID_BYTES))
                _, is_line, last = file.read().rpartition(b"\n")
                native_id = last.decode("ascii")
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        # the line of an element begins with a brace, a native id never does
        return native_id if is_line and native_id and not native_id.startswith("{") else None

    def read_element(self, place: ArrayMember) -> dict[str, Any] | None:
        """Return the intent of one element, without parsing the others; None if it cannot be read."""
        if place.index < 1:
            return None
        path = f"{self.folder(place.array)}/intent.json"
        try:
            start = _line_starts(path)[place.index]
            with open(path, "rb") as file:  # noqa: PTH123
                common = json.loads(file.readline())
                file.seek(start)
                element_fields = json.loads(file.readline())
            return ArrayIntent(place.array, common, [element_fields], None).content(1)
        except (*_UNREADABLE, IsADirectoryError, PermissionError):
            return None

    def is_of_another_job(self, place: ArrayMember, job_id: str, attempt: int) -> bool:
        """Return True if an element is another job or attempt; a link of this one to it is damaged."""
        element = self.read_element(place)
        return element is not None and (element.get("id"), element.get("attempt")) != (job_id, attempt)

    def claim(self, array: str) -> Claim | None:
        """Return the claim on an array, which holds a native id or REVOKED; None if there is none."""
        return read_claim(f"{self.folder(array)}/claim")

    def revoke(self, array: str) -> bool:
        """Claim an array so that none of its elements can ever run; return False if it is claimed already."""
        return revoke(f"{self.folder(array)}/claim")

    def is_revoked(self, array: str) -> bool:
        """Return True if a client has revoked the array, so that none of its elements can ever run."""
        return is_revoked(self.claim(array))

    def is_over(self, array: str) -> bool:
        """Return True if none of its elements can run any more: a client revoked it, or it was discarded."""
        claim = self.claim(array)
        return not host.exists(f"{self.folder(array)}/run") if claim is None else is_revoked(claim)

    def give_up(self, array: str, reason: str) -> None:
        """Record that the submission of a revoked array failed: no process recovers its jobs."""
        host.write_once(f"{self.folder(array)}/over", json.dumps(reason).encode("ascii"))

    def read_unsent_reason(self, array: str) -> str | None:
        """Return the reason that `give_up` wrote; empty if it wrote no words, None if it was not called."""
        return read_reason(f"{self.folder(array)}/over")

    def record_native_id(self, array: str, native_id: str) -> None:
        """Add the native id that the batch system gave to an array; called within `hold_lock`."""
        add_native_id(f"{self.folder(array)}/intent.json", native_id)

    @contextlib.contextmanager
    def hold_lock(self, array: str, patience_seconds: float) -> Iterator[bool]:
        """Hold the lock on an array; yield False if it cannot be had in time. See `Spool.hold_lock`."""
        with host.hold_lock(f"{self.folder(array)}/intent.json", patience_seconds) as is_held:
            yield bool(is_held)

    def remove(self, array: str) -> None:
        """Rename the folder of an array into the trash, so that it disappears at once."""
        os.rename(self.folder(array), f"{self._trash}/{array}")  # noqa: PTH104


@functools.lru_cache(maxsize=16)
def _line_starts(path: str) -> Sequence[int]:
    """Return the offsets at which the lines of an intent begin.

    They are cached, as a search for each element would take quadratic time. A written intent never changes,
    except that the native id is added at the end.
    """
    starts = [0]
    with open(path, "rb") as file:  # noqa: PTH123
        for line in file:
            starts.append(starts[-1] + len(line))
    return starts


def _is_element(line: object) -> bool:
    """Return True for the line that this version writes for an element."""
    return (
        isinstance(line, dict)
        and isinstance(line.get("attempt"), int)
        and isinstance(line.get("spec"), dict)
        and isinstance(line.get("id"), str)
        and _NAME.match(line["id"]) is not None
    )


def adopt(folder: str, attempt: int, place: ArrayMember, array_folder: str) -> bool:
    """Make the folder of a job, if it has none yet, and link it to its array element.

    Returns False if the link existed already.
    """
    if read_link(folder, attempt) is not None:
        return False
    path, text = link_path(folder, attempt), f"{place.array} {place.index}\n".encode("ascii")
    if not host.exists(folder) and _make_linked_folder(path, text, array_folder):
        return True
    with contextlib.suppress(FileExistsError):
        host.make_directory(folder)
    if not os.path.exists(path):  # noqa: PTH110
        return host.write_once(path, text)
    # another process may have written it meanwhile
    if read_link(folder, attempt) is None:
        # its runner could not write it: the disk was full, or its machine died
        host.write(path, text)
    return False


def _make_linked_folder(link: str, text: bytes, array_folder: str) -> bool:
    """Make a folder that has its link from the first moment, or return False.

    Killed in between, a client would leave a folder that does not say which element it is.
    """
    folder, _, name = link.rpartition("/")
    draft = f"{array_folder}/{folder.rpartition('/')[2]}.{os.getpid()}.{threading.get_ident()}"
    try:
        host.make_directory(draft)
        host.write_new(f"{draft}/{name}", text)
        # it fails if there is a folder with files by now
        os.rename(draft, folder)  # noqa: PTH104
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        return False
    return True


def link_path(folder: str, attempt: int) -> str:
    """Return the path of the file in a job's folder that names the array element of an attempt."""
    return f"{folder}/array.{attempt}"


def read_link(folder: str, attempt: int) -> ArrayMember | None:
    """Return to which array an attempt belongs, and which index in it; None without a readable link."""
    try:
        array, index = host.read_text(link_path(folder, attempt)).split()
        return ArrayMember(array, int(index)) if int(index) > 0 and _NAME.match(array) else None
    except (FileNotFoundError, ValueError):
        return None


def append_native_id(fd: int, native_id: str) -> None:
    """Add a native id to an open intent, whole or not at all; the caller holds the lock on the intent."""
    size = os.fstat(fd).st_size
    try:
        host.write_all(fd, f"\n{native_id}".encode("ascii"))
    except BaseException:
        # half of it would be the id of another job
        os.ftruncate(fd, size)
        raise


def add_native_id(path: str, native_id: str) -> None:
    """Add a native id to an intent that has none; the caller holds its lock."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        append_native_id(fd, native_id)
    finally:
        os.close(fd)


def read_reason(path: str) -> str | None:
    """Return the words in a file; empty if there are none in it, None if there is no such file."""
    try:
        found = json.loads(host.read_text(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return ""
    return found if isinstance(found, str) else ""


def _write_intent(path: str, common: Mapping[str, Any], elements: Sequence[Mapping[str, Any]]) -> int:
    # If the write is cut short, the first line promises more lines than there are: the array counts as never
    # made.
    lines = [json.dumps(line) for line in ({**common, "count": len(elements)}, *elements)]
    fd = host.create_locked(path)
    try:
        host.write_all(fd, "\n".join(lines).encode("ascii"))
    except BaseException:
        os.close(fd)
        raise
    return fd
