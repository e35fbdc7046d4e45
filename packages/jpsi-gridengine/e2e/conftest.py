"""The tests on a real Grid Engine; `nox -s e2e_gridengine` brings it up."""

from __future__ import annotations

from jpsi.testing.long import (  # noqa: F401  pytest finds them here
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
)
