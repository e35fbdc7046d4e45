"""Whether a distribution can do with the core and the engine that run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

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
    running = {} if core is None else {"jpsi-core": core}

    assert (unmet(["other", requirement], running) is not None) is is_unmet


@pytest.mark.parametrize(
    ("requires", "told"),
    [
        (["jpsi-core>=1,<2", "jpsi-engine>=3"], "it requires jpsi-engine>=3, but jpsi-engine 2.5 runs"),
        (["JPSI_Engine<2", "jpsi-core>=9"], "it requires JPSI_Engine<2, but jpsi-engine 2.5 runs"),
        (["jpsi-engine>=2", "jpsi-core>=9"], "it requires jpsi-core>=9, but jpsi-core 1.5 runs"),
        (["jpsi-engine>=2", "jpsi-core>=1", "jpsi-slurm>=9"], None),
    ],
)
def test_first_that_does_not_fit_is_told(requires: list[str], told: str | None) -> None:
    assert unmet(requires, {"jpsi-core": "1.5", "jpsi-engine": "2.5"}) == told


def test_requirement_that_is_none_is_told() -> None:
    assert (
        unmet(["jpsi-core>>1"], {"jpsi-core": "1"}) == "its requirement 'jpsi-core>>1' cannot be understood"
    )


_RELEASES = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(
    lambda numbers: ".".join(map(str, numbers))
)


@given(version=_RELEASES, bounds=st.lists(st.tuples(st.sampled_from([">=", "<"]), _RELEASES), min_size=1))
def test_plain_bounds_mean_what_packaging_says(version: str, bounds: list[tuple[str, str]]) -> None:
    """They are compared without packaging, which takes longer to import than to find every plugin."""
    specifier = ",".join(operator + release for operator, release in bounds)

    is_unmet = unmet([f"jpsi-core{specifier}"], {"jpsi-core": version}) is not None

    assert is_unmet is not SpecifierSet(specifier).contains(version)
