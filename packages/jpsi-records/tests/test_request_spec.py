from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from jpsi import DocumentWarning
from jpsi_records.errors import InvalidRequestError
from jpsi_records.model.request_spec import read_request_spec, write_request_spec
from jpsi_testing import PYTHON_WORDS, corrupted_documents
from spec_strategies import COMPUTATIONS, DEFAULTS, PLACEMENTS


@given(COMPUTATIONS, PLACEMENTS)
def test_a_request_spec_is_read_back_from_its_document(
    computation: dict[str, Any], placement: dict[str, Any]
) -> None:
    spec = read_request_spec({**computation, "placement": placement})

    assert read_request_spec(json.loads(json.dumps(write_request_spec(spec)))) == spec


def test_defaults_are_not_written() -> None:
    assert write_request_spec(read_request_spec({"command": ["true"], **DEFAULTS})) == {"command": ["true"]}


def test_all_problems_are_reported_together() -> None:
    document = {
        "command": [],
        "environment": {"A=": "b", "JPSI_ROOT": "x"},
        "cwd": "../up",
        "processes": 0,
        "runtime_constraints": {"internet": True, "ram": [2, 1]},
        "mounts": {
            "in": {"kind": "tmp"},
            "/": {"kind": "tmp"},
            "/b": {"kind": "collection", "digest": "x", "name": "y", "path": "/../z"},
            "stdin": {"kind": "tmp"},
            "stdout": {"kind": "text", "content": "a"},
        },
        "placement": {"duration": -1, "custom_attributes": {"qos": 1}},
    }

    with pytest.raises(InvalidRequestError) as raised:
        read_request_spec(document)

    message = "\n".join(raised.value.problems)
    for word in (
        *("command", "'A='", "JPSI_ROOT", "cwd", "processes", "'internet'", "ram", "in:", "/:", "stdin"),
        *("stdout", "by digest and by name", "sha256", "goes up", "duration", "'qos'"),
    ):
        assert word in message


@pytest.mark.clause("records-output")
@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "a request is a mapping"),
        ({}, "command is missing"),
        ({"command": ["a"], "comand": 1}, "comand is not a key of a request; did you mean 'command'"),
        (
            {"command": ["a"], "placement": {"partition": "x"}},
            r"placement\.partition is not a key of a request; known are",
        ),
        ({"command": ["a"], "placement": {"retyr": {}}}, "did you mean 'retry'"),
        (
            {"command": ["a"], "placement": {"retry": {"tmeout": 1}}},
            r"retry\.tmeout is none of .* mean 'timeout'",
        ),
        ({"command": ["a"], "placement": {"warn": ["KILL", 1]}}, "warn must be one of HUP"),
        ({"command": ["a"], "placement": {"mail": "a b"}}, "mail must be an address"),
        (
            {"command": ["a"], "placement": {"memory": 1 << 20, "memory_per_cpu": 1 << 20}},
            "is given beside memory; give only",
        ),
        ({"command": ["a"], "placement": {"memory_per_gpu": 1 << 20}}, "the job has no GPUs"),
        (
            {"command": ["a"], "placement": {"memory": 4}},
            "placement: memory 4 is a number of bytes, too few for any job: 4 GiB are 4294967296",
        ),
        (
            {"command": ["a"], "placement": {"memory": "4G"}},
            "placement: memory must be a whole number of bytes, such as 4294967296, not '4G'",
        ),
        ({"command": ["a"], "placement": {"gpus": "4G"}}, "placement: gpus must be a whole number, not"),
        ({"command": ["a"], "placement": {"container": {}}}, "a request; write container_image"),
        ({"command": ["a"], "environment_setup": []}, "a request; name a container_image"),
        ({"command": ["a"], "reuse": "maybe"}, "prefer, never, only"),
        ({"command": ["a"], "mounts": {"/a": {"kind": "keep"}}}, "'keep'"),
        ({"command": ["a"], "mounts": {"/a": {"kind": "text", "contents": 1}}}, "contents"),
        ({"command": ["a"], "mounts": {"/a": {"kind": "tmp"}, "/a/b": {"kind": "tmp"}}}, "inside another"),
        ({"command": ["a"], "output_path": "/out"}, "no mount"),
        ({"command": ["a"], "mounts": {"stdout": {"kind": "file", "path": "/o"}}}, "can be written"),
        ({"command": ["a"], "output_globs": ["*"]}, "output_path, which is not given"),
        ({"command": ["a"], "runtime_constraints": {"vcpus": [2, None]}}, "vcpus is 1"),
        ({"command": ["a"], "runtime_constraints": {"ram": 10**400}}, "ram is true, false, a number"),
        ({"command": ["a"], "max_age": 10**400}, "max_age must be a number of seconds"),
        ({"command": ["a"], "placement": {"duration": 10**400}}, "duration must be a number of seconds"),
        ({"command": ["a"], "filters": ["exit_code", "=", 10**400]}, "exit_code = cannot be"),
        ({"command": ["cat", "/a/b"], "mounts": {"/a": {"kind": "tmp"}}}, r"write \$\{JPSI_ROOT\}/a/b"),
        (
            {"command": ["a"], "environment": {"A": "/a"}, "mounts": {"/a": {"kind": "tmp"}}},
            "environment: A: /a is a place below the root",
        ),
    ],
    ids=lambda it: str(it)[:80],
)
def test_each_problem_is_reported(document: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        read_request_spec(document)


@pytest.mark.clause("records-arvados")
def test_unknown_keys_are_ignored_with_a_warning_for_each_if_lenient() -> None:
    document = {"command": ["a"], "muonts": {}, "placement": {"gpus": 2, "durration": 3}}

    with pytest.raises(InvalidRequestError, match="muonts"):
        read_request_spec(document)
    with pytest.warns(DocumentWarning) as caught:
        spec = read_request_spec(document, lenient=True)

    assert spec == read_request_spec({"command": ["a"], "placement": {"gpus": 2}})
    assert [str(it.message) for it in caught] == [
        "muonts is not a key of a request; did you mean 'mounts'?",
        "placement.durration is not a key of a request; did you mean 'duration'?",
    ]
    assert {it.filename for it in caught} == {__file__}
    assert "muonts" in document, "the document is not changed"


def test_the_words_of_the_draft_are_understood() -> None:
    spec = read_request_spec(
        {
            "command": ["grep", "x"],
            "mounts": {
                "/src": {"kind": "git_tree", "git-url": "/r", "commit_range": "a..b"},
                "/out": {"kind": "collection"},
                "stdout": {"kind": "regular_file", "path": "/out/a"},
            },
            "output_path": "/out",
            "runtime_constraints": {"ram": 12000000000, "vcpus": [1, None]},
        }
    )

    assert spec.recorded == {"vcpus": 1, "ram": 12000000000}


def test_values_that_no_document_can_express_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="not Unicode"):
        read_request_spec({"command": ["echo", "\ud800"]})


@pytest.mark.clause("records-keep")
def test_the_root_cannot_be_mounted() -> None:
    with pytest.raises(InvalidRequestError, match="says nothing of what it depends on"):
        read_request_spec({"command": ["a"], "mounts": {"/keep": {"kind": "keep"}}})


REQUEST = {
    "command": ["true"],
    "environment": {"A": "b"},
    "processes": 2,
    "topology": "any",
    "purity": "declared",
    "runtime_constraints": {"ram": [1, 9 << 20]},
    "filters": [["created_at", ">", "2026-01-01"]],
    "after": ["x"],
    "max_age": 3,
    "mounts": {
        "/in": {"kind": "collection", "name": "y", "path": "/z", "writable": True},
        "/one": {"kind": "collection_file", "name": "y", "path": "/z"},
        "/of": {"kind": "output", "request": "x"},
        "/tree": {"kind": "git_tree", "url": "https://example.org/a", "revisions": "a..b"},
        "/blob": {"kind": "blob", "digest": "sha256:" + "0" * 64},
        "/tmp": {"kind": "tmp", "capacity": 4},
        "/text": {"kind": "text", "content": "a"},
        "/json": {"kind": "json", "content": [1]},
        "stdout": {"kind": "file", "path": "/in/out"},
    },
    "placement": {
        "duration": 3,
        "custom_attributes": {"slurm.qos": 1},
        "memory": 5 << 20,
        "warn": ["USR1", 3],
        "retry": {"out_of_memory": 1, "grow_memory": [6 << 20], "75": 2},
        "mail": "ann@example.org",
    },
}


def test_the_document_under_test_is_otherwise_valid() -> None:
    assert read_request_spec(REQUEST).computation.command == ("true",)


@given(corrupted_documents(REQUEST))
def test_problems_of_a_request_are_not_python_errors(document: Any) -> None:
    try:
        read_request_spec(document)
    except InvalidRequestError as e:
        assert not PYTHON_WORDS.search(str(e))  # noqa: PT017  that it is nothing else is what is tested


@pytest.mark.parametrize(
    ("mount", "message"),
    [
        ({"kind": "tmp", "size": 3}, "says 'size', which mounts of kind tmp do not have; they have capacity"),
        ({"kind": "collection", "writable": []}, r"writable must be true or false, not \[\]"),
        ({"kind": "blob", "digest": None}, "digest must be sha256: and 64 hexadecimal digits, not None"),
        ({"kind": "text"}, "does not say content, which mounts of kind text must have"),
        ({"kind": "output", "self": "x"}, "does not say request, which mounts of kind output must have"),
    ],
    ids=["unknown", "no flag", "no digest", "missing", "a word of Python"],
)
def test_unknown_and_missing_members_of_a_mount_are_named(mount: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        read_request_spec({"command": ["true"], "mounts": {"in": mount}})
