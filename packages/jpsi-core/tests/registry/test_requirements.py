"""Whether a distribution can do with the core that runs."""

from __future__ import annotations

import pytest

from jpsi.registry.requirements import unmet


@pytest.mark.parametrize(
    ("requirement", "core", "is_unmet"),
    [
        ("jpsi-core", "1", False),
        ("jpsi-core>=1", "1", False),
        ("jpsi_core (>=2)", "1", True),
        ("JPSI.core [testing] ~=0.1", "1", True),
        ("jpsi-core>=1", "2.0.dev1", False),
        ("jpsi-core<2; python_version < '3'", "3", False),
        ("jpsi-core<2; python_version >= '3'", "3", True),
        ("jpsi-core<2; extra == 'test'", "3", False),
        ("jpsi-core-extras>=9", "1", False),
        ("numpy>=9", "1", False),
        ("jpsi-core>=9", None, False),
        ("jpsi-core>=9", "unknown", False),
        ("jpsi-core @ file:///x", "1", False),
    ],
)
def test_requirement(requirement: str, core: str | None, is_unmet: bool) -> None:
    assert (unmet(["other", requirement], core) is not None) is is_unmet


def test_requirement_that_is_none_is_told() -> None:
    assert unmet(["jpsi-core>>1"], "1") == "its requirement 'jpsi-core>>1' cannot be understood"
