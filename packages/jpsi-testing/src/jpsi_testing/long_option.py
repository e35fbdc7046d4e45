"""Adds the option `--long` to pytest, which runs long tests.

The conftest.py of a test suite, such as those on real batch systems, imports these hooks or calls them.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--long", action="store_true", help="run everything, with many repetitions")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks of tests on real systems."""
    config.addinivalue_line("markers", "long: takes long; runs with --long")


def pytest_collection_modifyitems(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Skip long tests unless the option is given."""
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="takes long; --long runs it"))


@pytest.fixture(scope="session")
def is_long(pytestconfig: pytest.Config) -> bool:
    """Return True if the option is given."""
    return bool(pytestconfig.getoption("--long"))
