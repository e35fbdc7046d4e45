"""Runs on disk.

Keeps the folder of each run of a document, and its journal, with a line for each event.

A driver reads from it the state of a run, and journals each outcome before it relies on it.
"""

from __future__ import annotations

from .completed import CompletedEntries, find_completed
from .journal import (
    CANCELLED,
    COMPLETED_BEFORE,
    CONSEQUENCES,
    DEPENDENCY_FAILED,
    HELD_BY_SERVICES,
    LOST,
    NO_LONGER_NEEDED,
    NO_ROOM,
    NOT_SUBMITTED,
    Event,
    Journal,
    Part,
    inner_journal,
)
from .runs import RunRequest, create_run, latest_run, locked_runs, plan_request, read_request, read_run
