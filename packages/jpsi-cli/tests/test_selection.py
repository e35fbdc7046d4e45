from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi import JobState
from jpsi_cli.error_boundary import SelectionError
from jpsi_cli.stored_jobs.selection import (
    array_sizes,
    describe_predecessors,
    job_words,
    match_jobs,
    select_job,
    select_jobs,
    select_live_jobs,
    short_ids,
)
from jpsi_engine.job_store import Origin, StoredJob
from jpsi_engine.spool import ArrayMember
from stored_jobs import encoded_end, stored_job

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


def elements(beginning: str, name: str, indices: range, number: int = 3439) -> list[StoredJob]:
    """Return the jobs of an array of Slurm, which counts them from 1."""
    return [
        stored_job(
            f"{beginning}{index}",
            name,
            f"{number}_{position}",
            place=ArrayMember(f"{beginning}-array", position),
            array_native_id=str(number),
            environment={"JPSI_ARRAY_INDEX": str(index)},
        )
        for position, index in enumerate(indices, 1)
    ]


SWEEPS = [
    *elements("s", "sweep", range(4)),
    *elements("t", "other", range(10, 12), 77),
    stored_job("u", "one"),
]
INDICES = {
    "a name": ("sweep[3]", ["s3"]),
    "ranges": ("sweep[0-1,3]", ["s0", "s1", "s3"]),
    "a step": ("sweep[0-3:2]", ["s0", "s2"]),
    "the id of an array": ("s-array[0]", ["s0"]),
    "the beginning of one": ("t-a[11]", ["t11"]),
    "a range past the end": ("sweep[2-9]", ["s2", "s3"]),
    "the index of the batch system": ("3439_[3]", ["s2"]),
    "as qstat writes it": ("77[1]", ["t10"]),
}


@pytest.mark.parametrize(("word", "ids"), INDICES.values(), ids=INDICES)
def test_an_element_is_named_by_its_index(word: str, ids: list[str]) -> None:
    assert [job.id for job in select_jobs([word], SWEEPS)] == ids


def test_a_name_with_brackets_is_that_name() -> None:
    job = stored_job("v", "sweep[3]")

    assert select_jobs(["sweep[3]"], [*SWEEPS, job]) == [job]


INDEX_ERRORS = {
    "no such index": ("sweep[9]", "'sweep[9]' means no job: sweep has the indices 0-3"),
    "one of several": ("sweep[1,33]", "'sweep[33]' means no job: sweep has the indices 0-3"),
    "two of several": ("sweep[1,33,80]", "'sweep[33,80]' means no job: sweep has the indices 0-3"),
    "a range of several": ("sweep[1,8-9]", "'sweep[8-9]' means no job: sweep has the indices 0-3"),
    "a single job": ("one[1]", "'one[1]' means no job: one has no indices"),
    "no such array": ("none[1]", "no job has the id, native id or name 'none[1]'; jpsi ls --all shows all"),
    "no index": ("sweep[x]", "no job has the id, native id or name 'sweep[x]'; jpsi ls --all shows all"),
    "a native index": ("3439[9]", "no job has the id, native id or name '3439[9]'; jpsi ls --all shows all"),
}


@pytest.mark.parametrize(("word", "message"), INDEX_ERRORS.values(), ids=INDEX_ERRORS)
def test_an_index_that_means_no_element_is_refused(word: str, message: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select_jobs([word], SWEEPS)
    assert str(caught.value) == message


CHOICES = {
    "a name": ("sweep", "'sweep[3]'"),
    "an id": ("s-array", "'s-array[3]'"),
    "indices": ("sweep[1-2]", "'sweep[2]'"),
    "a native id": ("3439", "'s-array[3]'"),
}


@pytest.mark.parametrize(("word", "example"), CHOICES.values(), ids=CHOICES)
def test_of_an_array_one_is_chosen_by_its_index(word: str, example: str) -> None:
    expected = rf"name one of them by its index, such as: jpsi logs -f {re.escape(example)}\n"
    with pytest.raises(SelectionError, match=expected):
        select_job(word, SWEEPS, "jpsi logs -f")


def test_a_job_is_selected_once() -> None:
    assert [job.id for job in select_jobs(["19", "17bb", "one"], JOBS)] == ["17bb3333", "aaaa1111"]


USAGE_ERRORS = {
    "a short number": (
        "8",
        (
            "no job has the id, native id or name '8'; jpsi ls --all shows all; digits alone are the "
            "beginning of an id only if they are at least 8"
        ),
    ),
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


OTHER = Origin("pbs", "", Path("/work/pbs"))
FAILED = encoded_end(JobState.FAILED, 60, 1)
AMBIGUOUS = {
    "of two systems": [stored_job("aaaa", "one"), stored_job("bbbb", "two", origin=OTHER)],
    "also without its server": [stored_job("aaaa"), stored_job("bbbb", None, "17.server", origin=OTHER)],
    "also a name": [stored_job("aaaa", "one"), stored_job("bbbb", "17", "18")],
    "of an array, too": [
        stored_job("aaaa", None, "17_1", place=PLACE, array_native_id="17"),
        stored_job("bbbb", origin=OTHER),
    ],
}


@pytest.mark.parametrize("jobs", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_native_id_of_unlike_jobs_is_refused(jobs: list[StoredJob]) -> None:
    with pytest.raises(SelectionError, match="'17' means 2 jobs; name one of them by its id"):
        select_jobs(["17"], jobs)


def later(job_id: str, seconds: float, native_id: str = "18") -> StoredJob:
    return stored_job(job_id, "prep", native_id, submitted=seconds)


def test_a_native_id_that_was_given_again_means_its_newest_job() -> None:
    failed = stored_job("aaaa", "prep", final=FAILED)

    assert select_jobs(["17"], [failed]) == [failed]
    assert [job.id for job in select_jobs(["17"], [failed, later("bbbb", 61, "17")])] == ["bbbb"]


def test_jobs_to_be_held_are_those_of_a_name_that_have_not_ended() -> None:
    """No other command leaves out jobs that have ended: their failure would be lost."""
    failed, waits = stored_job("aaaa", "prep", final=FAILED), later("bbbb", 61)

    assert select_jobs(["prep"], [failed, waits]) == [failed, waits]
    assert select_live_jobs(["prep"], [failed, waits]) == [waits]
    assert select_live_jobs(["prep"], [failed]) == select_live_jobs(["aaaa"], [failed, waits]) == [failed]


def test_an_array_is_selected_whole() -> None:
    ended, waits = (
        stored_job(
            it,
            None,
            f"17_{index}",
            place=ArrayMember("array", index),
            array_native_id="17",
            submitted=seconds,
            final=final,
        )
        for it, index, seconds, final in (("aaaa", 1, 0, FAILED), ("bbbb", 2, 61, None))
    )

    assert select_jobs(["17"], [ended, waits]) == [ended, waits]


def test_a_short_number_is_no_beginning_of_an_id() -> None:
    jobs = [stored_job("47123456-9", None, "1")]

    assert match_jobs("47", jobs) == []
    assert match_jobs("47123456", jobs) == jobs


def test_a_job_that_ended_before_the_newest_of_its_name_says_so() -> None:
    end = encoded_end(JobState.FAILED, 10, 5)
    jobs = [
        stored_job("c", "fit", submitted=20),
        stored_job("a", "fit", final=end),
        *(stored_job(f"b{index}", "fit", place=ArrayMember("b", index), submitted=11) for index in (1, 2)),
        stored_job("d", "other", final=end),
        stored_job("e", None, final=end),
        stored_job("f", None, submitted=20),
    ]

    notes = describe_predecessors(["x", "fit"], jobs)

    assert notes == {
        "a": "fit stands for 3 jobs: this is number 1, which had ended when the newest was submitted, c"
    }


def test_elements_of_one_array_are_not_older_than_it() -> None:
    """On this machine the first may have ended before the last is submitted."""
    end = encoded_end(JobState.FAILED, 10, 5)
    jobs = [
        stored_job("a", "fit", place=ArrayMember("b", 1), final=end),
        stored_job("c", "fit", place=ArrayMember("b", 2), submitted=20),
    ]

    assert describe_predecessors(["fit"], jobs) == {}


def test_jobs_that_were_selected_by_id_say_nothing_of_their_name() -> None:
    jobs = [
        stored_job("a", "fit", final=encoded_end(JobState.FAILED, 10, 5)),
        stored_job("c", "fit", submitted=20),
    ]

    assert describe_predecessors(["a", "c"], jobs) == {}


def test_the_jobs_of_a_sweep_are_no_repetitions() -> None:
    """The last of them may be submitted while the first runs."""
    end = encoded_end(JobState.FAILED, 10, 5)

    assert (
        describe_predecessors(
            ["fit"], [stored_job(f"{it}", "fit", submitted=it, final=end) for it in range(9)]
        )
        == {}
    )


def element(number: int, array: str = "sweep", *, has_index: bool = True) -> StoredJob:
    variables = {"JPSI_ARRAY_INDEX": str(number)} if has_index else {}
    return stored_job(f"{array}-{number}", custom={"jpsi.array_id": array}, environment=variables)


@pytest.mark.parametrize(
    ("jobs", "others", "words"),
    [
        ([stored_job("a"), stored_job("b")], [stored_job("c")], "a b"),
        ([element(4), element(5), element(6)], [element(7)], "'sweep[4-6]'"),
        ([element(4), element(5), element(6)], [element(7, "other")], "sweep"),
        ([element(4), stored_job("b"), element(1, "other")], [element(0)], "other 'sweep[4]' b"),
        # as of `jpsi submit --many`
        ([element(it, has_index=False) for it in range(2)], [element(9, has_index=False)], "sweep-0 sweep-1"),
        ([element(it, has_index=False) for it in range(99)], [], "sweep"),
        # only some of an array have an index
        ([element(4), element(5, has_index=False)], [element(6)], "'sweep[4]' sweep-5"),
        (
            [stored_job(f"j{it}") for it in range(53)],
            [],
            f"{' '.join(f'j{it}' for it in range(50))}, and 3 more",
        ),
    ],
)
def test_jobs_are_named_as_commands_take_them(
    jobs: list[StoredJob], others: list[StoredJob], words: str
) -> None:
    assert job_words(jobs, array_sizes([*others, *jobs])) == words
