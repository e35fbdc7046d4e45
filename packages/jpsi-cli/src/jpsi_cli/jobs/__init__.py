"""The commands about jobs on disk: `jpsi ls`, `show`, `explain`, `wait`, `logs`, `cancel`, `top` and others.

They select jobs by the words of the user, recall them through their executors, and show or change them.
"""

from __future__ import annotations

from .commands import CANCEL, EXPLAIN, HOLD, LOGS, LS, RELEASE, SHOW, TOP, USAGE, WAIT
