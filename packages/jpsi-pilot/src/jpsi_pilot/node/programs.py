"""Starts the programs of jobs that need no shell, by a small process that outlives the worker for a moment.

That process leaves the markers of the ends. Once the worker is gone, it kills what has not ended by itself,
and ends: no end is lost with the worker. Only the worker imports this, as it needs all of jpsi.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping

from jpsi_engine import ProgramLostError, RunningProgram, Starter, find_batch_program

from ..config import capabilities
from ..protocol import JOB_VARIABLE, LOG_VARIABLE, STARTER_VARIABLE, Task
from .node_log import NodeLog
from .sessions import RunLostError, end_marked

log = logging.getLogger(__name__)

# The seconds that the process has to start; if it takes longer, jobs have a shell.
_READY_SECONDS = 10.0


class Programs:
    """The programs of one node; any thread may call the method."""

    def __init__(self, log: NodeLog) -> None:
        self._log = log
        self._capabilities = capabilities()
        self._starter: Starter | None = None
        self._lock = threading.Lock()

    def start(
        self, task: Task, variables: Mapping[str, str], inherited: Mapping[bytes, bytes]
    ) -> RunningProgram | None:
        """Start the program of a task that needs no shell; return None for all others.

        Args:
            task: the task.
            variables: the part of its environment that only this task has.
            inherited: the rest of it.

        Raises:
            RunLostError: it may have run, and does not any more.
        """
        if task.restarts:
            return None
        program = find_batch_program(task.script, self._capabilities, variables, inherited, task.umask)
        if program is None:
            return None
        starter = self._get_starter()
        if starter is None or starter.is_gone:
            return None
        try:
            return program.start(starter)
        except ProgramLostError as e:
            end_marked({JOB_VARIABLE: task.native_id, LOG_VARIABLE: str(self._log.path)})
            raise RunLostError(str(e)) from e

    def _get_starter(self) -> Starter | None:
        with self._lock:
            # one that was killed is replaced; one that could not be run would not run again
            if self._starter is None or (self._starter.is_gone and self._starter.was_ready):
                try:
                    self._starter = self._make_starter()
                except OSError:
                    log.warning("the process that starts programs could not be started", exc_info=True)
                    return None
            return self._starter

    def _make_starter(self) -> Starter:
        variables = {STARTER_VARIABLE.encode(): os.fsencode(self._log.path)}
        starter = Starter(None, ready_seconds=_READY_SECONDS, ends_jobs=True, variables=variables)
        try:
            if (pid := starter.pid) is not None:
                self._log.record_starter(pid)
        except OSError:
            starter.retire()
            raise
        return starter
