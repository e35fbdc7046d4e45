"""Conversion between workflows and canonical jobspecs, with reports of losses."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

import jpsi
from jobspec_support import example, planned
from jpsi_jobspec.conversion import from_canonical, to_canonical
from jpsi_jobspec.planning.site import Site

FLUX: dict[str, Any] = {
    "version": 1,
    "resources": [
        {
            "type": "node",
            "count": 2,
            "with": [{"type": "slot", "label": "task", "count": 2, "with": [{"type": "core", "count": 3}]}],
        }
    ],
    "tasks": [{"command": ["app", "-v"], "slot": "task", "count": {"per_slot": 1}}],
    "attributes": {
        "system": {"duration": 60, "cwd": "/data", "environment": {"A": "b"}, "job": {"name": "fit"}}
    },
}


def test_a_jobspec_survives_a_round_trip() -> None:
    converted = from_canonical(json.dumps(FLUX), "job.json")

    (entry,) = planned(yaml.safe_dump(dict(converted.content))).entries

    assert converted.lost == ()
    assert to_canonical(entry).content == FLUX
    assert to_canonical(entry).lost == ()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"tasks": [{"command": ["a"], "slot": "task", "count": {"total": 3}}]}, "tasks[0].count is"),
        ({"attributes": {"system": {"queue": "x"}}}, "attributes.system.queue has no place"),
        ({"resources": [{"type": "slot", "count": {"min": 2, "max": 4}}]}, "count is a range"),
        ({"resources": [{"type": "slot", "count": 1, "id": 4}]}, "resources[0].id has no meaning"),
    ],
)
def test_losses_from_a_jobspec_are_listed(change: dict[str, object], sentence: str) -> None:
    lost = from_canonical(json.dumps({**FLUX, **change}), "job.json").lost

    assert any(sentence in it for it in lost)


@pytest.mark.parametrize("text", ["[", "3", "{}", '{"resources": [], "tasks": []}'])
def test_a_malformed_jobspec_is_refused(text: str) -> None:
    with pytest.raises(jpsi.InvalidJobException, match=r"^job\.json: it is "):
        from_canonical(text, "job.json")


def test_losses_of_a_workflow_are_listed() -> None:
    first, second = planned(example("00-spack-and-ior"), Site()).entries

    assert to_canonical(first).content["resources"][0]["with"][0]["with"] == [{"type": "core", "count": 4}]
    assert to_canonical(second).lost[0] == "its dependency is left out: build (ok)"
    (many,) = planned(example("07-count"), Site(is_remote=True)).entries
    assert "it is one of 4 replicas" in to_canonical(many).lost


def test_user_attributes_of_the_document_are_kept() -> None:
    back = from_canonical(json.dumps({**FLUX, "attributes": {**FLUX["attributes"], "user": {"a": [1]}}}), "j")
    (entry,) = planned(yaml.safe_dump(dict(back.content))).entries

    assert to_canonical(entry, back.content["user"]).content["attributes"]["user"] == {"a": [1]}
