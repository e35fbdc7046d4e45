"""The slow steps of a pilot's life: submits it, finds it after a restart of the agent, and cancels it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from jpsi import Job, JpsiError

from ..engines import EngineMissing
from .engine_pool import EnginePool
from .pilot import Pilot
from .pilot_jobs import PilotJobs, create_pilot_directory, pilot_spec

log = logging.getLogger(__name__)

# The delays before a retry, in seconds.
_RETRY_DELAY, _LONG_RETRY_DELAY = 2.0, 30.0


class NotStartedError(Exception):
    """A pilot could not be started; the message says why."""


class PilotLifecycle:
    """Runs these steps in the agent's event loop, and records the outcome in the pilots."""

    def __init__(self, folder: Path, engines: EnginePool, jobs: PilotJobs) -> None:
        """Store where pilots live and how to reach them; start nothing.

        Args:
            folder: the directory that holds the directories of pilots.
            engines: the engines that run jobs in pilots.
            jobs: submits pilots as jobs.
        """
        self._folder = folder
        self._engines = engines
        self._jobs = jobs

    async def start(self, pilot: Pilot, job: Job) -> None:
        """Submit a pilot as this job.

        Raises:
            NotStartedError: the submission failed, and nothing is left of the pilot but its directory.
        """
        folder = self._folder / pilot.name
        try:
            engine = await self._engines.get_or_start(pilot.settings)
            create_pilot_directory(folder, pilot.settings)
            job.spec = pilot_spec(pilot.name, pilot.settings, folder, engine.equip(folder, pilot.settings))
            await asyncio.to_thread(self._jobs.submit, job, pilot.settings.target)
        except Exception as e:
            # a fence: targets and engines are plugins, and a pilot that did not start does not count
            _warn(e, "pilot %s could not be started: %s", pilot.name)
            raise NotStartedError(str(e) or type(e).__name__) from e
        pilot.job = job

    async def recall(self, pilot: Pilot) -> None:
        """Find the pilot of an earlier agent; retry until its target answers."""
        while True:
            try:
                pilot.job = await asyncio.to_thread(
                    self._jobs.recall, pilot.entry.job_id, pilot.settings.target
                )
            except Exception as e:  # noqa: BLE001  a fence, as in `start`
                _warn(e, "the lookup of pilot %s of an earlier agent failed, and is retried: %s", pilot.name)
                await asyncio.sleep(_LONG_RETRY_DELAY)
            else:
                pilot.is_over = pilot.job is None
                return

    async def cancel(self, pilot: Pilot, job: Job) -> None:
        """Cancel a pilot's job; if that fails, the poll loop retries after a pause."""
        try:
            await asyncio.to_thread(self._jobs.cancel, job)
        except Exception as e:  # noqa: BLE001  a fence, as in `start`
            _warn(e, "the cancel of pilot %s failed, and is retried: %s", pilot.name)
            await asyncio.sleep(_RETRY_DELAY)
            pilot.is_cancelled = False


def _warn(error: Exception, message: str, name: str) -> None:
    """Log a problem with a pilot; add a traceback if the exception is an unexpected one."""
    is_expected = isinstance(error, (EngineMissing, JpsiError, OSError))
    log.warning(message, name, error, exc_info=None if is_expected else error)
