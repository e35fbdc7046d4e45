"""The tests on a real Grid Engine; `nox -s e2e_gridengine` brings it up."""

from __future__ import annotations

from jpsi_testing.long_option import pytest_addoption, pytest_collection_modifyitems, pytest_configure

# pytest finds them here
__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]
