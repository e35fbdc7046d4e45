"""What is left of places that are gone: what their logs tell, and what still runs there."""

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
    """Reads logs, and ends what runs on this machine; everything in one event loop."""

    def __init__(self, folder: Path, steps: BackgroundTasks) -> None:
        """Know of none.

        Args:
            folder: where pilots have their folders.
            steps: what that is done in which takes a while.
        """
        self._folder = folder
        self._steps = steps
        self._clearings: dict[str, asyncio.Task[None]] = {}

    def story(self, place: str) -> NodeStory:
        """What the log of a place tells; nothing if it cannot be read now."""
        try:
            return story(self._log(place))
        except OSError as e:
            log.warning("the log of %s cannot be read now: %s", place, e)
            return NodeStory()

    def is_cleared(self, place: str, told: NodeStory) -> bool:
        """Whether nothing runs any more at a place whose pilot is over.

        Whoever ends a pilot may have overlooked what its jobs have started as sessions of their own, if
        nobody was left to end those. On this machine it is ended now.
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
