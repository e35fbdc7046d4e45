"""Fields of jobs in documents of other formats."""

from __future__ import annotations

from typing import Any

import pytest

from jpsi_engine import JOB_FIELDS, job_field_problems


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"queue_name": "auto", "qos": "high", "mail": "end:ann@example.org", "licenses": "matlab:2"},
        {"warn": ["USR1", 60]},
        {"retry": {"out_of_memory": 2, "grow_memory": 2, "timeout": 1, "grow_duration": [1200], 75: 1}},
        {"environment_setup": ["module:gcc/12", "venv:~/env"]},
        {"container": {"image": "docker://debian", "binds": ["/data:/in:ro"], "environment": {"A": "b"}}},
    ],
    ids=str,
)
def test_fields_as_in_job_documents_are_valid(content: dict[str, Any]) -> None:
    assert job_field_problems(content) == []
    assert content.keys() <= {*JOB_FIELDS}


@pytest.mark.parametrize(
    ("content", "path", "sentence"),
    [
        ({"qos": 3}, "qos", "must be text, not 3"),
        ({"warn": ["KILL", 60]}, "warn", "must be one of HUP"),
        ({"mail": "ann and bob"}, "mail", "must be an address"),
        ({"retry": {"out_of_memroy": 1}}, "retry.out_of_memroy", "did you mean 'out_of_memory'?"),
        ({"retry": {"timeout": "often"}}, "retry.timeout", "must be how often, a whole number, not 'often'"),
        ({"retry": {"grow_memory": 2}}, "retry.grow_memory", "has no effect without out_of_memory"),
        ({"environment_setup": ["modul:gcc"]}, "environment_setup[0]", "must be module:NAME"),
        ({"container": {"image": "a", "bind": []}}, "container.bind", "did you mean 'binds'?"),
        ({"container": {}}, "container.image", "is missing"),
        ({"qeue_name": "long"}, "qeue_name", "did you mean 'queue_name'?"),
    ],
    ids=str,
)
def test_a_problem_has_the_path_of_its_field(content: dict[str, Any], path: str, sentence: str) -> None:
    ((found, says),) = job_field_problems(content)

    assert found == path
    assert sentence in says
