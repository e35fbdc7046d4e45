"""Chooses what runs again of a group whose allocation the batch system has started anew.

What has ended by itself is not run again. What the end of the last allocation has ended is; and if that one
was cleaned up, so is what is local, which had prepared it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jpsi import JobState

from ..planning import Entry, Kind
from ..run_store import Journal, Part
from ..running import cleans_up


def begin_life(journal: Journal, life: str, *, is_wanted: bool) -> bool:
    """Have the journal of an inside be that of this life; returns whether it was another's.

    Args:
        journal: held by nobody else.
        life: what no other start of the allocation's job is called.
        is_wanted: whether it is to go on; otherwise it is as it was ended.
    """
    last = journal.life
    if last == life:
        return False
    if is_wanted and journal.is_cancelled:
        journal.note(list(restart_events(journal.plan.entries, journal.parts)), is_synced=True)
        journal.go_on()
    journal.live(life)
    return last is not None


def restart_events(entries: Iterable[Entry], parts: Mapping[str, Sequence[Part]]) -> Iterator[dict[str, Any]]:
    """What is to be noted of an inside that was ended, so that it goes on. Pure."""
    entries = list(entries)
    was_cleaned = any(
        part.job_id is not None for entry in entries if cleans_up(entry) for part in parts[entry.id]
    )
    for entry in entries:
        for number, part in enumerate(parts[entry.id], 1):
            is_undone = was_cleaned and entry.kind is Kind.LOCAL and part.state is not JobState.NEW
            if part.state is JobState.CANCELED or is_undone:
                yield {"entry": entry.id, "replica": number, "job": None, "state": JobState.NEW.value}
