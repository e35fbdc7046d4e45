from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi_cli.error_boundary import SelectionError
from jpsi_cli.stored_jobs.selection import select_job, select_jobs, short_ids
from jpsi_engine.spool import ArrayMember
from stored_jobs import stored_job

JOBS = [
    stored_job("aaaa1111", "one", "17"),
    stored_job("aaaa2222", "two", "18"),
    stored_job("17bb3333", "two", "19"),
    stored_job("cccc", "aaaa1111x", None),
]

WORDS = {
    "an id": ("aaaa1111", "aaaa1111"),
    "the beginning of an id": ("aaaa2", "aaaa2222"),
    "a native id": ("18", "aaaa2222"),
    "a native id before the beginning of an id": ("17", "aaaa1111"),
    "a name": ("one", "aaaa1111"),
}


@pytest.mark.parametrize(("word", "job_id"), WORDS.values(), ids=WORDS)
def test_a_word_selects_one_job(word: str, job_id: str) -> None:
    assert [job.id for job in select_jobs([word], JOBS)] == [job_id]


def test_a_name_may_mean_several_jobs() -> None:
    assert [job.id for job in select_jobs(["two"], JOBS)] == ["aaaa2222", "17bb3333"]
    with pytest.raises(SelectionError, match=r"'two' means 2 jobs; .*, such as: jpsi logs 17bb3333\n"):
        select_job("two", JOBS, "jpsi logs")


PLACE = ArrayMember("array", 3)
ELEMENTS = {
    "Slurm": ("4319_3", "4319", ["4319", "4319_3", "4319_[1-3%2]", "4319_[3]"]),
    "PBS": (
        "4319[3].server",
        "4319[].server",
        ["4319", "4319[]", "4319[3]", "4319[].server", "4319[1-3].server"],
    ),
    "LSF": ("4319[3]", "4319", ["4319", "4319[3]", "4319[2-4]"]),
    "Grid Engine": ("4319.3", "4319", ["4319", "4319.3"]),
}


@pytest.mark.parametrize(("native_id", "array", "words"), ELEMENTS.values(), ids=ELEMENTS)
def test_an_array_has_the_words_of_its_batch_system(native_id: str, array: str, words: list[str]) -> None:
    jobs = [
        stored_job("aaaa", "one", native_id, place=PLACE, array_native_id=array),
        stored_job("bbbb", "two", "431"),
    ]

    for word in (*words, "array", "arr"):
        assert [job.id for job in select_jobs([word], jobs)] == ["aaaa"], word
    for word in ("4319_[1-2]", "4319[1-2]", "43", "4319_[2--]"):
        with pytest.raises(SelectionError):
            select_jobs([word], jobs)


def test_a_job_is_selected_once() -> None:
    assert [job.id for job in select_jobs(["19", "17bb", "one"], JOBS)] == ["17bb3333", "aaaa1111"]


USAGE_ERRORS = {
    "nothing": ("zzz", "no job has the id, native id or name 'zzz'; jpsi ls --all shows all"),
    "empty": ("", "no job has the id, native id or name ''; jpsi ls --all shows all"),
    "a beginning twice": (
        "aaaa",
        """\
'aaaa' is the beginning of the ids of 2 jobs; name one of them by its id
  aaaa1111  17  one  slurm  QUEUED
  aaaa2222  18  two  slurm  QUEUED""",
    ),
}


@pytest.mark.parametrize(("word", "message"), USAGE_ERRORS.values(), ids=USAGE_ERRORS)
def test_a_word_that_matches_none_or_several_is_refused(word: str, message: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select_jobs(["one", word], JOBS)
    assert str(caught.value) == message


def test_of_many_candidates_the_newest_are_named() -> None:
    with pytest.raises(SelectionError, match="and 90 older ones") as caught:
        select_jobs(["x"], [stored_job(f"x{number:03}") for number in range(100)])
    assert "x099" in str(caught.value)
    assert "x089" not in str(caught.value)


@given(st.sets(st.text("ab1", min_size=9, max_size=12), max_size=30))
def test_a_short_id_means_its_job_alone(ids: set[str]) -> None:
    short = short_ids(ids)

    assert short.keys() == ids
    for job_id, beginning in short.items():
        assert job_id.startswith(beginning)
        others = [it for it in ids if it.startswith(beginning) and it != job_id]
        # one id may be a prefix of another
        assert beginning == job_id or not others
