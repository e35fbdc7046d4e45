"""Repetitions of jobs wait for each other as the jobs did."""

from __future__ import annotations

from typing import Any

import pytest

import jpsi
from jpsi import JobState
from jpsi_cli.error_boundary import SelectionError
from jpsi_cli.submission.repetitions import Repetition, plan_repetitions
from jpsi_engine.job_store import MET, StoredJob
from jpsi_engine.spool import ArrayMember
from stored_jobs import active_marker, encoded_end, stored_job

FAILED = encoded_end(JobState.FAILED, 60, 1)
COMPLETED = encoded_end(JobState.COMPLETED, 60, 0)
CANCELED = encoded_end(JobState.CANCELED, 60)


def job(job_id: str, native_id: str | None, *after: str, **fields: Any) -> StoredJob:
    """Return a job of Slurm that has failed; `after` are words such as `ok:17`."""
    pairs = [it.partition(":") for it in after]
    dependencies = [{"job": word, "kind": kind} for kind, _, word in pairs]
    fields = {"final": FAILED, "after": dependencies or None, **fields}
    return stored_job(job_id, job_id, native_id, **fields)


def repeating(job_id: str, native_id: str | None, old: str, *after: str, **fields: Any) -> StoredJob:
    return job(job_id, native_id, *after, custom={"jpsi.repeats": old}, submitted=100, **fields)


def described(plan: list[Repetition]) -> list[tuple[str, list[str], list[str]]]:
    """Return the ids of jobs, and of those that are repeated and of others for which they wait."""

    def words(found: Any) -> list[str]:
        return [f"{it.kind.value}:{it.job}" for it in found]

    return [(" ".join(job.id for job in it.jobs), words(it.repeated), words(it.others)) for it in plan]


A, B, C = job("a", "1"), job("b", "2", "ok:1"), job("c", "3", "any:2", "notok:1")


def test_each_is_submitted_behind_what_it_waits_for() -> None:
    other = job("d", "4")

    assert described(plan_repetitions([C, B, other, A], [A, B, C, other])) == [
        ("d a", [], []),
        ("b", ["ok:a"], []),
        ("c", ["any:b", "notok:a"], []),
    ]


COMPLETED_A, RUNNING_A = job("a", "1", final=COMPLETED), job("a", "1", final=None)
OTHERS = {
    "one that has completed": ([COMPLETED_A], ["ok:a"]),
    "one that runs": ([RUNNING_A], ["ok:a"]),
    "a repetition that runs": ([A, repeating("a2", "8", "a", final=None)], ["ok:a2"]),
    "a repetition of one": (
        [A, repeating("a2", "8", "a"), repeating("a3", "9", "a2", final=None)],
        ["ok:a3"],
    ),
    "a repetition of one that completed": ([COMPLETED_A, repeating("a2", "8", "a")], ["ok:a"]),
    "one that has failed": ([A], None),
    "a repetition that has failed": ([A, repeating("a2", "8", "a")], None),
}


@pytest.mark.parametrize(("before", "others"), OTHERS.values(), ids=OTHERS)
def test_what_is_not_repeated_is_waited_for_as_before(
    before: list[StoredJob], others: list[str] | None
) -> None:
    (found,) = plan_repetitions([B], [*before, B])

    assert described([found]) == [("b", [], others or [])]
    assert [(it.kind, it.job.id) for it in found.unmet] == ([] if others else [(jpsi.DependencyKind.OK, "a")])


def test_the_repetition_that_is_repeated_is_waited_for() -> None:
    second = repeating("a2", "8", "a")

    assert described(plan_repetitions([B, second], [A, B, second])) == [
        ("a2", [], []),
        ("b", ["ok:a2"], []),
    ]


def test_a_repetition_may_have_waited_for_what_it_repeats() -> None:
    second = repeating("a2", "8", "a", "any:1")

    assert described(plan_repetitions([second], [A, second])) == [("a2", [], ["any:a"])]


def test_repetitions_that_would_wait_for_each_other_are_refused() -> None:
    second = repeating("a2", "8", "a", "any:2")

    with pytest.raises(SelectionError, match=r"job b \(b\) and job a2 \(a2\) would wait for each other"):
        plan_repetitions([B, second], [A, B, second])


def test_what_had_ended_before_the_submission_counts() -> None:
    job_b = job("b", "2", custom={MET: "notok:a any:gone"}, markers=(active_marker("b", 1),))

    (first, second) = plan_repetitions([A, job_b], [A, job_b])
    assert described([first, second]) == [("a", [], []), ("b", ["notok:a"], [])]
    assert second.unknown == []


def test_a_job_that_never_started_may_have_waited_for_an_unknown_one() -> None:
    (found,) = plan_repetitions([B], [B])

    assert found.unknown == ["1"]


def array(name: str, number: int, *after: str, **fields: Any) -> list[StoredJob]:
    return [
        job(
            f"{name}{index}",
            f"{number}_{index + 1}",
            *after,
            place=ArrayMember(name, index + 1),
            array_native_id=str(number),
            environment={"JPSI_ARRAY_INDEX": str(index)},
            **{**fields, "final": COMPLETED if index in fields.get("final", ()) else FAILED},
        )
        for index in range(3)
    ]


WAYS = {
    "each element": {"after": ["ok:17_1", "ok:17_2", "ok:17_3"]},
    "the array": {"after": ["ok:17"]},
    "what had ended": {"after": ["ok:17_1", "ok:17_3"], "custom": {MET: "ok:first[1]"}},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_elements_wait_for_those_of_another_array_that_are_repeated(way: dict[str, Any]) -> None:
    first = array("first", 17, final=[1])
    second = array("second", 18, *way["after"], custom=way.get("custom"))
    failed = [first[0], first[2], *second]

    found = described(plan_repetitions(failed, [*first, *second]))

    assert found[0] == ("first0 first2", [], [])
    (jobs, repeated, others) = found[1]
    assert (jobs, sorted(repeated), others) == (
        "second0 second1 second2",
        ["ok:first0", "ok:first2"],
        ["ok:first1"],
    )


def test_a_native_id_means_the_last_job_that_had_it_then() -> None:
    earlier, later = job("x", "1", submitted=-500), job("y", "1", submitted=500)

    plan = plan_repetitions([A, B, earlier, later], [earlier, A, B, later])

    assert described(plan)[-1] == ("b", ["ok:a"], [])
