"""What is on disk for native arrays, each of which is written down once for all of its elements.

    <root>/arrays/<array>/intent.json   a line for the array, one for each element, and its native id
    <root>/arrays/<array>/run           what all elements do
    <root>/arrays/<array>/elements.<n>  what is an element's own, for `BLOCK` elements
    <root>/arrays/<array>/claim         made by the first element that runs, or by whoever revokes the array
    <root>/arrays/<array>/over          the array was revoked, and its submitter told so; why, in words
    <root>/jobs/<id>/array.<attempt>    which element of which array an attempt is

Elements count from 1.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from jpsi.plugin.kit import make_directory, open_private
from jpsi_engine.host import read_text, take_lock, write, write_all, write_new, write_once
from jpsi_engine.spool.claims import REVOKED, Claim, read_claim, revoke

#: How many elements have their lines in one file: few files for thousands, and little to read for each, as a
#: shell reads the lines of all of them before it does those of one.
BLOCK = 16
# More bytes than any native id has.
_LONGEST_ID = 256
# The names of jobs and arrays become those of folders. Not all that is read was written on this machine.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")


@attrs.frozen(slots=True)
class Place:
    """Which element of which array a job is."""

    array: str
    #: From 1.
    index: int


@attrs.frozen(slots=True)
class ArrayIntent:
    """An array, as it was written down."""

    array: str
    #: What is common to all elements.
    common: Mapping[str, Any]
    #: What is an element's own: its id and attempt, and its part of the spec.
    elements: Sequence[Mapping[str, Any]]
    #: None if the submitter died before it could add it.
    native_id: str | None

    def content(self, index: int) -> dict[str, Any]:
        """The intent of one element, as it would be written down for a job by itself."""
        own = self.elements[index - 1]
        return {**self.common, **own, "spec": {**self.common["spec"], **own["spec"]}}


class ArrayFiles:
    """The arrays below one root. Threads and processes may share them; methods raise OSError as it comes.

    Args:
        root: where they are.
        check: raises unless that is safe to use.
    """

    def __init__(self, root: str, check: Callable[[], None] = lambda: None) -> None:
        self.arrays = f"{root}/arrays"
        self._trash = f"{root}/trash"
        self._check = check

    def folder(self, array: str) -> str:
        """The folder of an array."""
        return f"{self.arrays}/{array}"

    def prepare(
        self,
        array: str,
        common: Mapping[str, Any],
        elements: Sequence[Mapping[str, Any]],
        run: str,
        blocks: Iterable[str],
    ) -> int:
        """Write down an array and return a descriptor that holds the lock on it; see `Spool.prepare`."""
        folder = self.folder(array)
        self._check()
        make_directory(folder)
        try:
            lock = _write_intent(f"{folder}/intent.json", common, elements)
            try:
                write_new(f"{folder}/run", os.fsencode(run))
                for number, block in enumerate(blocks):
                    write_new(f"{folder}/elements.{number}", os.fsencode(block))
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
        """All arrays, but for those that are over."""
        return [array for array in self.all_names() if not os.path.exists(f"{self.folder(array)}/over")]  # noqa: PTH110

    def all_names(self) -> list[str]:
        """Return the names of all arrays, of those that are over, too."""
        try:
            return os.listdir(self.arrays)  # noqa: PTH208
        except FileNotFoundError:
            return []

    def read(self, array: str) -> ArrayIntent | None:
        """An array as it was written down; None if there is none, it was cut short, or is something else."""
        try:
            with open(f"{self.folder(array)}/intent.json", encoding="ascii") as file:  # noqa: PTH123
                lines = file.read().split("\n")
            common, *elements = map(json.loads, lines[: 1 + json.loads(lines[0])["count"]])
        except (FileNotFoundError, NotADirectoryError, IndexError, KeyError, TypeError, ValueError):
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
        """The native id of an array; None if its submitter died before it could add it."""
        try:
            with open(f"{self.folder(array)}/intent.json", "rb") as file:  # noqa: PTH123
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST_ID))
                _, is_line, last = file.read().rpartition(b"\n")
                native_id = last.decode("ascii")
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        # an element's line begins as no native id does
        return native_id if is_line and native_id and not native_id.startswith("{") else None

    def read_element(self, place: Place) -> dict[str, Any] | None:
        """The intent of one element, without reading all others."""
        path = f"{self.folder(place.array)}/intent.json"
        try:
            start = _line_starts(path)[place.index]
            with open(path, "rb") as file:  # noqa: PTH123
                common = json.loads(file.readline())
                file.seek(start)
                own = json.loads(file.readline())
            return ArrayIntent(place.array, common, [own], None).content(1)
        except (FileNotFoundError, IndexError, KeyError, TypeError, ValueError):
            return None

    def claim(self, array: str) -> Claim | None:
        """Which native array runs this one, or None."""
        return read_claim(f"{self.folder(array)}/claim")

    def revoke(self, array: str) -> bool:
        """Claim an array so that none of its elements can ever run; False if it is claimed already."""
        return revoke(f"{self.folder(array)}/claim")

    def is_revoked(self, array: str) -> bool:
        """Return True if none of an array can ever run, as somebody saw to that."""
        claim = self.claim(array)
        return claim is not None and claim.text == REVOKED

    def give_up(self, array: str, why: str) -> None:
        """Write down that an array was revoked, and its submitter told so: nobody recovers its jobs."""
        write_once(f"{self.folder(array)}/over", json.dumps(why).encode("ascii"))

    def given_up(self, array: str) -> str | None:
        """Return what `give_up` wrote down; empty if it wrote no words, None if it was not called."""
        return read_words(f"{self.folder(array)}/over")

    def note_found(self, array: str, native_id: str) -> None:
        """Add the native id by which the batch system has an array; called within `judging`."""
        add_native_id(f"{self.folder(array)}/intent.json", native_id)

    @contextlib.contextmanager
    def judging(self, array: str, patience_seconds: float) -> Iterator[bool]:
        """Hold the lock on an array; see `Spool.judging`."""
        try:
            fd = open_private(f"{self.folder(array)}/intent.json", os.O_RDWR)
        except FileNotFoundError:
            yield False
            return
        try:
            yield take_lock(fd, patience_seconds)
        finally:
            os.close(fd)

    def remove(self, array: str) -> None:
        """Remove an array; what is left of it at once looks like nothing."""
        os.rename(self.folder(array), f"{self._trash}/{array}")  # noqa: PTH104


@functools.lru_cache(maxsize=16)
def _line_starts(path: str) -> Sequence[int]:
    """Where the lines of an intent begin, found once: to look for each element anew takes quadratic time.

    What is written never changes, but for the native id in the end.
    """
    starts = [0]
    with open(path, "rb") as file:  # noqa: PTH123
        for line in file:
            starts.append(starts[-1] + len(line))
    return starts


# What is needed of an element.
_ELEMENT = {"id": str, "attempt": int, "spec": dict}


def _is_element(line: object) -> bool:
    """Whether it is what this version writes for an element."""
    return (
        isinstance(line, dict)
        and all(isinstance(line.get(name), kind) for name, kind in _ELEMENT.items())
        and _NAME.match(line["id"]) is not None
    )


def adopt(folder: str, attempt: int, place: Place) -> bool:
    """Make the folder of a job that has none yet, and write down there which element it is.

    Returns whether that was not written down already.
    """
    with contextlib.suppress(FileExistsError):
        make_directory(folder)
    path, text = link(folder, attempt), f"{place.array} {place.index}\n".encode("ascii")
    if not os.path.exists(path):  # noqa: PTH110
        return write_once(path, text)
    if read_link(folder, attempt) is None:
        # its runner could not write it: the disk was full, or its machine died
        write(path, text)
    return False


def link(folder: str, attempt: int) -> str:
    """The file in the folder of a job that tells which element an attempt is."""
    return f"{folder}/array.{attempt}"


def read_link(folder: str, attempt: int) -> Place | None:
    """Which element an attempt is; None if it is a job by itself."""
    try:
        array, index = read_text(link(folder, attempt)).split()
        return Place(array, int(index)) if _NAME.match(array) else None
    except (FileNotFoundError, ValueError):
        return None


def add_native_id(path: str, native_id: str) -> None:
    """Add a native id to an intent that has none, and whose lock is held."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        write_all(fd, f"\n{native_id}".encode("ascii"))
    finally:
        os.close(fd)


def read_words(path: str) -> str | None:
    """Return the words in a file; empty if there are none in it, None if there is no such file."""
    try:
        found = json.loads(read_text(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return ""
    return found if isinstance(found, str) else ""


def _write_intent(path: str, common: Mapping[str, Any], elements: Sequence[Mapping[str, Any]]) -> int:
    # Cut short, its first line promises more than there is: it counts as never written.
    lines = [json.dumps(line) for line in ({**common, "count": len(elements)}, *elements)]
    fd = open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        write_all(fd, "\n".join(lines).encode("ascii"))
    except BaseException:
        os.close(fd)
        raise
    return fd
