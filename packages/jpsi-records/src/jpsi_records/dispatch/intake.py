"""Takes in the requests that a running job has left in its inbox, and writes their results there.

The dispatcher calls it in each round. Each request is recorded once, even after a crash. The job controls the
files: one that is no valid request is moved aside, and the job gets the reason as its result.
"""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import BinaryIO

import attrs

from ..errors import InvalidRequestError, NotFoundError, StateError
from ..files import open_untrusted, write_whole
from ..inbox import ENDED, InboxRequest, RequestResult, read_request, result_path, write_result
from ..model import Request, RequestState
from ..records import RecordsReader
from ..store import EVENT, REQUEST, Transaction, events, executions, requests

log = logging.getLogger(__name__)

#: The subdirectory of an inbox for files that contain no valid request.
REFUSED = "refused"
# The errors of opening a pipe or a directory, a link, a socket, and a file without read permission.
# All other errors of reading a file are temporary.
_PERMANENT_ERRORS = {errno.EINVAL, errno.ELOOP, errno.ENXIO, errno.EACCES}
# Larger files are refused; no real request is nearly as large.
_MAX_BYTES = 1 << 24


def process_inbox(records: RecordsReader, execution: str, inbox: Path) -> None:
    """Commit the requests in a job's inbox, and move invalid files aside.

    A file is removed once its request is in the records; a request that is there already was taken in before
    a crash. The dispatcher assigns executions to them as to any committed request without one.

    Raises:
        StoreError: the records cannot be written.
    """
    for path in _request_files(inbox):
        try:
            _commit(records, execution, read_request(path.name, _content(path)))
        except (InvalidRequestError, NotFoundError, StateError) as e:
            _refuse(records, execution, path, str(e))
        except FileNotFoundError:
            # Another dispatcher has taken it in.
            continue
        except OSError as e:
            if e.errno in _PERMANENT_ERRORS:
                _refuse(records, execution, path, e.strerror or "")
            else:
                log.warning("%r cannot be read now, and is later: %s", str(path), e)
        else:
            path.unlink(missing_ok=True)


def write_results(records: RecordsReader, execution: str, inbox: Path) -> None:
    """Write the results of ended and cancelled child requests into the inbox of their parent's job.

    The result of a cancelled one is removed if its user takes the cancellation back.

    Raises:
        StoreError: the records cannot be read.
    """
    with records.database.reading() as tx:
        children = requests.some(tx, REQUEST.c.parent == execution)
        results = [(it.id, _result(tx, it) if it.state.ends_a_wait else None) for it in children]
    for request_id, result in results:
        if result is None:
            _remove_result(inbox, request_id)
        else:
            _write_result(inbox, result)


def _result(tx: Transaction, request: Request) -> RequestResult:
    result = RequestResult(request=request.id, outcome=request.shown_state)
    if request.execution is None:
        return result
    execution = executions.get(tx, request.execution)
    why = ": ".join(filter(None, (execution.reason, execution.status.get("error"))))
    why = why if request.outcome == "failed" and execution.failed_without_result else ""
    return attrs.evolve(result, exit_code=execution.exit_code, output=execution.output, why=why)


def _write_result(inbox: Path, result: RequestResult) -> None:
    path, text = result_path(inbox, result.request), write_result(result)
    try:
        # The job may have put a link in its place, which could lead out of the inbox.
        if path.parent.is_symlink() or _has_content(path, text.encode()):
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(path, text)
    except OSError as e:
        log.warning("%r cannot be written now, and is later: %s", str(path), e)


def _has_content(path: Path, content: bytes) -> bool:
    try:
        with open_untrusted(path) as file:
            return file.read(len(content) + 1) == content
    except OSError:
        return False


def _remove_result(inbox: Path, request_id: str) -> None:
    path = result_path(inbox, request_id)
    try:
        if not path.parent.is_symlink():
            path.unlink(missing_ok=True)
    except OSError as e:
        log.warning("%r cannot be removed now, and is later: %s", str(path), e)


def _request_files(inbox: Path) -> list[Path]:
    """Return the files in an inbox, the oldest request first, without files that are still being written."""
    try:
        found = sorted(inbox.iterdir())
    except OSError:
        # Jobs of an older version have no inbox.
        return []
    return [it for it in found if not it.name.startswith(".") and it.name not in {REFUSED, ENDED}]


def _content(path: Path) -> bytes:
    with open_untrusted(path) as file:
        if _owner_of(file) != path.parent.stat().st_uid:
            raise StateError("the file belongs to another user")
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise InvalidRequestError(f"it has more than {_MAX_BYTES} bytes")
    return content


def _owner_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_uid


def _commit(records: RecordsReader, execution: str, request: InboxRequest) -> None:
    if request.more.parent != execution:
        raise StateError(f"it names another execution as its parent, {request.more.parent}")
    with records.database.writing() as tx:
        if _is_there(tx, request):
            return
        if executions.get(tx, execution).state.ended:
            raise StateError("the execution whose job has made it has ended")
        owner = _owner(tx, execution)
        for it in request.spec.predecessors:
            if requests.get(tx, it).owner != owner:
                raise NotFoundError(f"there is no request {it} of {owner}")
        committed = {"state": RequestState.COMMITTED, "priority": request.priority}
        created = requests.create(tx, request.id, owner, request.spec, request.more, **committed)
        events.add(tx, "committed", request=created.id, priority=request.priority)


def _is_there(tx: Transaction, request: InboxRequest) -> bool:
    try:
        found = requests.get(tx, request.id)
    except NotFoundError:
        return False
    if found.parent != request.more.parent:
        raise StateError(f"{request.id} is the id of another request")
    return True


def _owner(tx: Transaction, execution: str) -> str:
    """Return the owner for a job's requests: that of the execution's first request.

    Committed requests come first, then cancelled ones, whose users have asked for the job as well.
    """
    interested = requests.some(tx, REQUEST.c.execution == execution)
    if not interested:
        raise StateError(f"no request has execution {execution}")
    order = {RequestState.COMMITTED: 0, RequestState.CANCELLED: 1}
    return min(interested, key=lambda it: (order.get(it.state, len(order)), it.id)).owner


def _refuse(records: RecordsReader, execution: str, path: Path, reason: str) -> None:
    """Record once that a file is refused, write a result for the job, and move the file aside."""
    data = {"file": path.name, "why": reason}
    with records.database.writing() as tx:
        known = events.some(tx, EVENT.c.execution == execution, EVENT.c.kind == "refused")
        if not any(it.data == data for it in known):
            log.warning(
                "execution %s: %r, which its job has left, is refused: %s", execution, str(path), reason
            )
            events.add(tx, "refused", execution=execution, **data)
    if path.suffix == ".json":
        _write_result(path.parent, RequestResult(request=path.stem, outcome="refused", why=reason))
    aside = path.parent / REFUSED
    try:
        aside.mkdir(mode=0o700, exist_ok=True)
        path.replace(aside / path.name)
    except OSError as e:
        log.warning("%r cannot be kept aside: %s", str(path), e)
