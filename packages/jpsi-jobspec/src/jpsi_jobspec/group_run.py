"""Runs the tasks of a group in its allocation: `python -m jpsi_jobspec.group_run RUN ENTRY LIFE`.

`group_supervisor`, the program of the group's job, starts it. It needs no process outside of the allocation.
It keeps a journal of its own, so that a new process continues after this one was killed. When the group must
end, it ends the tasks that run, and then runs those that clean up.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from jpsi import JobExecutor, JobState

from .document import ONE_SLOT
from .groups import TIMEOUT, begin_life, open_executor, time_to_run, watch_for_end
from .planning import (
    Capacity,
    Entry,
    flatten,
    install_hint,
    is_spread,
    multinode_entries,
    slots_of_nodes,
    usable_engines,
)
from .run_store import CANCELLED, Journal, inner_journal, read_run
from .running import EXIT_CANCELLED, EXIT_TIMEOUT, Driver, exit_code_of, show_output

log = logging.getLogger(__name__)


def main(path: str, entry_id: str, life: str) -> int:
    """Run the tasks of one group of a run, and return the exit code of the group.

    Args:
        path: the folder of the run.
        entry_id: the group.
        life: an id of this start of the allocation's job, unlike that of any other; it begins with the time
            of the start.
    """
    run = read_run(Path(path))
    allocation = next(it for it in run.plan.entries if it.id == entry_id)

    def end(why: str) -> None:
        journal.cancel(reason=CANCELLED if run.is_cancel_requested(entry_id) else why)

    journal = inner_journal(run.path, allocation)
    # a process whose keeper has died is still at work for a while
    with journal.lock(is_waiting=True):
        journal = inner_journal(run.path, allocation)
        is_restarted = begin_life(journal, life, is_wanted=not run.is_cancel_requested(entry_id))
        used = timedelta(seconds=time.time() - float(life.partition(" ")[0]))
        watch_for_end(end, time_to_run(allocation.attributes.duration, used))
        code = _run(journal, allocation, run.plan.target, is_restarted=is_restarted)
    journal.close()
    return code


def _run(journal: Journal, allocation: Entry, target: str, *, is_restarted: bool) -> int:
    nodes = _nodes(allocation)
    launcher = "" if len(nodes) == 1 else JobExecutor(target).system.capabilities.default_launcher
    with open_executor(allocation, nodes, launcher, journal.work) as executor:
        capacity = Capacity(allocation, nodes, can_span=bool(multinode_entries(allocation)))
        # the output of watched tasks is shown outside as well, without lines of this process in between
        is_watched = any(it.is_watched for it in flatten(allocation))

        def report_state(entry: Entry, state: JobState) -> None:
            if not is_watched:
                _show(f"{entry.id}: {state.value}\n".encode(), "stdout")

        Driver(journal, executor, report_state, capacity, is_restarted=is_restarted, show=_show).run()
    code = exit_code_of(journal.all_parts())
    return EXIT_TIMEOUT if code == EXIT_CANCELLED and journal.cancel_reason == TIMEOUT else code


def _nodes(allocation: Entry) -> tuple[int, ...]:
    """Return the number of slots on each node."""
    file = os.environ.get("JPSI_NODEFILE")
    names = Path(file).read_text(encoding="utf-8").split() if file else []
    nodes = slots_of_nodes(allocation.shape or ONE_SLOT, names)
    if len(nodes) > 1 and not is_spread(allocation) and not usable_engines():
        log.warning("the group %s uses the first node alone; %s", allocation.id, install_hint())
        return nodes[:1]
    return nodes


def _show(data: bytes, stream: str) -> None:
    """Write the output of a task as output of the group."""
    # a full disk, or a pipe that no process reads, is no reason to end the group
    with contextlib.suppress(OSError):
        show_output(data, stream)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
