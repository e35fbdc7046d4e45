"""The commands about a batch system, real or fake: `jpsi queues`, `attach` and `fake`."""

from __future__ import annotations

from .commands import ATTACH, FAKE, QUEUES
