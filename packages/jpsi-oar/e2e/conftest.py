"""The tests on a real OAR, which `nox -s e2e_oar` starts."""

from __future__ import annotations

import pytest

from jpsi_testing import long_option
from jpsi_testing.long_option import pytest_addoption, pytest_configure

# pytest collects them here
__all__ = ["pytest_addoption", "pytest_configure"]

# A job takes OAR ten seconds: without `--long`, these tests of the classes run.
_SHORT = frozenset(
    {
        "test_a_cancelled_job_that_exits_0_is_canceled",
        "test_a_killed_client_loses_no_job",
        "test_a_killed_server_loses_no_job[1]",
        "test_a_running_job_knows_its_native_id",
        "test_an_unknown_id_never_becomes_completed",
        "test_each_of_many_jobs_has_its_own_spec",
        "test_the_environment_is_inherited_or_not",
    }
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip long tests unless the option is given; in a class, all but a few are."""
    for item in items:
        if isinstance(item, pytest.Function) and item.cls and not _SHORT & {item.name, item.originalname}:
            item.add_marker(pytest.mark.long)
    long_option.pytest_collection_modifyitems(config, items)
