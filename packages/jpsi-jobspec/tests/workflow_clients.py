"""Clients that run workflows while a test goes on."""

from __future__ import annotations

from forked_jpsi import start_jpsi
from jpsi_testing.forks import ForkedProcess


def client(*arguments: str) -> ForkedProcess:
    """Start another process, a fork, with a workflow command."""
    return start_jpsi("workflow", *arguments)
