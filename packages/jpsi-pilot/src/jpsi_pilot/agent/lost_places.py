"""Places that are gone: reads their logs, and ends the processes that they left on this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container
from pathlib import Path

from ..node import NodeLogContent, end_orphans, is_on_this_machine, log_path, read_node_log
from ..protocol import pilot_of
from .background_tasks import BackgroundTasks

log = logging.getLogger(__name__)


class LostPlaces:
    """Reads logs, and ends processes on this machine; all methods run in one event loop."""

    def __init__(self, folder: Path, background_tasks: BackgroundTasks) -> None:
        """Begin without any place.

        Args:
            folder: the directory that holds the directories of pilots.
            background_tasks: runs slow steps in the background.
        """
        self._folder = folder
        self._background_tasks = background_tasks
        self._cleanups: dict[str, asyncio.Task[None]] = {}

    def read_log(self, place: str) -> NodeLogContent:
        """Return the content of a place's log; an empty one if the log cannot be read now."""
        try:
            return read_node_log(self._log_path(place))
        except OSError as e:
            log.warning("the node log of %s cannot be read, and is retried: %s", place, e)
            return NodeLogContent()

    def is_cleaned_up(self, place: str, content: NodeLogContent) -> bool:
        """Return True if nothing runs any more at a place whose pilot is over.

        The batch system that ends a pilot may miss the sessions that its jobs started, if the node supervisor
        did not live to end them. Where the place is on this machine, this starts a task that ends them, and
        returns False until that task is done.
        """
        if content.over or not is_on_this_machine(place):
            return True
        if place not in self._cleanups:
            self._cleanups[place] = self._background_tasks.start(
                asyncio.to_thread(end_orphans, self._log_path(place))
            )
        return self._cleanups[place].done()

    def forget_others(self, pilots: Container[str]) -> None:
        """Forget the places of all pilots but these."""
        self._cleanups = {it: task for it, task in self._cleanups.items() if pilot_of(it) in pilots}

    def _log_path(self, place: str) -> Path:
        return log_path(self._folder / pilot_of(place), place)
