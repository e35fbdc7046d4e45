"""Arrays on disk: complete or missing, with elements like single jobs, and removed as a whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jpsi_engine import host
from jpsi_engine.spool.arrays import ArrayFiles, ArrayMember, _line_starts, adopt, read_link
from jpsi_engine.spool.spool import Spool
from jpsi_testing import json_values
from jpsi_testing.threads import in_this_thread

NOW = 1_767_225_600.0
DAY = 86_400.0
COMMON: dict[str, Any] = {"id": "x", "time": "t", "spec": {"executable": "/bin/sh", "name": "n"}}


def elements(count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"job{it}", "attempt": 1, "directory": f"/d{it}", "spec": {"arguments": [str(it)]}}
        for it in range(1, count + 1)
    ]


def write(spool: Spool, native_id: str | None = "17") -> None:
    """Make an array of three jobs."""
    lock = spool.arrays.prepare("x", COMMON, elements(3), "exit 1\n", ["a\n", "b\n"])
    if native_id is not None:
        spool.started(lock, native_id)
    os.close(lock)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "spool")
    made.open()
    return made


@settings(deadline=None)
@given(
    specs=st.lists(st.dictionaries(st.text(max_size=5), json_values(), max_size=3), min_size=1, max_size=5),
    native_id=st.sampled_from([None, "17", "17[].server"]),
)
def test_an_array_survives_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, specs: list[dict[str, Any]], native_id: str | None
) -> None:
    spool = Spool(tmp_path_factory.mktemp("spool"))
    spool.open()
    own = [{"id": f"{index}", "attempt": 1, "spec": spec} for index, spec in enumerate(specs)]
    lock = spool.arrays.prepare("x", COMMON, own, "", [])
    if native_id is not None:
        spool.started(lock, native_id)
    os.close(lock)

    array = spool.arrays.read("x")

    assert array is not None
    assert array.native_id == native_id
    assert spool.arrays.read_native_id("x") == native_id
    for index, spec in enumerate(specs, 1):
        expected = {**COMMON, **own[index - 1], "spec": {**COMMON["spec"], **spec}, "count": len(specs)}
        assert array.content(index) == expected
        assert spool.arrays.read_element(ArrayMember("x", index)) == expected


def test_an_incomplete_array_does_not_exist(spool: Spool) -> None:
    write(spool, native_id=None)
    path = Path(spool.arrays.folder("x"), "intent.json")
    whole = path.read_bytes()

    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert spool.arrays.read("x") is None
        assert spool.arrays.read_native_id("x") is None, whole[:length]


def test_an_array_whose_write_fails_does_not_exist(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("jpsi_engine.host.write_new", full)
    with pytest.raises(OSError, match="No space left"):
        write(spool)

    assert spool.arrays.names() == []


def test_everything_is_private(spool: Spool) -> None:
    write(spool)

    folder = Path(spool.arrays.folder("x"))
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())} == {0}
    names = {path.name for path in folder.iterdir()}
    assert names == {"elements.0", "elements.1", "intent.json", "run"}


def test_an_array_that_is_being_submitted_is_locked(spool: Spool) -> None:
    lock = spool.arrays.prepare("x", COMMON, elements(1), "", [])
    with spool.arrays.hold_lock("x", 0) as may_judge:
        assert not may_judge
    os.close(lock)

    with spool.arrays.hold_lock("x", 0) as may_judge:
        assert may_judge
    with spool.arrays.hold_lock("missing", 0) as may_judge:
        assert not may_judge


def test_an_array_is_revoked_once(spool: Spool) -> None:
    write(spool)

    assert [spool.arrays.revoke("x"), spool.arrays.revoke("x")] == [True, False]
    assert spool.arrays.names() == ["x"]
    spool.arrays.give_up("x", "it did not answer")
    assert spool.arrays.names() == []


def test_the_folder_of_an_element_links_to_its_spec(spool: Spool) -> None:
    write(spool)

    spool.adopt("job2", 1, ArrayMember("x", 2))
    spool.adopt("job2", 1, ArrayMember("x", 2))

    intent = spool.last_intent("job2")
    assert intent is not None
    assert (intent.attempt, intent.native_id, intent.place) == (1, None, ArrayMember("x", 2))
    assert intent.content["spec"] == {"executable": "/bin/sh", "name": "n", "arguments": ["2"]}
    assert intent.content["directory"] == "/d2"


def test_an_attempt_is_either_a_single_job_or_an_array_element(spool: Spool) -> None:
    """Two processes may submit the same job at the same time."""
    for job_id in ("job1", "job2"):
        os.close(spool.prepare(job_id, 1, {"id": job_id}, "exit 1\n"))
    spool.link_retry("job1", 2, ArrayMember("x", 1))
    os.close(spool.prepare("job2", 2, {"id": "job2"}, "exit 1\n"))

    with pytest.raises(FileExistsError):
        spool.prepare("job1", 2, {"id": "job1"}, "exit 1\n")
    with pytest.raises(FileExistsError):
        spool.link_retry("job2", 2, ArrayMember("x", 2))
    with pytest.raises(FileExistsError):
        spool.link_retry("job1", 2, ArrayMember("y", 1))

    assert not spool.has_intent("job1", 2)
    assert spool.places("job1") == {2: ArrayMember("x", 1)}


def test_the_offsets_of_elements_are_cached(spool: Spool) -> None:
    """Without the cache, reading a thousand elements would read a million lines."""
    write(spool)
    before = _line_starts.cache_info().misses

    found = [spool.arrays.read_element(ArrayMember("x", index)) for index in (3, 1, 2, 3, 4, 5)]

    assert [it and it["id"] for it in found] == ["job3", "job1", "job2", "job3", None, None]
    assert _line_starts.cache_info().misses == before + 1


def test_a_job_submitted_again_as_a_single_job_is_no_element(spool: Spool) -> None:
    write(spool)
    spool.adopt("job2", 1, ArrayMember("x", 2))

    os.close(spool.prepare("job2", 2, {"id": "job2"}, "exit 1\n"))

    intent = spool.last_intent("job2")
    assert intent is not None
    assert (intent.attempt, intent.place) == (2, None)
    assert spool.last_attempt("job2") == 2


@pytest.mark.parametrize("text", ["", "x", "x y", "x 1 2", "../x 1", ".. 1", "/x 1", "x 0", "x -1"])
def test_a_malformed_link_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "array.1").write_text(text)

    assert read_link(str(tmp_path), 1) is None
    assert read_link(str(tmp_path), 2) is None


def test_a_link_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "array").mkdir()
    assert adopt(str(tmp_path / "job"), 1, ArrayMember("x", 1), str(tmp_path / "array"))
    assert not adopt(str(tmp_path / "job"), 1, ArrayMember("y", 2), str(tmp_path / "array"))

    assert read_link(str(tmp_path / "job"), 1) == ArrayMember("x", 1)


@pytest.mark.parametrize("text", ["", "x", "x one\n", "x 0\n"])
def test_an_incomplete_link_is_rewritten(tmp_path: Path, text: str) -> None:
    Path(tmp_path / "job").mkdir()
    Path(tmp_path / "job" / "array.1").write_text(text)

    assert not adopt(str(tmp_path / "job"), 1, ArrayMember("x", 1), str(tmp_path / "array"))

    assert read_link(str(tmp_path / "job"), 1) == ArrayMember("x", 1)


@pytest.mark.parametrize("is_there", [True, False], ids=["array", "no array"])
def test_a_folder_has_its_link_from_the_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """A client that is killed in between leaves no folder that does not say which element it is."""
    if is_there:
        (tmp_path / "array").mkdir()
    seen = []
    rename, write_once = os.rename, host.write_once

    def renamed(source: str, target: str) -> None:
        rename(source, target)
        seen.append(read_link(target, 1))

    monkeypatch.setattr(os, "rename", in_this_thread(renamed, os.rename))

    def written(path: str, data: bytes) -> bool:
        seen.append(read_link(str(tmp_path / "job"), 1))
        return write_once(path, data)

    monkeypatch.setattr(host, "write_once", written)

    assert adopt(str(tmp_path / "job"), 1, ArrayMember("x", 1), str(tmp_path / "array"))

    assert seen == [ArrayMember("x", 1) if is_there else None]
    assert read_link(str(tmp_path / "job"), 1) == ArrayMember("x", 1)
    assert not any((tmp_path / "array").glob("*"))


@pytest.mark.parametrize("index", [-4, -2, -1, 0, 4, 5])
def test_an_element_outside_the_array_does_not_exist(spool: Spool, index: int) -> None:
    write(spool)

    assert spool.arrays.read_element(ArrayMember("x", index)) is None


@pytest.mark.parametrize(
    "odd", [{"attempt": "1b"}, {"id": 1}, {"id": "../x"}, {"id": ""}, {"spec": []}, {"attempt": None}]
)
def test_an_array_with_a_malformed_element_does_not_exist(spool: Spool, odd: dict[str, Any]) -> None:
    os.close(spool.arrays.prepare("x", COMMON, [{**elements(1)[0], **odd}], "exit 1\n", ["a\n"]))

    assert spool.arrays.read("x") is None


def test_a_missing_directory_has_no_arrays(tmp_path: Path) -> None:
    assert ArrayFiles(str(tmp_path)).names() == []
