"""The tasks that the agent runs in the background of its poll loop.

They are slow steps, such as submitting a pilot or waiting for the end of a job, which must not hold up the
poll loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import attrs

log = logging.getLogger(__name__)


@attrs.frozen(slots=True, eq=False)
class BackgroundTasks:
    """Tasks of the event loop; the end of each one wakes the agent's poll loop."""

    _wake: Callable[[], None]
    _tasks: set[asyncio.Task[None]] = attrs.field(init=False, factory=set)

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a coroutine as a task; an exception in it is logged and stops nothing else."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a background task of the agent failed", exc_info=task.exception())
        self._wake()
