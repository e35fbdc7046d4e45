"""The command `jpsi doctor`: runs probe jobs on an executor, judges the facts, and says what to configure."""

from __future__ import annotations

from .commands import DOCTOR
