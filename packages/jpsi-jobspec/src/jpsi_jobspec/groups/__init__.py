"""Groups.

Runs the inside of an allocation to its end.

The inside of an allocation are the tasks of a group, which run in the one job of the group. This package has
executors for one node or several, the restart of an allocation and its end, and the cleanup after a group
whose job was killed. The programs that the job of a group runs, `inside` and `group_run`, stand outside of
it.
"""

from __future__ import annotations

from .executors import open_executor
from .lifetime import TIMEOUT, begin_life, time_to_run, watch_for_end
from .orphans import end_orphans, mark_lost
