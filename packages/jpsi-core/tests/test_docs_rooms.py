"""The page about the rooms, and the lists of the doors, are made from the sources, and lack nothing."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

from jpsi.layers.stack import BATCH_HOOKS

DOCS = Path(__file__).parents[3] / "docs"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


rooms, doors = loaded("rooms"), loaded("doors")


@pytest.mark.parametrize("script", ["rooms", "doors", "backend_hooks"])
def test_the_sources_of_the_pages_have_no_problems(script: str) -> None:
    command = [sys.executable, str(DOCS / f"{script}.py"), "--check"]

    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_backend_must_implement_the_hooks_without_a_default() -> None:
    assert tuple(loaded("backend_hooks").required()) == BATCH_HOOKS


def test_arrows_lead_to_lower_floors() -> None:
    graph = {"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set(), "e": {"d"}}

    floors = rooms.floors(graph)

    assert floors == {"a": 0, "e": 0, "b": 1, "c": 1, "d": 2}
    assert all(floors[low] > floors[node] for node in graph for low in graph[node])


def test_arrows_that_follow_from_others_are_left_out() -> None:
    assert rooms.direct({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_rooms_in_a_circle_are_an_error() -> None:
    with pytest.raises(ValueError, match="in a circle: a, b"):
        rooms.floors({"a": {"b"}, "b": {"a"}, "c": {"a"}})


@pytest.mark.parametrize("what", ["distributions", "jpsi", "jpsi_engine"])
def test_a_picture_has_a_box_for_each_room(what: str) -> None:
    graph = rooms.distributions() if what == "distributions" else rooms.rooms(what)

    picture = ET.fromstring(rooms.picture(what))

    assert len(picture.findall("{*}rect")) == len(graph)


def test_a_file_that_the_page_names_must_be_there() -> None:
    assert rooms.is_there("verdict/batch_verdict.py")
    assert not rooms.is_there("verdict/no_such_verdict.py")


@pytest.mark.parametrize("door", doors.DOORS)
def test_a_list_has_every_name_of_its_door(door: str) -> None:
    module = importlib.import_module(door)

    assert [it.name for it in doors.entries(door)] == list(module.__all__)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Return it.\n\nMore.", "Return it."),
        ("Read a time, e.g. 1h. More.", "Read a time, e.g. 1h."),
        ("Two\nlines. More.", "Two lines."),
        ("", ""),
    ],
    ids=["paragraph", "abbreviation", "lines", "nothing"],
)
def test_the_first_sentence_is_listed(text: str, sentence: str) -> None:
    assert doors.first_sentence(text) == sentence
