"""Detects damaged files of jobs, and salvages from them what is still certain.

A crash of a file server leaves files empty or cut short, a backup restores some files and not others, and
users make mistakes. A damaged file may cost its own job that file's information, and never affects another
job.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jpsi.plugin.engine import decode, problems
from jpsi_engine.host import read_json
from jpsi_engine.spool.arrays import ArrayFiles, ArrayIntent, read_link
from jpsi_engine.spool.claims import UNREADABLE, read_claim
from jpsi_engine.spool.run_evidence import attempt_of, has_run, last_attempt
from jpsi_engine.spool.shared_dependencies import SHARED, decode_dependencies
from jpsi_engine.spool.status_values import decode_status
from jpsi_engine.verdict import CANCEL, TIMEOUT, Stop

#: The exceptions that mean damage, and not a transient failure, when a file is read.
DAMAGE = (
    *(IsADirectoryError, PermissionError, AttributeError, LookupError, TypeError, ValueError),
    # JSON that is nested too deeply, and a number or a time that no duration or date can hold
    *(RecursionError, OverflowError),
)

_INTENT = re.compile(r"intent\.\d+\.json")
# The most that is read of a file of one job; that of an array has as many lines as it has elements.
_MAX_BYTES = 1 << 24


def read_final(path: str) -> dict[str, Any] | None:
    """Return the final status in a file; None if there is none, or the file is damaged."""
    try:
        content = read_json(path)
        if content is not None:
            check_status(content)
    except DAMAGE:
        return None
    return content


def read_stop(path: str) -> dict[str, Any] | None:
    """Return the request to end a job that a file records; None if there is no file.

    A damaged file still shows that a client made the request, and its modification time shows when. What can
    be read of why and when counts.
    """
    content: dict[str, Any] | None = None
    readable: dict[str, Any] = {}
    try:
        content = read_json(path)
        if content is not None:
            check_stop(content)
            return content
    except DAMAGE:
        readable = _readable_stop(content)
    try:
        time = os.stat(path).st_mtime  # noqa: PTH116  text, as in the spool
    except (FileNotFoundError, NotADirectoryError):
        return None
    return {"why": CANCEL, "time": datetime.fromtimestamp(time, UTC).isoformat(), **readable}


def _readable_stop(content: object) -> dict[str, Any]:
    """Return why and when, as far as a damaged record says that."""
    found: dict[str, Any] = {}
    if isinstance(content, Mapping):
        found = {"why": TIMEOUT} if content.get("why") == TIMEOUT else {}
        with contextlib.suppress(*DAMAGE):
            _check_time(content["time"])
            found["time"] = content["time"]
    return found


def fallback_intent(folder: str) -> dict[str, Any]:
    """Return an intent with only what is true of any job with this folder."""
    time = 0.0
    with contextlib.suppress(OSError):
        time = os.stat(folder).st_mtime  # noqa: PTH116  as above
    return {"time": datetime.fromtimestamp(time, UTC).isoformat(), "directory": folder, "spec": {}}


def folder_problems(root: str, job_id: str, names: Collection[str]) -> Iterator[str]:
    """Yield the problems with the files of a job's last attempt, a clause each.

    A submission that was cut short before anything was started is not a job and has no problems.

    Args:
        root: the root of the spool.
        job_id: the job.
        names: the names of the files in its folder.
    """
    folder, attempt = f"{root}/jobs/{job_id}", last_attempt(job_id, names)
    if f"array.{attempt}" in names and f"intent.{attempt}.json" not in names:
        yield from _link_problems(root, job_id, attempt)
    else:
        yield from _intent_problems(folder, job_id, attempt, names)
    checks: dict[str, Callable[[Any], None]] = {
        f"final.{attempt}.json": check_status,
        f"stop.{attempt}.json": check_stop,
        SHARED: check_dependencies,
    }
    for name, check in checks.items():
        problem = file_problem(f"{folder}/{name}", check) if name in names else None
        if problem is not None:
            yield f"{name} {problem}"
    with contextlib.suppress(OSError):
        claim = read_claim(f"{folder}/claim.{attempt}")
        if claim is not None and claim.text == UNREADABLE:
            yield f"claim.{attempt} cannot be parsed"


def _intent_problems(folder: str, job_id: str, attempt: int, names: Collection[str]) -> Iterator[str]:
    """Yield the problems with the intents in a job's folder."""
    intents = sorted(filter(_INTENT.fullmatch, names), key=lambda it: attempt_of(job_id, it))
    found = {name: file_problem(f"{folder}/{name}", check_intent) for name in intents}
    sound_names = [name for name, problem in found.items() if problem is None]
    if not sound_names:
        was_made = any(name.startswith(("run.", "claim.")) for name in names)
        was_made = was_made or has_run(job_id, attempt, names)
        is_foreign = any(_is_whole(f"{folder}/{name}") for name in intents)
        if was_made or is_foreign:
            yield from (f"{name} {problem}" for name, problem in found.items())
            yield from () if intents else ("its intent is missing",)
    elif intents[-1] not in sound_names and has_run(job_id, attempt, names):
        yield f"{intents[-1]} {found[intents[-1]]}"
    elif attempt_of(job_id, intents[-1]) < attempt:
        yield f"intent.{attempt}.json is missing"


def array_problem(root: str, array: str) -> str | None:
    """Return the problem with the intent of an array; None if there is none."""
    path = f"{root}/arrays/{array}/intent.json"
    try:
        found = os.stat(path)  # noqa: PTH116  as above
        return _array_problem(path, (found.st_ino, found.st_size, found.st_ctime_ns))
    except OSError as e:
        return _describe_read_error(e)


@functools.lru_cache(maxsize=64)
def _array_problem(path: str, _stamp: Sequence[int]) -> str | None:
    """Return the problem with the intent at a path, cached until the file changes.

    Each element needs it, and a check of all elements for each of them would take quadratic time. If the file
    cannot be read, that may be over soon, and it raises `OSError`.
    """
    with open(path, "rb") as file:  # noqa: PTH123  as above
        return _content_problem(file.read(), _check_array, is_array=True)


def file_problem(path: str, check: Callable[[Any], None]) -> str | None:
    """Return the problem with a JSON file, as the end of a sentence; None if there is none.

    Args:
        path: the file.
        check: raises one of `DAMAGE` for content that jpsi does not write to that file.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123  text, as in the spool
            return _content_problem(file.read(_MAX_BYTES), check, is_array=False)
    except OSError as e:
        return _describe_read_error(e)


def _describe_read_error(error: OSError) -> str:
    return "is a directory" if isinstance(error, IsADirectoryError) else f"cannot be read: {error.strerror}"


def _content_problem(data: bytes, check: Callable[[Any], None], *, is_array: bool) -> str | None:
    """Return the problem with the content of a file; that of an array has a line for each element."""
    if not data:
        return "is empty"
    try:
        text = data.decode("ascii")
        check(text.split("\n") if is_array else json.loads(text.partition("\n")[0]))
    except json.JSONDecodeError:
        return "is cut short or overwritten"
    except UnicodeDecodeError:
        return "is overwritten"
    except DAMAGE:
        return "has content that jpsi does not write"
    return None


def check_intent(content: Any) -> None:  # noqa: ANN401  whatever is there
    """Raise if this is not the intent of an attempt."""
    _check_time(content["time"])
    remote = content.get("remote")
    texts = [content["directory"], *(() if remote is None else (remote["root"], remote["home"]))]
    if not all(isinstance(it, str) for it in texts) or problems(decode(content["spec"])):
        raise ValueError(content)


def check_status(content: Any) -> None:  # noqa: ANN401  as above
    """Raise if this is no final status."""
    status: Any = decode_status(content)  # of whatever types the file has them
    _check_time(content["time"])
    types = {"message": str | None, "metadata": dict, "exit_code": int | None}
    if not status.final or not all(isinstance(content[name], kind) for name, kind in types.items()):
        raise ValueError(content)


def check_stop(content: Any) -> None:  # noqa: ANN401  as above
    """Raise if this is not the record of a request to end a job."""
    _check_time(content["time"])
    Stop.from_content(content)


def check_dependencies(content: Any) -> None:  # noqa: ANN401  as above
    """Raise if these are not the dependencies that a job shares with others."""
    decode_dependencies(json.dumps(content))


def _check_time(text: str) -> None:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(text)
    time.astimezone(UTC)


def _check_array(lines: list[str]) -> None:
    common = json.loads(lines[0])
    for line in lines[1 : 1 + common["count"]]:
        check_intent(ArrayIntent("", common, [json.loads(line)], None).content(1))
    if len(lines) <= common["count"]:
        raise ValueError(lines)


def _link_problems(root: str, job_id: str, attempt: int) -> Iterator[str]:
    """Yield the problem with the link from a job to its array; an array that is gone or given up is none."""
    not_a_link, link = f"array.{attempt} does not name an array and an element", None
    with contextlib.suppress(OSError):
        link = read_link(f"{root}/jobs/{job_id}", attempt)
    if link is None:
        yield not_a_link
        return
    arrays = ArrayFiles(root)
    folder = arrays.folder(link.array)
    if arrays.is_of_another_job(link, job_id, attempt):
        yield f"array.{attempt} names the element of another job"
        return
    if os.path.lexists(f"{folder}/over") or not os.path.isdir(folder):  # noqa: PTH112  as above
        return
    problem = array_problem(root, link.array)
    if problem is not None:
        yield f"arrays/{link.array}/intent.json {problem}"
    elif arrays.read_element(link) is None:
        yield not_a_link


def _is_whole(path: str) -> bool:
    """Return False if a file is empty or no whole JSON, as a write that was cut short leaves it."""
    return file_problem(path, lambda _: None) not in {"is empty", "is cut short or overwritten"}
