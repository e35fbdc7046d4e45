"""Requirements, evaluated by files about a site: yes, no or unknown, with the reasons."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from jobspec_support import example, found, planned
from jpsi import InvalidJobException
from jpsi_jobspec.document.model import Expression, Requirement
from jpsi_jobspec.document.problems import WorkflowError
from jpsi_jobspec.document.resources import GROUP, get_matcher, is_match
from jpsi_jobspec.planning.requirements import Verdict, evaluate_expression, evaluate_requirement
from jpsi_jobspec.planning.site import Site
from jpsi_jobspec.planning.subsystems import read_subsystem, read_subsystems

SPACK = {
    "graph": {
        "nodes": {
            "spack0": {"metadata": {"type": "package", "attributes": {"name": "lammps", "version": "2.3"}}},
            "spack1": {
                "metadata": {"type": "package", "attributes": {"name": "ior"}, "build": {"cc": "gcc"}}
            },
            "spack2": {"metadata": {"type": "compiler", "attributes": {"name": "gcc"}}},
        }
    }
}
NODES = read_subsystem(json.dumps(SPACK), "spack.json")


def requirement(**given: str) -> Requirement:
    return Requirement(**{"name": "spack", **given})


@pytest.mark.clause("ng-satisfy")
@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"field": "type", "match": "package"}, Verdict.YES),
        ({"field": "type", "match": "package", "attribute": "name", "value": "lammps"}, Verdict.YES),
        ({"field": "type", "match": "package", "attribute": "name", "value": "gcc"}, Verdict.NO),
        ({"attribute": "name", "value": "gcc"}, Verdict.YES),
        ({"attribute": "name", "value": "lam*"}, Verdict.YES),
        ({"attribute": "version", "value": ">=2,<3"}, Verdict.YES),
        ({"attribute": "version", "value": ">=3"}, Verdict.NO),
        ({"field": "build.cc", "match": "gcc"}, Verdict.YES),
        ({"name": "modules", "field": "type", "match": "module"}, Verdict.UNKNOWN),
    ],
)
def test_both_parts_of_a_requirement_must_hold_of_one_node(given: dict[str, str], verdict: Verdict) -> None:
    assert evaluate_requirement(requirement(**given), {"spack": NODES}).verdict is verdict


def test_a_no_names_the_values_that_come_nearest() -> None:
    required = requirement(field="type", match="package", attribute="name", value="lamps")

    (reason,) = evaluate_requirement(required, {"spack": NODES}).reasons

    assert reason == (
        "spack: type=package and name=lamps: no node has that; values of 'name' are: lammps, ior"
    )


def test_an_unknown_names_the_subsystems_that_are_known() -> None:
    (reason,) = evaluate_requirement(requirement(name="net", field="a", match="b"), {"spack": NODES}).reasons

    assert reason.endswith("nothing is known of 'net'; known subsystems: spack")


BLOCKS = {
    "yes": [requirement(field="type", match="package")],
    "no": [requirement(field="type", match="fabric")],
    "unknown": [requirement(name="net", field="a", match="b")],
}


@pytest.mark.parametrize(
    ("alternatives", "verdict"),
    [
        ([("yes",)], "yes"),
        ([("no",), ("yes",)], "yes"),
        ([("unknown",), ("yes",)], "yes"),
        ([("no",), ("unknown",)], "unknown"),
        ([("no",), ("no",)], "no"),
        ([("yes", "unknown")], "unknown"),
        ([("no", "unknown")], "no"),
        ([("yes", "no"), ("yes",)], "yes"),
    ],
    ids=str,
)
def test_an_expression_has_three_values(alternatives: list[tuple[str, ...]], verdict: str) -> None:
    assert (
        evaluate_expression(Expression(tuple(alternatives)), BLOCKS, {"spack": NODES}).verdict.value
        == verdict
    )


@pytest.mark.parametrize(
    ("value", "expected", "is_one"),
    [
        ("a", "a", True),
        ("a", "A", False),
        ("1.10", ">1.9", True),
        ("1.2", "==1.2.0", True),
        ("1.2rc1", "<1.2", True),
        ("2", ">=1,<2", False),
        ("a*", "a*", True),
        ("none", ">=1", False),
    ],
)
def test_values_match_exactly_or_by_a_pattern_or_a_range(value: str, expected: str, is_one: bool) -> None:
    assert is_match(value, expected) is is_one


@pytest.mark.clause("ng-subsystems")
def test_nodes_may_be_a_list_and_files_may_be_named_either_way(tmp_path: Path) -> None:
    as_list = {"graph": {"nodes": [{"id": "0", "metadata": {"type": "module"}}]}}
    (tmp_path / "spack-subsystem.json").write_text(json.dumps(SPACK))
    (tmp_path / "environment-modules").mkdir()
    (tmp_path / "environment-modules" / "graph.json").write_text(json.dumps(as_list))

    subsystems = read_subsystems(tmp_path)

    assert {name: len(nodes) for name, nodes in subsystems.items()} == {"spack": 3, "environment-modules": 1}
    assert subsystems["environment-modules"][0].fields == {"type": "module"}


@pytest.mark.parametrize("text", ["{", "[]", '{"graph": {"nodes": 3}}'])
def test_a_file_that_is_no_graph_is_named(text: str) -> None:
    with pytest.raises(InvalidJobException, match=r"x\.json: it "):
        read_subsystem(text, "x.json")


@pytest.mark.clause("ng-requires-user", "ng-satisfy")
def test_a_task_with_an_unmet_requirement_is_refused() -> None:
    site = Site(subsystems={"spack": NODES[1:], "environment-modules": ()})

    with pytest.raises(WorkflowError) as caught:
        planned(example("05-requires-mended"), site)

    assert [it.code for it in caught.value.errors] == ["JS091"]
    assert "values of 'name' are: ior" in str(caught.value)


@pytest.mark.clause("ng-requires-user", "ng-satisfy")
def test_one_of_several_requirements_is_enough() -> None:
    codes = [it.code for it in found(example("05-requires-mended"), site=Site(subsystems={"spack": NODES}))]

    assert codes == ["JS002"]


def test_a_resource_with_an_unmet_requirement_is_left_out_for_the_next() -> None:
    text = (
        "version: 1\nresources:\n"
        "  fast: {type: node, count: 1, requires: [{name: spack, field: type, match: fabric}]}\n"
        "  slow: {type: node, count: 1}\ntasks: [{command: a, resources: fast|slow}]\n"
    )

    (entry,) = planned(text, Site(subsystems={"spack": NODES})).entries

    assert entry.resources == "slow"
    assert any(it.startswith("'fast' is left out: spack: type=fabric") for it in entry.why)


@pytest.mark.parametrize(
    ("name", "value", "expected", "is_one"),
    [
        ("exact", "a*", "a*", True),
        ("exact", "ab", "a*", False),
        ("glob", "ab", "a*", True),
        ("version", "2.1", ">=2", True),
        ("version", "2.1", "2.1", False),
    ],
)
def test_a_requirement_chooses_the_comparison_of_values(
    name: str, value: str, expected: str, is_one: bool
) -> None:
    nodes = read_subsystem(json.dumps({"graph": {"nodes": {"a": {"metadata": {"v": value}}}}}), "x.json")
    required = requirement(field="v", match=expected, matcher=name)

    assert evaluate_requirement(required, {"spack": nodes}).verdict is (Verdict.YES if is_one else Verdict.NO)


def at_least(value: str, minimum: str) -> bool:
    return float(value) >= float(minimum)


def test_matchers_are_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_point = EntryPoint("at-least", "test_requirements:at_least", GROUP)
    monkeypatch.setattr(
        "jpsi_jobspec.document.resources.entry_points",
        lambda **parameters: EntryPoints([entry_point]).select(**parameters),
    )
    get_matcher.cache_clear()
    parameters = "{type: node, count: 1, requires: [{name: hw, field: gb, match: '8', matcher: at-least}]}"
    text = f"version: 1\nresources: {{r: {parameters}}}\ntasks: [{{command: a, resources: r}}]\n"
    site = Site(subsystems={"hw": read_subsystem('{"graph": {"nodes": [{"metadata": {"gb": 16}}]}}', "hw")})

    assert found(text, site=site) == []
    assert [it.code for it in found(text.replace("'8'", "'32'"), site=site)] == ["JS090"]
    monkeypatch.undo()
    assert [it.code for it in found(text, site=site)] == ["JS080"]
