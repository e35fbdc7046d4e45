"""The distributions of this repository agree on what they say of themselves and of each other."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
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


@pytest.mark.parametrize("name", sorted(PROJECTS))
def test_each_module_can_be_imported(name: str) -> None:
    source = PACKAGES / name / "src"
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1] != "__main__":
            importlib.import_module(".".join(parts).removesuffix(".__init__"))


# The distributions whose import packages have other names.
DISTRIBUTIONS = {"jpsi": "jpsi-core", "psij": "jpsi-psij", "yaml": "pyyaml"}
# They run where jpsi is not installed, and import the modules beside them.
ALONE = {"jpsi_speak/client.py", "jpsi_testing/fake/client.py"}


class Imports(ast.NodeVisitor):
    """The import packages that a module names, but for type checkers alone."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        body = [] if ast.unparse(node.test) == "TYPE_CHECKING" else node.body
        for statement in (*body, *node.orelse):
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        self.found.update(it.name.partition(".")[0] for it in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and not node.level:
            self.found.add(node.module.partition(".")[0])


def imported_distributions(source: Path) -> Iterator[str]:
    """Yield the distributions that the modules of a folder import, anywhere in them."""
    for path in source.rglob("*.py"):
        imports = Imports()
        imports.visit(ast.parse(path.read_text()))
        others = imports.found - sys.stdlib_module_names
        if str(path.relative_to(source)) in ALONE:
            others -= {it.stem for it in path.parent.glob("*.py")}
        # whoever starts a fake has the test kit
        others -= {"jpsi_testing"} if "fake" in path.parts else set()
        yield from (canonicalize_name(DISTRIBUTIONS.get(it, it)) for it in others)


def test_what_is_imported_if_no_type_checker_runs_is_found() -> None:
    imports = Imports()

    imports.visit(ast.parse("if TYPE_CHECKING:\n import a\nelse:\n import b\nif c:\n import d"))

    assert imports.found == {"b", "d"}


@pytest.mark.parametrize("name", sorted(PROJECTS))
def test_packages_require_what_they_import(name: str) -> None:
    """All packages are tested in one environment, where an import that is not required succeeds."""
    extras = PROJECTS[name].get("optional-dependencies", {}).values()
    required = map(Requirement, itertools.chain(PROJECTS[name].get("dependencies", []), *extras))
    names = {canonicalize_name(it) for it in (name, *(found.name for found in required))}

    assert set(imported_distributions(PACKAGES / name / "src")) - names == set()
