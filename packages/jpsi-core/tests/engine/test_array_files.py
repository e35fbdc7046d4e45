"""Arrays on disk: whole or not there, each element as if by itself, and gone together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.engine.array_files import ArrayFiles, Place, adopt, read_link
from jpsi.engine.markers import Marker
from jpsi.engine.spool import Spool
from jpsi.engine.tracker import exited_at_all
from jpsi.testing import json_values

NOW = 1_767_225_600.0
DAY = 86_400.0
COMMON: dict[str, Any] = {"id": "x", "time": "t", "spec": {"executable": "/bin/sh", "name": "n"}}


def elements(count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"job{it}", "attempt": 1, "directory": f"/d{it}", "spec": {"arguments": [str(it)]}}
        for it in range(1, count + 1)
    ]


def write(spool: Spool, native_id: str | None = "17") -> None:
    """An array of three jobs."""
    lock = spool.arrays.prepare("x", COMMON, elements(3), "exit 1\n", ["a\n", "b\n"])
    if native_id is not None:
        spool.started(lock, native_id)
    os.close(lock)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "spool")
    made.open()
    return made


@given(
    specs=st.lists(st.dictionaries(st.text(max_size=5), json_values(), max_size=3), min_size=1, max_size=5),
    native_id=st.sampled_from([None, "17", "17[].server"]),
)
def test_what_is_written_is_read(
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
        assert spool.arrays.read_element(Place("x", index)) == expected


def test_an_array_that_was_cut_short_while_it_was_written_is_none(spool: Spool) -> None:
    write(spool, native_id=None)
    path = Path(spool.arrays.folder("x"), "intent.json")
    whole = path.read_bytes()

    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert spool.arrays.read("x") is None
        assert spool.arrays.read_native_id("x") is None, whole[:length]


def test_an_array_that_cannot_be_written_is_not_there(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("jpsi.engine.array_files.write_new", full)
    with pytest.raises(OSError, match="No space left"):
        write(spool)

    assert spool.arrays.names() == []


def test_everything_is_private(spool: Spool) -> None:
    write(spool)

    folder = Path(spool.arrays.folder("x"))
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())} == {0}
    names = {path.name for path in folder.iterdir()}
    assert names == {"elements.0", "elements.1", "intent.json", "run"}


def test_nobody_judges_an_array_that_is_being_submitted(spool: Spool) -> None:
    lock = spool.arrays.prepare("x", COMMON, elements(1), "", [])
    with spool.arrays.judging("x", 0) as may_judge:
        assert not may_judge
    os.close(lock)

    with spool.arrays.judging("x", 0) as may_judge:
        assert may_judge
    with spool.arrays.judging("missing", 0) as may_judge:
        assert not may_judge


def test_an_array_is_revoked_once_and_then_over(spool: Spool) -> None:
    write(spool)

    assert [spool.arrays.revoke("x"), spool.arrays.revoke("x")] == [True, False]
    assert spool.arrays.names() == ["x"]
    spool.arrays.finish("x")
    assert spool.arrays.names() == []


def test_the_folder_of_an_element_tells_what_was_asked_for(spool: Spool) -> None:
    write(spool)

    spool.adopt("job2", 1, Place("x", 2))
    spool.adopt("job2", 1, Place("x", 2))

    intent = spool.last_intent("job2")
    assert intent is not None
    assert (intent.attempt, intent.native_id, intent.place) == (1, None, Place("x", 2))
    assert intent.content["spec"] == {"executable": "/bin/sh", "name": "n", "arguments": ["2"]}
    assert intent.content["directory"] == "/d2"


def test_a_job_that_is_submitted_again_by_itself_is_no_element_any_more(spool: Spool) -> None:
    write(spool)
    spool.adopt("job2", 1, Place("x", 2))

    os.close(spool.prepare("job2", 2, {"id": "job2"}, "exit 1\n"))

    intent = spool.last_intent("job2")
    assert intent is not None
    assert (intent.attempt, intent.place) == (2, None)
    assert spool.last_attempt("job2") == 2


@pytest.mark.parametrize("text", ["", "x", "x y", "x 1 2"])
def test_a_link_that_is_odd_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "array.1").write_text(text)

    assert read_link(str(tmp_path), 1) is None
    assert read_link(str(tmp_path), 2) is None


def test_a_link_is_written_once(tmp_path: Path) -> None:
    adopt(str(tmp_path / "job"), 1, Place("x", 1))
    adopt(str(tmp_path / "job"), 1, Place("y", 2))

    assert read_link(str(tmp_path / "job"), 1) == Place("x", 1)


# -------------------------------------------------------------------------------------------- pruning


def end(spool: Spool, *job_ids: str) -> None:
    """Let jobs have ended, and be consumed."""
    for job_id in job_ids:
        spool.adopt(job_id, 1, Place("x", int(job_id[-1])))
        Path(spool.folder(job_id), f"{job_id}.1.exit.run.0").touch()


def prune(spool: Spool, days: float, keep_count: int = 100) -> set[str]:
    """Prune when so many days have passed; returns what is left."""
    for folder in (*Path(spool.jobs).iterdir(), *Path(spool.arrays.arrays).iterdir()):
        os.utime(folder, (NOW, NOW))
    spool.prune(NOW + days * DAY, 30 * DAY, keep_count, settles)
    assert list(Path(spool.root, "trash").iterdir()) == []
    return {path.name for root in (spool.jobs, spool.arrays.arrays) for path in Path(root).iterdir()}


def settles(markers: Sequence[Marker]) -> bool:
    return exited_at_all(markers)


def test_an_array_and_its_elements_go_together(spool: Spool) -> None:
    write(spool)
    end(spool, "job1", "job2", "job3")

    assert prune(spool, 29) == {"x", "job1", "job2", "job3"}
    assert prune(spool, 31) == set()


def test_elements_stay_while_one_of_them_is_not_final(spool: Spool) -> None:
    """Without its folder, one that is final would look like one that waits."""
    write(spool)
    end(spool, "job1", "job2")

    assert prune(spool, 31) == {"x", "job1", "job2"}


def test_arrays_beyond_the_count_go(spool: Spool) -> None:
    write(spool)
    end(spool, "job1", "job2", "job3")
    for number in range(5):
        os.close(spool.prepare(f"new{number}", 1, {"id": "a"}, "exit 1\n"))
        Path(spool.folder(f"new{number}"), f"new{number}.1.exit.run.0").touch()
    for folder in ("job1", "job2", "job3"):
        os.utime(spool.folder(folder), (NOW, NOW))
    os.utime(spool.arrays.folder("x"), (NOW, NOW))
    for number in range(5):
        os.utime(spool.folder(f"new{number}"), (NOW + DAY, NOW + DAY))

    spool.prune(NOW + 2 * DAY, 30 * DAY, 5, settles)

    assert os.listdir(spool.arrays.arrays) == []  # noqa: PTH208  names are enough
    assert len(os.listdir(spool.jobs)) == 5  # noqa: PTH208


def test_an_array_is_as_old_as_its_youngest_element(spool: Spool) -> None:
    write(spool)
    end(spool, "job1", "job2", "job3")
    os.utime(spool.arrays.folder("x"), (NOW, NOW))
    for number in (1, 2, 3):
        ended = NOW + number * DAY
        os.utime(spool.folder(f"job{number}"), (ended, ended))

    spool.prune(NOW + 32 * DAY, 30 * DAY, 100, settles)
    assert sorted(path.name for path in Path(spool.jobs).iterdir()) == ["job1", "job2", "job3"]
    spool.prune(NOW + 10 * DAY, 30 * DAY, 2, settles)
    assert sorted(path.name for path in Path(spool.jobs).iterdir()) == ["job1", "job2", "job3"]

    spool.prune(NOW + 33 * DAY, 30 * DAY, 100, settles)
    assert list(Path(spool.jobs).iterdir()) == []


def test_an_array_that_came_to_nothing_goes(spool: Spool) -> None:
    write(spool)
    spool.arrays.revoke("x")
    spool.arrays.finish("x")

    assert prune(spool, 29) == {"x"}
    assert prune(spool, 31) == set()


def test_an_array_that_was_cut_short_goes(spool: Spool) -> None:
    write(spool)
    Path(spool.arrays.folder("x"), "intent.json").write_text("{")

    assert prune(spool, 31) == set()


def test_a_job_that_was_submitted_again_outlives_its_array(spool: Spool) -> None:
    write(spool)
    end(spool, "job1", "job2", "job3")
    os.close(spool.prepare("job2", 2, {"id": "job2"}, "exit 1\n"))

    assert prune(spool, 31) == {"x", "job1", "job2", "job3"}
    Path(spool.folder("job2"), "job2.2.exit.run.0").touch()
    assert "x" not in prune(spool, 31)


def test_a_directory_that_is_not_there_holds_no_arrays(tmp_path: Path) -> None:
    assert ArrayFiles(str(tmp_path)).names() == []
