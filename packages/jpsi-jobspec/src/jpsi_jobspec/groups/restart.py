"""Chooses which entries of a group run again after the batch system has restarted its allocation.

Entries that ended by themselves do not run again; those that were ended by the end of the last allocation do.
If tasks had cleaned up that allocation, local tasks run again as well, since they had prepared it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jpsi import JobState

from ..planning import Entry, Kind
from ..run_store import Journal, Part
from ..running import cleans_up


def begin_life(journal: Journal, life: str, *, is_wanted: bool) -> bool:
    """Begin a new life in the journal of an inside; return True if it had another life before.

    Args:
        journal: whose lock this process holds.
        life: an id of this start of the allocation's job, unlike that of any other.
        is_wanted: True if the inside is to go on; otherwise it stays ended.
    """
    last = journal.life
    if last == life:
        return False
    if is_wanted and journal.is_cancelled:
        journal.append(list(restart_events(journal.plan.entries, journal.parts)), is_synced=True)
        journal.withdraw_cancel()
    journal.record_life(life)
    return last is not None


def restart_events(entries: Iterable[Entry], parts: Mapping[str, Sequence[Part]]) -> Iterator[dict[str, Any]]:
    """Yield the events that let an ended inside go on. Pure."""
    entries = list(entries)
    was_cleaned = any(
        part.job_id is not None for entry in entries if cleans_up(entry) for part in parts[entry.id]
    )
    for entry in entries:
        for number, part in enumerate(parts[entry.id], 1):
            is_undone = was_cleaned and entry.kind is Kind.LOCAL and part.state is not JobState.NEW
            if part.state is JobState.CANCELED or is_undone:
                yield {"entry": entry.id, "replica": number, "job": None, "state": JobState.NEW.value}
