"""Places that are gone: reads their logs, and ends the processes that they left on this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container
from pathlib import Path

from ..node import NodeStory, end_orphans, is_here, log_of, story
from ..protocol import pilot_of
from .background_tasks import BackgroundTasks

log = logging.getLogger(__name__)


class LostPlaces:
    """Reads logs, and ends processes on this machine; all methods run in one event loop."""

    def __init__(self, folder: Path, steps: BackgroundTasks) -> None:
        """Begin without any place.

        Args:
            folder: the directory that holds the directories of pilots.
            steps: runs slow steps in the background.
        """
        self._folder = folder
        self._steps = steps
        self._clearings: dict[str, asyncio.Task[None]] = {}

    def story(self, place: str) -> NodeStory:
        """Return the content of a place's log; an empty one if the log cannot be read now."""
        try:
            return story(self._log(place))
        except OSError as e:
            log.warning("the log of %s cannot be read now: %s", place, e)
            return NodeStory()

    def is_cleared(self, place: str, told: NodeStory) -> bool:
        """Return True if nothing runs any more at a place whose pilot is over.

        The batch system that ends a pilot may miss the sessions that its jobs started, if the node supervisor
        did not live to end them. Where the place is on this machine, this starts a task that ends them, and
        returns False until that task is done.
        """
        if told.over or not is_here(place):
            return True
        if place not in self._clearings:
            self._clearings[place] = self._steps.begin(asyncio.to_thread(end_orphans, self._log(place)))
        return self._clearings[place].done()

    def keep(self, pilots: Container[str]) -> None:
        """Forget the places of all pilots but these."""
        self._clearings = {it: task for it, task in self._clearings.items() if pilot_of(it) in pilots}

    def _log(self, place: str) -> Path:
        return log_of(self._folder / pilot_of(place), place)
