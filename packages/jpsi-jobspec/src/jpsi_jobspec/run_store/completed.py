"""Finds what completed in the last run and counts as completed in the next one, and records it there.

An entry counts only if its recorded end is COMPLETED, or it was not to run because of how others ended, and
neither it nor anything that it depends on has changed in the plan. A group is one entry. Entries with steps,
and services, run again, as do those that depend on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from jpsi import JobState
from jpsi_engine import make_private_directory, sync_directory, write_synced

from ..planning import Entry, Kind, Plan
from .journal import (
    COMPLETED_BEFORE,
    INSIDE,
    Event,
    Journal,
    Part,
    inner_journal,
)


@attrs.frozen(slots=True)
class CompletedEntries:
    """Entries of a run that count as completed in the next one."""

    run: Journal
    names: tuple[str, ...]

    @property
    def completed_names(self) -> tuple[str, ...]:
        """The names without those that were not to run."""
        states = self.run.states
        return tuple(name for name in self.names if set(states[name]) == {JobState.COMPLETED})

    def record(self, path: Path) -> None:
        """Write the journals of these entries into the folder of the next run, which no process reads yet."""
        _write_ends(path, (part for name in self.names for part in self.run.parts[name]))
        for entry in (self.run.parts[name][0].entry for name in self.names):
            if entry.kind is Kind.ALLOCATION:
                inside = inner_journal(self.run.path, entry)
                folder = path / INSIDE / entry.id
                make_private_directory(folder, "the folder of what runs inside")
                _write_ends(folder, inside.all_parts())
                if inside.work.exists():
                    # the pilot that ran the tasks keeps their output there
                    (folder / inside.work.name).symlink_to(inside.work.resolve())
                for it in (folder, folder.parent):
                    sync_directory(it)
        sync_directory(path)


def find_completed(last: Journal, plan: Plan) -> CompletedEntries:
    """Return the entries of a run that is over that count as completed in a run of this plan."""
    found: dict[str, None] = {}
    # each entry comes after its dependencies
    for entry in plan.entries:
        if all(it.id in found for it in entry.after) and _has_completed(last, entry):
            found[entry.id] = None
    return CompletedEntries(last, tuple(found))


def _has_completed(last: Journal, entry: Entry) -> bool:
    """Return True if an unchanged entry completed: all its replicas, and all tasks of a group that had to.

    One that was not to run counts, too: everything that it depends on counts, so it is not to run again.
    """
    parts = last.parts.get(entry.id, [])
    has_files = any(it.steps or it.kind is Kind.FILES for it in entry.walk())
    if has_files or entry.kind is Kind.SERVICE or not parts or parts[0].entry != entry:
        return False
    inside = inner_journal(last.path, entry).all_parts() if entry.kind is Kind.ALLOCATION else []
    return all(it.is_done for it in (*parts, *inside))


def _write_ends(folder: Path, parts: Iterable[Part]) -> None:
    lines = (json.dumps(it, separators=(",", ":")) + "\n" for it in _end_events(parts))
    write_synced(folder / "journal", "".join(lines).encode())


def _end_events(parts: Iterable[Part]) -> Iterator[Event]:
    """Yield the end of each replica as the next run has it, with the job of the earlier run."""
    for it in parts:
        reason = COMPLETED_BEFORE if it.state is JobState.COMPLETED else it.reason
        yield {**it.end_event(it.state, reason, it.message, it.exit_code), "job": it.job_id}
