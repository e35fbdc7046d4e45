"""The state: what the agent knows follows from events, and survives being written anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jpsi_pilot.agent.journal import Journal
from jpsi_pilot.agent.state import FINAL, AgentState
from pilot_support import submitted


def state(*events: dict[str, Any]) -> AgentState:
    """A state that has learnt of these events."""
    found = AgentState()
    found.take({"what": "begun", "letters": "abcdefgh", "number": 0, "pilot": 0})
    for event in events:
        found.take(event)
    return found


def started(*ids: str, place: str = "1/n.2") -> dict[str, Any]:
    """Jobs that began to run."""
    return {"what": "started", "ids": list(ids), "places": [place], "time": 2.0}


def ended(native_id: str, word: str = "done", code: int | None = 0, time: float = 3.0) -> dict[str, Any]:
    """A job that has ended."""
    return {"what": "ended", "id": native_id, "word": word, "code": code, "time": time}


def seen(found: AgentState) -> dict[str, Any]:
    """Everything that a client can see, and what waits."""
    jobs = {it: (job.word, job.code, job.restarts, job.places) for it, job in found.jobs.items()}
    return {"jobs": jobs, "waiting": found.waiting(), "pilots": found.pilots, "last": found.last_number}


def test_a_job_goes_from_waiting_to_running_to_its_end() -> None:
    found = state(submitted())
    job = found.jobs["abcdefgh-1"]
    assert (job.word, found.waiting()[0].count) == ("waiting", 1)

    found.take(started("abcdefgh-1"))
    assert (job.word, found.waiting(), found.running) == ("running", [], [job])

    found.take(ended("abcdefgh-1", "failed", 3))
    assert (job.word, job.code, found.unfinished) == ("failed", 3, [])


def test_elements_of_an_array_are_jobs_of_their_own() -> None:
    found = state(submitted(elements=3))

    assert [job.native_id for job in found.named("abcdefgh-1")] == [f"abcdefgh-1[{it}]" for it in (1, 2, 3)]
    assert [job.index for job in found.named("abcdefgh-1[2]")] == [2]
    assert found.named("abcdefgh-2") == found.named("abcdefgh-1[4]") == found.named("other") == []


def test_no_more_elements_start_than_may_run_at_a_time() -> None:
    found = state(submitted(elements=5, at_a_time=2), started("abcdefgh-1[1]"))

    assert [it.count for it in found.waiting()] == [1]
    found.take(ended("abcdefgh-1[1]"))
    assert [it.count for it in found.waiting()] == [2]


def test_a_job_that_comes_back_waits_behind_the_others() -> None:
    found = state(submitted(elements=3), started("abcdefgh-1[1]"))

    found.take({"what": "back", "id": "abcdefgh-1[1]", "ran": True, "time": 4.0})

    (waiting,) = found.waiting()
    assert [job.index for job in found.next(waiting.kind, 9)] == [2, 3, 1]
    assert found.jobs["abcdefgh-1[1]"].restarts == 1


def test_one_that_was_only_on_its_way_was_not_restarted() -> None:
    found = state(submitted(), started("abcdefgh-1"))

    found.take({"what": "back", "id": "abcdefgh-1", "ran": False, "time": 4.0})

    assert found.jobs["abcdefgh-1"].restarts == 0


def test_what_belongs_to_a_client_that_is_gone_belongs_to_nobody() -> None:
    pilot = {"what": "pilot", "name": "1", "settings": "s", "client": "7.1", "job_id": "x", "time": 1.0}
    found = state(submitted(1), submitted(2, client="8.1"), pilot)
    assert found.clients == {"7.1", "8.1"}

    found.disown("7.1")

    assert found.clients == {"8.1"}
    assert {it.kind.client for it in found.waiting()} == {None, "8.1"}
    assert found.pilots["1"].client is None


def test_what_has_ended_long_ago_is_forgotten_and_no_other() -> None:
    found = state(
        submitted(1), submitted(2), submitted(3), ended("abcdefgh-1"), ended("abcdefgh-2", time=9.0)
    )

    found.forget(5.0)

    assert set(found.jobs) == {"abcdefgh-2", "abcdefgh-3"}
    assert (found.number_of("tag-1"), found.number_of("tag-2")) == (None, 2)


_STEPS = st.lists(st.tuples(st.sampled_from(["start", "end", "back", "stop", "lost"]), st.integers(1, 4)))


@settings(max_examples=50)
@given(_STEPS)
def test_written_anew_it_says_the_same(steps: list[tuple[str, int]]) -> None:
    found = state(submitted(1), submitted(2, elements=3, client=None))
    ids = list(found.jobs)
    for step, number in steps:
        job = found.jobs[ids[number - 1]]
        if job.word in FINAL:
            continue
        running = job.word == "running"
        match step:
            case "start" if not running:
                found.take(started(job.native_id))
            case "back" if running:
                found.take({"what": "back", "id": job.native_id, "ran": True, "time": 5.0})
            case "stop":
                found.take({"what": "stopped", "ids": [job.native_id]})
            case "end" | "lost" if running:
                found.take(ended(job.native_id, "done" if step == "end" else "lost"))

    again = AgentState()
    for event in map(json.dumps, found.events()):
        again.take(json.loads(event))

    # those that have come back may wait in another order
    assert {**seen(again), "waiting": 0} == {**seen(found), "waiting": 0}
    assert {it.kind: it.count for it in again.waiting()} == {it.kind: it.count for it in found.waiting()}


def test_a_journal_goes_on_where_it_ended_even_in_the_middle_of_a_line(tmp_path: Path) -> None:
    first = Journal(tmp_path, 0.0)
    letters = first.state.letters
    first.write(submitted(), synced=True)
    first.write(started(f"{letters}-1"))
    first.close()
    with (tmp_path / "journal").open("a") as file:
        file.write('{"what":"ended","id"')

    second = Journal(tmp_path, 0.0)

    assert [job.word for job in second.state.jobs.values()] == ["running"]
    assert second.state.letters == letters
    second.close()


def test_only_the_user_reads_the_journal(tmp_path: Path) -> None:
    Journal(tmp_path, 0.0).close()

    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_a_journal_that_is_tidied_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0.0)
    letters = journal.state.letters
    journal.write(submitted(1), ended(f"{letters}-1"), submitted(2))

    journal.tidy(5.0)
    journal.write(started(f"{letters}-2"))
    journal.close()

    again = Journal(tmp_path, 0.0)
    assert {it: job.word for it, job in again.state.jobs.items()} == {f"{letters}-2": "running"}
    assert again.state.last_number == 2
    again.close()
