"""Decides the state of jobs whose runs have ended, or whose nodes are gone: final, or waiting again.

The scheduling loop uses it. A job does not run again while its pilot may still run it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path

import attrs

from ..node import NodeLogContent, end_orphans, engine_log_node, is_on_this_machine, log_path, read_node_log
from ..protocol import End, pilot_of
from .background_tasks import BackgroundTasks
from .journal import Journal
from .pilot import Pilot
from .state import Job

log = logging.getLogger(__name__)

# The final state by the reason why a run was ended.
_FINAL_STATES = {"cancel": "cancelled", "timeout": "timeout", "unable": "unable"}


@attrs.define(slots=True, eq=False)
class Verdicts:
    """The part of the poll loop that ends and requeues jobs; all methods run in one event loop."""

    #: Records every verdict.
    _journal: Journal
    #: The directory that holds the directories of pilots, which have the logs of nodes.
    _folder: Path
    #: Returns the time.
    _now: Callable[[], float]
    #: Runs slow steps in the background.
    _background_tasks: BackgroundTasks
    _cleanups: dict[str, asyncio.Task[None]] = attrs.field(init=False, factory=dict)

    def judge(
        self, nodes: Container[str], pilots: Mapping[str, Pilot], tracked_runs: Container[tuple[str, int]]
    ) -> None:
        """Judge the jobs whose node is gone, by the node's log or by the end of their pilot.

        Args:
            nodes: the names of the existing nodes.
            pilots: the pilots that are not known to be over, or not yet removed.
            tracked_runs: the runs whose end an engine will report.
        """
        read_log = functools.cache(self._read_log)
        for job in self._journal.state.running:
            lost = [it for it in job.nodes if it not in nodes]
            if not lost or (len(lost) < len(job.nodes) and job.run_key in tracked_runs):
                continue
            self._judge_run(job, lost, pilots.get(job.pilot or ""), read_log)

    def _judge_run(
        self, job: Job, lost: Sequence[str], pilot: Pilot | None, read_log: Callable[[str], NodeLogContent]
    ) -> None:
        logs = [read_log(it) for it in (*job.nodes, engine_log_node(job.nodes[0]))]
        ends = [it.ends[job.run_key] for it in logs if job.run_key in it.ends]
        is_over = all(read_log(it).over for it in lost)
        if ends:
            self.record_end(job, ends[0])
        elif is_over and not any(job.run_key in it.begun for it in logs):
            self.record_end(job, End(code=None, why="pilot"))
        elif is_over or pilot is None or pilot.is_over:
            is_cleaned_up = [self._is_cleaned_up(it, read_log(it)) for it in lost]
            if all(is_cleaned_up):
                self._record_loss(job)

    def forget_others(self, pilots: Container[str]) -> None:
        """Forget the nodes of all pilots but these."""
        self._cleanups = {it: task for it, task in self._cleanups.items() if pilot_of(it) in pilots}

    def record_end(self, job: Job, end: End) -> None:
        """Record the end of a run: the job gets its final state, or waits again."""
        if end.why == "pilot" and end.code is None:
            # it never began
            self._requeue(job, ran=False)
        elif end.why in {"pilot", "lost"}:
            self._record_loss(job, end.code if end.why == "pilot" else None, end.message)
        else:
            state = _FINAL_STATES.get(end.why, "failed" if end.code else "done")
            self._record_final_state(job, state, end.code, end.message)

    def _record_loss(self, job: Job, code: int | None = None, message: str = "") -> None:
        """Record a run that was lost with its pilot or its node; requeue the job if it requested a retry."""
        if job.submission.retry and not job.stopped:
            self._requeue(job, ran=True)
        else:
            self._record_final_state(job, "cancelled" if job.stopped else "lost", code, message)

    def _requeue(self, job: Job, *, ran: bool) -> None:
        if job.stopped:
            self._record_final_state(job, "cancelled", None)
        else:
            self._journal.write({"what": "back", "id": job.native_id, "ran": ran, "time": self._now()})

    def _record_final_state(self, job: Job, state: str, code: int | None, message: str = "") -> None:
        event = {"what": "ended", "id": job.native_id, "state": state, "code": code, "time": self._now()}
        self._journal.write({**event, "message": message} if message else event)

    # The nodes that are gone.

    def _read_log(self, node: str) -> NodeLogContent:
        """Return the content of a node's log; an empty one if the log cannot be read now."""
        try:
            return read_node_log(self._log_path(node))
        except OSError as e:
            log.warning("the node log of %s cannot be read, and is retried: %s", node, e)
            return NodeLogContent()

    def _is_cleaned_up(self, node: str, content: NodeLogContent) -> bool:
        """Return True if nothing runs any more on a node whose pilot is over.

        The batch system that ends a pilot may miss the sessions that its jobs started, if the node supervisor
        did not live to end them. Where the node is this machine, this starts a task that ends them, and
        returns False until that task is done.
        """
        if content.over or not is_on_this_machine(node):
            return True
        if node not in self._cleanups:
            self._cleanups[node] = self._background_tasks.start(
                asyncio.to_thread(end_orphans, self._log_path(node))
            )
        return self._cleanups[node].done()

    def _log_path(self, node: str) -> Path:
        return log_path(self._folder / pilot_of(node), node)
