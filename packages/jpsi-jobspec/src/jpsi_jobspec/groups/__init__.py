"""Groups.

Runs the inside of an allocation to its end.

This room has executors for one node or several, the restart of an allocation and its end, and the cleanup
after a group whose job was killed. The programs that the job of a group runs, `inside` and `group_run`, stand
outside of the rooms.
"""

from __future__ import annotations

from .executors import open_executor
from .lifetime import TIMEOUT, begin_life, time_to_run, watch_for_end
from .orphans import end_orphans, mark_lost
