"""The tests on a real Grid Engine; `nox -s e2e_gridengine` brings it up."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also what takes a minute or more")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes long; runs with --long")
    config.addinivalue_line("markers", "alone: nothing runs beside it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long."""
    for item in items:
        if item.get_closest_marker("long") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="takes long; --long runs it"))
