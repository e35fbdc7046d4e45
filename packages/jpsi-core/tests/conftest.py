"""Fixtures for all tests of the core."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from executor_fixtures import config, executor, no_launchers, state_home
from jpsi.registry import loading

__all__ = ["config", "executor", "no_launchers", "state_home"]


@pytest.fixture(autouse=True)
def _path_without_plugins() -> Iterator[None]:
    """Remove the directories of the plugins that a test has loaded from the path."""
    path, added = list(sys.path), set(loading._added)
    yield
    sys.path[:] = path
    loading._added.clear()
    loading._added |= added
