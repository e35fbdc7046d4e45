"""The tests on a real OAR, which `nox -s e2e_oar` starts."""

from __future__ import annotations

from jpsi_testing.long_option import pytest_addoption, pytest_collection_modifyitems, pytest_configure

# pytest collects them here
__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]
