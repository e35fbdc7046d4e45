"""The distributions of this repository agree on what they say of themselves and of each other."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

PACKAGES = Path(__file__).parents[2]
PROJECTS: dict[str, dict[str, Any]] = {
    path.parent.name: tomllib.loads(path.read_text())["project"] for path in PACKAGES.glob("*/pyproject.toml")
}


@pytest.mark.parametrize("name", sorted(PROJECTS))
def test_the_changelog_is_of_the_version(name: str) -> None:
    heading = re.search(r"^## (\S+)", (PACKAGES / name / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert heading is not None
    assert heading[1] == PROJECTS[name]["version"]


@pytest.mark.clause("python-versions")
@pytest.mark.parametrize("name", sorted(PROJECTS))
def test_the_example_of_the_specification_finds_each_version(name: str) -> None:
    """The example of the specification is `get_instance('torque', '>= 0.2')`."""
    assert Version(PROJECTS[name]["version"]) >= Version("0.2")


@pytest.mark.parametrize("name", sorted(PROJECTS))
def test_packages_require_the_current_versions_of_each_other(name: str) -> None:
    extras = PROJECTS[name].get("optional-dependencies", {}).values()
    required = map(Requirement, itertools.chain(PROJECTS[name].get("dependencies", []), *extras))
    own = [it for it in required if it.name in PROJECTS and it.specifier]

    assert [it for it in own if not it.specifier.contains(PROJECTS[it.name]["version"])] == []
    assert [it for it in own if it.specifier.contains("0.1.0")] == []
