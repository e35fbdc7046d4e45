"""Who carries out an attempt that is on disk, and by which native id it is known."""

from __future__ import annotations

from collections.abc import Iterator

from jpsi_engine.host import NOBODY, ProcessId, boot_id, command_line, identify, parse_native_id
from jpsi_engine.spool.claims import REVOKED
from jpsi_engine.spool.spool import Intent, Spool

# More than any process has: nothing is ever sent to it.
_NO_PID = (1 << 31) - 1


def runner_of(spool: Spool, intent: Intent) -> ProcessId | None:
    """The runner that claimed an attempt; None if nobody did, or whoever revoked it."""
    claim = spool.claim(intent.job_id, intent.attempt)
    if claim is None or claim.text in {"", REVOKED}:
        return None
    try:
        pid = int(claim.text)
    except ValueError:
        return lost_runner(intent)
    if intent.native_id is not None:
        return parse_native_id(intent.native_id) or ProcessId(pid, NOBODY)
    # The submitter died before it could note the start time: the command line says as much.
    is_runner = _is_now(intent) and spool.folder(intent.job_id) in command_line(pid)
    return (identify(pid) if is_runner else None) or ProcessId(pid, NOBODY)


def lost_runner(intent: Intent) -> ProcessId:
    """The runner of an attempt that has begun, although its claim does not say so."""
    known = None if intent.native_id is None else parse_native_id(intent.native_id)
    return known or ProcessId(_NO_PID, NOBODY)


def native_id_of(intent: Intent, process: ProcessId) -> str:
    """The native id of an attempt that this process carries out, or did."""
    return intent.native_id or f"{process.pid}.{process.start}.{intent.content['boot']}"


def find(spool: Spool, native_id: str) -> Iterator[tuple[Intent, ProcessId]]:
    """The attempts in the spool that a native id or a plain pid means."""
    wanted = parse_native_id(native_id)
    for job_id in spool.job_ids():
        try:
            intent = spool.last_intent(job_id)
            # Its submitter wrote down the native id once it was started; its claim may come later.
            is_started = intent is not None and intent.native_id == native_id
            process = None if intent is None else runner_of(spool, intent) or (wanted if is_started else None)
        except (OSError, KeyError, TypeError, ValueError):
            continue  # one odd folder says nothing of the others
        if intent is None or process is None:
            continue
        if native_id_of(intent, process) == native_id or (process == wanted and _is_now(intent)):
            yield intent, process


def _is_now(intent: Intent) -> bool:
    """Whether an attempt was made since the machine was booted."""
    return intent.content.get("boot") == boot_id()
