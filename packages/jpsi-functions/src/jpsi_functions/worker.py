"""Calls functions inside a job: a script that travels with the calls, and needs only cloudpickle.

It runs as `python worker.py FOLDER`. FOLDER has `client.json`, which describes the Python of the caller, and
the pickles `function` and `arguments`. The script writes one record for each call to `result.part`, and
renames that to `result` at the end. It unpickles nothing before it has checked that only the user can write
to the folder, and that its Python is that of the caller.

Python 3.6 and later run it as far as the sentence that names both versions.
"""

import grp
import json
import os
import pickle
import platform
import pwd
import signal
import socket
import stat
import struct
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO, Callable, Tuple

#: The kind of a record, and what belongs to it: see `calls_made` and `call`.
Record = Tuple[Any, ...]

_BEGIN = time.time()
_SCRIPT_FOLDER = os.path.dirname(os.path.realpath(__file__))
# What batch systems send before they end or preempt a job.
_WARNINGS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_LENGTH = struct.Struct(">Q")
# EX_CONFIG of sysexits.h
_UNSAFE = 78
# As if the batch system had ended it in time: 128 + SIGTERM.
_CANCELLED = 143


class EarlyWarnings:
    """Holds back the warnings that come while the call is being loaded, which may take long."""

    def __init__(self) -> None:
        self._came: "list[int]" = []
        self._before = {it: signal.signal(it, self._hold) for it in _WARNINGS}

    def _hold(self, number: int, _: object) -> None:
        self._came.append(number)

    def release(self, handler: "Callable[..., None] | None") -> None:
        """Give the warnings from now on, and the first that came, to a handler; None is what was there."""
        for number, before in self._before.items():
            # a module that was loaded may have a handler of its own
            if handler is not None or signal.getsignal(number) == self._hold:
                signal.signal(number, handler or before or signal.SIG_DFL)
        came, self._came, self._before = self._came, [], {}
        if came:
            os.kill(os.getpid(), came[0])


def main(folder: str) -> int:
    """Make the calls in a folder, if they were not cancelled; return the exit code.

    It is 0, or 1 if a call has no result. A job that runs again, as after a preemption, begins with the first
    call that has not ended; with a policy of retries, with the first that has not returned.
    """
    result = f"{folder}/result"
    if os.path.exists(f"{folder}/cancelled"):
        return _CANCELLED
    unsafe = unsafe_directory(folder)
    if unsafe is not None:
        # a record in the folder could be forged as well
        sys.stderr.write(f"jpsi_functions refuses to unpickle: {unsafe}\n")
        return _UNSAFE
    with open(f"{folder}/client.json", encoding="utf-8") as file:
        client = json.load(file)
    is_whole = os.path.exists(result)
    kept = ("value",) if client["retries"] else ("value", "raised", "refused")
    kinds, size, is_complete = ended_calls(result if is_whole else f"{result}.part", kept)
    is_well = set(kinds) <= {"value"}
    if is_whole and (is_complete or not client["retries"]):
        return 0 if is_complete and is_well else 1
    if is_whole:
        os.rename(result, f"{result}.part")
    with open(f"{result}.part", "ab") as records:
        records.truncate(size)
        records.seek(size)
        is_well = calls_made(folder, client, records, len(kinds)) and is_well
        finish(records)
    return 0 if is_well else 1


def finish(records: BinaryIO) -> None:
    """Give the records, which are complete now, their name."""
    os.fsync(records.fileno())
    os.rename(records.name, records.name[: -len(".part")])


def ended_calls(path: str, kept: "tuple[str, ...]") -> "tuple[list[str], int, bool]":
    """Return the kinds of the records that a file begins with, if they are to be kept, and their size.

    The third value is True if the file has no other records, but for that of a call that another job
    continues.
    """
    kinds: "list[str]" = []
    size = 0
    if not os.path.exists(path):
        return kinds, 0, False
    with open(path, "rb") as file:
        while True:
            head = file.read(_LENGTH.size)
            data = file.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
            if not data or len(data) < _LENGTH.unpack(head)[0]:
                return kinds, size, not head
            kind = pickle.loads(data)[0]
            if kind not in kept:
                return kinds, size, kind == "continued"
            kinds.append(kind)
            size += len(head) + len(data)


def calls_made(folder: str, client: "dict[str, Any]", records: BinaryIO, made: int) -> bool:
    """Make the calls after the first `made` ones, and write a record for each; return True if all returned.

    If none can be made, the one record is `("impossible", sentence)`.
    """
    early = EarlyWarnings()
    refusal = different_python(client) or missing_cloudpickle(client)
    if refusal is not None:
        write_record(records, ("impossible", refusal))
        return False
    if sys.path[:1] == [_SCRIPT_FOLDER]:  # not with PYTHONSAFEPATH
        del sys.path[0]
    sys.path += [it for it in client["path"] if it not in sys.path]
    try:
        if client["directory"] is not None:
            os.chdir(os.path.expanduser(client["directory"]))
        function = unpickle(f"{folder}/function")
        calls = unpickle(f"{folder}/arguments")
    except BaseException as error:
        write_record(records, ("impossible", cannot_load(error, client)))
        return False
    process = os.getpid()
    is_well = True
    for position, (arguments, keywords) in enumerate(calls):
        if position < made:
            continue
        calls[position] = None  # the arguments are free once the call has returned
        # of several calls one cannot go on alone
        asked = function if len(calls) == 1 else None
        with Checkpoint(asked, (arguments, keywords), client, records) as checkpoint:
            early.release(checkpoint.handler)
            record = call(function, arguments, keywords)
        del arguments, keywords
        if os.getpid() != process:
            os._exit(0)  # the function forked, and this is the child
        write_record(records, record)
        is_well = is_well and record[0] == "value"
    return is_well


class Checkpoint:
    """Asks a callable for its checkpoint when the job is about to be ended, and ends the job by that.

    A method `checkpoint`, as in submitit, is called with the arguments of the call. Its result has the
    attributes `function`, `args` and `kwargs`, or is itself a function without arguments: the next job calls
    that. If the result is None, the call goes on until the job is killed.
    """

    def __init__(
        self,
        function: "Callable[..., Any] | None",
        call: "tuple[tuple[Any, ...], dict[str, Any]]",
        client: "dict[str, Any]",
        records: BinaryIO,
    ) -> None:
        names = ("__submitit_checkpoint__", "checkpoint")
        self._ask = next((getattr(function, it) for it in names if hasattr(function, it)), None)
        self._is_active = callable(self._ask)
        self._call = call
        self._records = records
        self._process = os.getpid()
        self._timer: "threading.Timer | None" = None
        if self._is_active and client["checkpoint_after"] is not None:
            left = client["checkpoint_after"] - (time.time() - _BEGIN)
            self._timer = threading.Timer(max(0.0, left), os.kill, (self._process, signal.SIGUSR2))
            self._timer.daemon = True

    @property
    def handler(self) -> "Callable[..., None] | None":
        """The handler of warnings, or None if the callable has no checkpoint."""
        return self._end if self._is_active else None

    def __enter__(self) -> "Checkpoint":  # noqa: PYI034  Python 3.6 has no Self
        if self._timer is not None:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_active:
            # the record is written now
            for number in _WARNINGS:
                signal.signal(number, signal.SIG_IGN)

    def _end(self, *_: object) -> None:
        if os.getpid() != self._process:
            os._exit(1)  # a child that the function forked
        for number in _WARNINGS:
            signal.signal(number, signal.SIG_IGN)
        arguments, keywords = self._call
        try:
            following = self._ask(*arguments, **keywords)  # type: ignore[misc]  # it is callable
            if following is None:
                return
            record = continued(following)
        except BaseException as error:
            record = raised(error)
        write_record(self._records, record)
        finish(self._records)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if record[0] == "continued" else 1)


def continued(following: Any) -> Record:  # noqa: ANN401  as the user's checkpoint returns
    """Return the record of a call that goes on in another job: `("continued", function, arguments)`."""
    import cloudpickle  # type: ignore[import-untyped]  # it has no types

    function = getattr(following, "function", following)
    calls = [(tuple(getattr(following, "args", ())), dict(getattr(following, "kwargs", {})))]
    pickled = (cloudpickle.dumps(it, protocol=pickle.HIGHEST_PROTOCOL) for it in (function, calls))
    return ("continued", *pickled)


def call(function: "Callable[..., Any]", arguments: "tuple[Any, ...]", keywords: "dict[str, Any]") -> Record:
    """Call the function, and return the record of the call.

    It is `("value", pickle)`, `("raised", pickle or None, description, traceback)` or
    `("refused", sentence)`.
    """
    import cloudpickle

    try:
        value = function(*arguments, **keywords)
    except BaseException as error:
        return raised(error)
    try:
        return ("value", cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    except BaseException as error:
        kind = type(value).__name__
        return ("refused", f"the result, of type {kind}, cannot be pickled: {describe(error)}")


def raised(error: BaseException) -> Record:
    """Return the record of an exception: pickled, if it can be unpickled again, and as text."""
    import cloudpickle

    # the first frame is of this script
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    data = None
    try:
        data = cloudpickle.dumps(error, protocol=pickle.HIGHEST_PROTOCOL)
        pickle.loads(data)
    except BaseException:
        data = None
    return ("raised", data, describe(error), text)


def describe(error: BaseException) -> str:
    """Return the type and the text of an exception, even if its `__str__` raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return type(error).__name__


def write_record(records: BinaryIO, record: Record) -> None:
    """Append a record, or, if there is no room for it on the disk, one that says so."""
    start = records.tell()
    try:
        append(records, record)
    except OSError as error:
        os.ftruncate(records.fileno(), start)
        os.lseek(records.fileno(), start, os.SEEK_SET)
        size = len(record[1]) if record[0] == "value" else 0
        append(records, ("refused", f"the result has {size} bytes, which cannot be written: {error}"))


def append(records: BinaryIO, record: Record) -> None:
    """Append a record, with its length before it, so that a reader knows whether it is complete."""
    data = pickle.dumps(record, protocol=4)
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        left = left[os.write(records.fileno(), left) :]


def unpickle(path: str) -> Any:  # noqa: ANN401  whatever was pickled
    """Return what a file has."""
    with open(path, "rb") as file:
        return pickle.load(file)


def cannot_load(error: BaseException, client: "dict[str, Any]") -> str:
    """Return why the call cannot be unpickled, in one sentence."""
    if isinstance(error, ImportError) and error.name and error.name not in sys.modules:
        package = error.name.split(".")[0]
        return (
            f"the call needs the module {error.name}, which {caller(client)} has, but not {this_python()}; "
            f"install it there, or send it along: cloudpickle.register_pickle_by_value({package})"
        )
    return f"the call cannot be unpickled by {this_python()}: {describe(error)}"


def different_python(client: "dict[str, Any]") -> "str | None":
    """Return a sentence if this is another implementation or minor version than that of the caller."""
    name, version = platform.python_implementation(), platform.python_version()
    is_same = version.split(".")[:2] == client["python"].split(".")[:2]
    if is_same and name == client["implementation"]:
        return None
    return (
        f"the caller is {client['implementation']} {client['python']} ({caller(client)}), but the job is "
        f"{name} {version} ({this_python()}); the minor versions must be the same: name another interpreter "
        "with python="
    )


def missing_cloudpickle(client: "dict[str, Any]") -> "str | None":
    """Return a sentence if cloudpickle is not installed here."""
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        return (
            f"the caller has cloudpickle {client['cloudpickle']} ({caller(client)}), but the job has none "
            f"({this_python()}): install it there, or name another interpreter with python="
        )
    return None


def caller(client: "dict[str, Any]") -> str:
    """Return the interpreter of the caller, and its host."""
    return f"{client['executable']} on {client['host']}"


def this_python() -> str:
    """Return this interpreter, and its host."""
    return f"{sys.executable} on {socket.gethostname()}"


def unsafe_directory(folder: str) -> "str | None":
    """Return why others could have written the files in a folder; None if only the user and root can."""
    path, owners, may_be_sticky = os.path.realpath(folder), [os.geteuid()], False
    while True:
        status = os.stat(path)
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid not in owners:
            return f"{path} belongs to user {status.st_uid}, not to you"
        is_shared = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not has_private_group(status))
        if is_shared and not (may_be_sticky and mode & stat.S_ISVTX):
            return f"others may write to {path} (mode {mode:04o}); change that: chmod go-w {path}"
        if path == os.path.dirname(path):
            return None
        path, owners, may_be_sticky = os.path.dirname(path), [0, os.geteuid()], True


def has_private_group(status: os.stat_result) -> bool:
    """Return True if the group is the one that many systems make for each user, with no other member."""
    try:
        user, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    is_own = user.pw_gid == status.st_gid and group.gr_name == user.pw_name
    return is_own and set(group.gr_mem) <= {user.pw_name}


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
