"""Properties of all documents: valid, invalid, and converted."""

from __future__ import annotations

import contextlib
import json
from itertools import pairwise
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

import jpsi
from jobspec_support import EXAMPLES, VALID, example, found, loaded, planned
from jpsi_jobspec.conversion import from_canonical, from_job, to_canonical
from jpsi_jobspec.document.graph import find_cycle
from jpsi_jobspec.document.loader import load
from jpsi_jobspec.document.model import Expression
from jpsi_jobspec.document.problems import Findings, WorkflowError
from jpsi_jobspec.document.shape import as_resources
from jpsi_testing import PYTHON_WORDS, corrupted_documents

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,6}", fullmatch=True)
COUNTS = st.integers(1, 9)
#: Graphs of dependencies.
DEPENDENCIES = st.integers(1, 8).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, size - 1), max_size=3, unique=True), min_size=size, max_size=size
    )
)


@given(DEPENDENCIES)
def test_a_cycle_is_found_if_there_is_one_and_each_member_depends_on_the_next(needs: list[list[int]]) -> None:
    cycle = find_cycle(dict(enumerate(needs)))

    assert all(after in needs[it] for it, after in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    assert len(set(cycle)) == len(cycle)
    assert bool(cycle) == _holds_cycle(needs)


def _holds_cycle(needs: list[list[int]]) -> bool:
    """Return True if nodes remain after repeatedly removing those without remaining dependencies."""
    left = set(range(len(needs)))
    while free := {it for it in left if not left & set(needs[it])}:
        left -= free
    return bool(left)


@given(DEPENDENCIES)
def test_tasks_are_ordered_by_their_dependencies_or_the_cycle_is_reported(
    needs: list[list[int]],
) -> None:
    needs = [[it for it in needed if it != number] for number, needed in enumerate(needs)]
    tasks = [
        {"name": f"t{number}", "command": "a", "resources": "r", "depends_on": [f"t{it}" for it in needed]}
        for number, needed in enumerate(needs)
    ]
    text = _document({"r": {"type": "core", "count": 1}}, tasks)

    cycles = [it for it in found(text) if it.code == "JS051"]

    assert bool(cycles) == _holds_cycle(needs)
    if cycles:
        path = [int(it[1:]) for it in cycles[0].says.rpartition(": ")[2].split(" -> ")]
        assert path[0] == path[-1]
        assert all(after in needs[it] for it, after in pairwise(path))
        return
    place = {it.id: number for number, it in enumerate(planned(text).entries)}
    assert all(place[f"t{it}"] < place[f"t{number}"] for number in range(len(needs)) for it in needs[number])


def _document(resources: dict[str, Any], tasks: list[dict[str, Any]], **more: Any) -> str:
    return yaml.safe_dump({"version": 1, "resources": resources, "tasks": tasks, **more}, sort_keys=False)


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), min_size=1, max_size=3))
def test_an_expression_survives_a_round_trip(alternatives: list[list[str]]) -> None:
    expression = Expression(tuple(map(tuple, alternatives)))
    resources = {name: {"type": "core", "count": 1} for name in expression.names}

    document, _ = loaded(_document(resources, [{"command": ["a"], "resources": str(expression)}]))

    assert document.tasks[0].resources == expression


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
SHAPES = st.fixed_dictionaries(
    {"nodes": st.none() | COUNTS, "slots": COUNTS, "cores": COUNTS, "gpus": st.integers(0, 3)}
)


def _resource(shape: dict[str, Any]) -> dict[str, Any]:
    inside = [{"type": "core", "count": shape["cores"]}]
    inside += [{"type": "gpu", "count": shape["gpus"]}] if shape["gpus"] else []
    slot = {"type": "slot", "count": shape["slots"], "with": inside}
    return slot if shape["nodes"] is None else {"type": "node", "count": shape["nodes"], "with": [slot]}


@given(
    shape=SHAPES,
    command=st.tuples(NAMES, WORDS, WORDS),
    variables=st.dictionaries(st.sampled_from("ABC"), WORDS),
    seconds=st.integers(0, 10**6),
)
def test_a_task_survives_a_round_trip_through_a_jobspec(
    shape: dict[str, Any], command: tuple[str, ...], variables: dict[str, str], seconds: int
) -> None:
    attributes = {"duration": seconds, "cwd": "/data", "environment": variables}
    task = {"name": "fit", "command": list(command), "resources": "r", "attributes": attributes}
    (entry,) = planned(_document({"r": _resource(shape)}, [task])).entries

    jobspec = to_canonical(entry)
    back = from_canonical(json.dumps(jobspec.content), "job.json")
    (again,) = planned(yaml.safe_dump(dict(back.content))).entries

    assert (jobspec.lost, back.lost) == ((), ())
    assert (again.id, again.command, again.shape) == (entry.id, entry.command, entry.shape)
    assert again.attributes == entry.attributes
    assert to_canonical(again) == jobspec


@given(
    processes=COUNTS,
    per_node=st.none() | COUNTS,
    cores=st.none() | COUNTS,
    gpus=st.none() | COUNTS,
    memory=st.none() | st.integers(2**20, 2**40),
)
def test_a_job_document_has_the_same_requests_as_a_workflow(processes: int, **requested: Any) -> None:
    nodes = {"node_count": processes, "processes_per_node": requested["per_node"]}
    resources = jpsi.ResourceSpecV1(
        **(nodes if requested["per_node"] else {"process_count": processes}),
        cpu_cores_per_process=requested["cores"],
        gpu_cores_per_process=requested["gpus"],
        memory=requested["memory"],
    )
    spec = jpsi.JobSpec("app", ["-v"], resources=resources)

    converted = from_job(jpsi.read_document(jpsi.write_document(spec)))
    (entry,) = planned(yaml.safe_dump(dict(converted.content))).entries

    assert entry.shape is not None
    again = as_resources(entry.shape)
    assert again.computed_process_count == resources.computed_process_count
    assert again.node_count == resources.node_count
    assert (again.cpu_cores_per_process or 1) == (requested["cores"] or 1)
    assert (again.gpu_cores_per_process or 0) == (requested["gpus"] or 0)
    assert 0 <= (again.memory or 0) - (requested["memory"] or 0) < resources.computed_process_count


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.floats()
    | WORDS
    | st.sampled_from(("no", "1:30", "a|b")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES | WORDS, inner, max_size=2),
    max_leaves=4,
)
#: Values that replace others in documents, at a place that a number chooses.
INVALID_VALUES = st.tuples(st.sampled_from([*VALID, "17-nested"]), st.integers(0, 200), ANYTHING)


@given(st.sampled_from(VALID).flatmap(lambda name: corrupted_documents(yaml.safe_load(example(name)))))
def test_problems_of_a_document_are_no_python_errors(document: Any) -> None:
    problems = found(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))

    assert not [it for it in map(str, problems) if PYTHON_WORDS.search(it)]


PARAMETERS = """\
version: 1
parameters:
  n: 3
  many: {type: boolean, default: true}
  part: {type: number, default: 0.5}
  who: {type: string}
tasks: [{command: a, resources: r, replicas: "${n}"}]
"""


@given(
    st.dictionaries(st.sampled_from(["n", "many", "part", "who", "self"]), st.text(max_size=4), max_size=4),
    corrupted_documents(yaml.safe_load(PARAMETERS)),
)
def test_problems_of_a_parameter_are_no_python_errors(given: dict[str, str], document: Any) -> None:
    findings = Findings("flow.yaml")

    with contextlib.suppress(WorkflowError):
        load(yaml.safe_dump(document, allow_unicode=True), findings, given)

    assert not [str(it) for it in findings.errors if PYTHON_WORDS.search(str(it))]


@given(corrupted_documents(dict(to_canonical(planned(example("00-spack-and-ior")).entries[1]).content)))
def test_a_jobspec_that_was_changed_anywhere_is_converted_or_refused(jobspec: Any) -> None:
    try:
        from_canonical(json.dumps(jobspec), "job.json")
    except jpsi.InvalidJobException as e:
        assert not PYTHON_WORDS.search(str(e))  # noqa: PT017  that it is nothing else is what is tested


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [it for key, inner in items for it in ((*path, key), *_places(inner, (*path, key)))]


@given(INVALID_VALUES)
def test_a_document_that_was_changed_anywhere_is_planned_or_refused_with_a_position(
    corrupted_documents: tuple[str, int, Any],
) -> None:
    name, number, value = corrupted_documents
    content = yaml.safe_load(example(name))
    places = _places(content)
    *way, last = places[number % len(places)]
    target = content
    for step in way:
        target = target[step]
    target[last] = value
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)

    problems = found(text)

    assert all(it.says and it.do for it in problems)
    assert not [it for it in map(str, problems) if PYTHON_WORDS.search(it)]
    if not any(it.is_error for it in problems):
        planned(text)


@given(st.text(st.sampled_from("-: \n[]{}&*!|>'\"%@`,?#ab1\t"), max_size=40) | st.binary(max_size=20))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    text = text.decode("latin-1") if isinstance(text, bytes) else text

    try:
        loaded(text)
    except WorkflowError as e:
        assert e.errors  # noqa: PT017  that it is nothing else is what is tested


def test_there_are_documents_to_corrupt() -> None:
    assert len(list(EXAMPLES.glob("*.yaml"))) == 21
