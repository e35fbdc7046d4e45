"""Groups.

Runs the inside of an allocation to its end.

This room has executors for one node or several, the launch of tasks on several nodes, the restart of an
allocation, the shutdown, and the cleanup after a group whose job was killed. The programs that the job of a
group runs, `inside` and `group_run`, stand outside of the rooms.
"""

from __future__ import annotations

from .executors import open_executor
from .orphans import end_orphans, mark_lost
from .restart import begin_life
from .shutdown import TIMEOUT, time_to_run, watch_for_end
