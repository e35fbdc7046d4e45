"""Finds the process that runs an attempt in the spool, and the native id by which users know it.

Only the local engine uses it, for jobs that it finds on disk: it recovers jobs of programs that ended, and
attaches to native ids. It never takes another process with the same pid for the job. For attempts that are
yet to be submitted, see `intents`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from jpsi_engine.host import (
    UNKNOWN_START,
    ProcessId,
    boot_id,
    command_line,
    find_leader,
    identify,
    parse_native_id,
)
from jpsi_engine.spool.claims import STARTER, claimant
from jpsi_engine.spool.damage import DAMAGE
from jpsi_engine.spool.spool import Intent, Spool

# How often, and with what pause, to look for a program whose starter has just died.
_LOOKUPS, _LOOKUP_SECONDS = 10, 0.05
#: Larger than any pid: no signal is ever sent to it.
NO_PID = (1 << 31) - 1


def find_runner(spool: Spool, intent: Intent, *, is_locked: bool = False) -> ProcessId | None:
    """Return the runner that claimed an attempt; None if no runner did, or a client revoked it.

    Args:
        spool: the spool.
        intent: the attempt.
        is_locked: True if the caller holds the lock on the attempt, and has read the intent since. Without
            it, a program that has no runner may just be starting, and is not found.
    """
    claim = spool.claim(intent.job_id, intent.attempt)
    if claim is None or claimant(claim) is None:
        return None
    if claim.text.startswith(STARTER) and intent.native_id is None and _is_of_this_boot(intent):
        # with the lock: the process that started it died before it could write the native id
        return _find_leader(intent) if is_locked else None
    try:
        pid = int(claim.text)
    except ValueError:
        return lost_runner(intent)
    if intent.native_id is not None:
        return parse_native_id(intent.native_id) or ProcessId(pid, UNKNOWN_START)
    # The submitting process died before it could write the start time: the command line identifies the
    # runner.
    is_runner = _is_of_this_boot(intent) and spool.folder(intent.job_id) in command_line(pid)
    return (identify(pid) if is_runner else None) or ProcessId(pid, UNKNOWN_START)


def _find_leader(intent: Intent) -> ProcessId:
    for _ in range(_LOOKUPS):
        if found := find_leader(f"JPSI_JOB_ID={intent.job_id}"):
            return found
        # until it has executed the program, a new process has the variables of its parent
        time.sleep(_LOOKUP_SECONDS)
    return lost_runner(intent)


def lost_runner(intent: Intent) -> ProcessId:
    """Return the runner of an attempt that has begun to run, but whose claim does not name its process."""
    parsed = None if intent.native_id is None else parse_native_id(intent.native_id)
    return parsed or ProcessId(NO_PID, UNKNOWN_START)


def native_id_of(intent: Intent, process: ProcessId) -> str:
    """Return the native id of an attempt that this process runs, or has run."""
    return intent.native_id or f"{process.pid}.{process.start}.{intent.content['boot']}"


def find_attempts(spool: Spool, native_id: str) -> Iterator[tuple[Intent, ProcessId]]:
    """Yield the attempts in the spool that have a native id or a plain pid, with their runners."""
    target = parse_native_id(native_id)
    for job_id in spool.job_ids():
        try:
            intent = spool.last_intent(job_id)
            # The submitting process writes the native id after the start; the claim may follow later.
            is_started = intent is not None and intent.native_id == native_id
            process = (
                None if intent is None else find_runner(spool, intent) or (target if is_started else None)
            )
        except (OSError, *DAMAGE):
            continue  # one odd folder says nothing of the others
        if intent is None or process is None:
            continue
        if native_id_of(intent, process) == native_id or (process == target and _is_of_this_boot(intent)):
            yield intent, process


def _is_of_this_boot(intent: Intent) -> bool:
    """Return True if an attempt was made since the machine was booted."""
    return intent.content.get("boot") == boot_id()
