"""What takes a while with a pilot: to start it, to find it again, to have it end."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from jpsi import Job, JpsiError

from ..engines import EngineMissing
from .engine_pool import EnginePool
from .pilot import Pilot
from .pilot_jobs import PilotJobs, pilot_spec, prepare

log = logging.getLogger(__name__)

# How long after something did not work it is tried again.
_PAUSE, _LONG_PAUSE = 2.0, 30.0


class NotStartedError(Exception):
    """A pilot could not be started; the message says why."""


class PilotLifecycle:
    """Carries them out, in the event loop of the agent; the pilots know afterwards."""

    def __init__(self, folder: Path, engines: EnginePool, jobs: PilotJobs) -> None:
        """Begin nothing.

        Args:
            folder: where pilots have their folders.
            engines: what runs in pilots.
            jobs: what pilots are jobs of.
        """
        self._folder = folder
        self._engines = engines
        self._jobs = jobs

    async def start(self, pilot: Pilot, job: Job) -> None:
        """Submit a pilot as this job.

        Raises:
            NotStartedError: that did not work, and nothing is left of it but its folder.
        """
        folder = self._folder / pilot.name
        try:
            engine = await self._engines.ready(pilot.settings)
            prepare(folder, pilot.settings)
            job.spec = pilot_spec(pilot.name, pilot.settings, folder, engine.equip(folder, pilot.settings))
            await asyncio.to_thread(self._jobs.submit, job, pilot.settings.target)
        except Exception as e:
            # a fence: targets and engines are plugins, and no pilot counts that did not start
            _warn(e, "pilot %s could not be started: %s", pilot.name)
            raise NotStartedError(str(e) or type(e).__name__) from e
        pilot.job = job

    async def recall(self, pilot: Pilot) -> None:
        """Find the pilot of an earlier agent."""
        while True:
            try:
                pilot.job = await asyncio.to_thread(
                    self._jobs.recall, pilot.entry.job_id, pilot.settings.target
                )
            except Exception as e:  # noqa: BLE001  a fence, as of `start`
                _warn(e, "pilot %s of an earlier agent is not to be found now: %s", pilot.name)
                await asyncio.sleep(_LONG_PAUSE)
            else:
                pilot.over = pilot.job is None
                return

    async def dismiss(self, pilot: Pilot, job: Job) -> None:
        """Have a pilot end, which is this job."""
        try:
            await asyncio.to_thread(self._jobs.cancel, job)
        except Exception as e:  # noqa: BLE001  a fence, as of `start`
            _warn(e, "pilot %s cannot be told to end now: %s", pilot.name)
            await asyncio.sleep(_PAUSE)
            pilot.told = False


def _warn(error: Exception, message: str, name: str) -> None:
    """Log what went wrong with a pilot, with a traceback if it should not have."""
    is_foreseen = isinstance(error, (EngineMissing, JpsiError, OSError))
    log.warning(message, name, error, exc_info=None if is_foreseen else error)
