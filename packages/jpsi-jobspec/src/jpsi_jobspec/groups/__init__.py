"""Group runs: the tasks of a group, which run in the one job of the group, its allocation.

The package has executors for one node or several, the restart of an allocation and its end, and the cleanup
after a group whose job was killed. The job of a group runs the programs `group_supervisor` and `group_run`,
which are no part of this package.
"""

from __future__ import annotations

from .executors import open_executor
from .lifetime import TIMEOUT, begin_life, end_orphans, mark_lost, time_to_run, watch_for_end
