"""`jpsi doctor`.

Examines an executor, runs probe jobs on it, judges the facts, and says what to configure.
"""

from __future__ import annotations

from .commands import DOCTOR
