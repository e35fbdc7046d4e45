"""Fixtures for all tests of the core."""

from __future__ import annotations

from executor_fixtures import config, executor, no_launchers, state_home

__all__ = ["config", "executor", "no_launchers", "state_home"]
