"""The agent's state, which follows from events, and survives a rewrite of the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jpsi_pilot.agent.journal import Journal
from jpsi_pilot.agent.state import FINAL, AgentState
from pilot_support import submission_event


def state(*events: dict[str, Any]) -> AgentState:
    """Return a state with these events."""
    agent_state = AgentState()
    agent_state.apply({"what": "begun", "letters": "abcdefgh", "number": 0, "pilot": 0})
    for event in events:
        agent_state.apply(event)
    return agent_state


def started(*ids: str, node: str = "1/n.2") -> dict[str, Any]:
    """Return the events of jobs that began to run."""
    return {"what": "started", "ids": list(ids), "places": [node], "time": 2.0}


def ended(native_id: str, state: str = "done", code: int | None = 0, time: float = 3.0) -> dict[str, Any]:
    """Return the event of a job that has ended."""
    return {"what": "ended", "id": native_id, "state": state, "code": code, "time": time}


def visible_state(agent_state: AgentState) -> dict[str, Any]:
    """Return everything that a client can query, and the pending jobs."""
    jobs = {it: (job.state, job.code, job.restarts, job.nodes) for it, job in agent_state.jobs.items()}
    return {
        "jobs": jobs,
        "waiting": agent_state.waiting(),
        "pilots": agent_state.pilots,
        "last": agent_state.last_number,
    }


def test_a_job_goes_from_waiting_to_running_to_its_end() -> None:
    agent_state = state(submission_event())
    job = agent_state.jobs["abcdefgh-1"]
    assert (job.state, agent_state.waiting()[0].count) == ("waiting", 1)

    agent_state.apply(started("abcdefgh-1"))
    assert (job.state, agent_state.waiting(), agent_state.running) == ("running", [], [job])

    agent_state.apply(ended("abcdefgh-1", "failed", 3))
    assert (job.state, job.code, agent_state.unfinished) == ("failed", 3, [])


def test_elements_of_an_array_are_jobs_of_their_own() -> None:
    agent_state = state(submission_event(elements=3))

    assert [job.native_id for job in agent_state.find_jobs("abcdefgh-1")] == [
        f"abcdefgh-1[{it}]" for it in (1, 2, 3)
    ]
    assert [job.index for job in agent_state.find_jobs("abcdefgh-1[2]")] == [2]
    assert (
        agent_state.find_jobs("abcdefgh-2")
        == agent_state.find_jobs("abcdefgh-1[4]")
        == agent_state.find_jobs("other")
        == []
    )


def test_no_more_elements_start_than_may_run_at_a_time() -> None:
    agent_state = state(submission_event(elements=5, at_a_time=2), started("abcdefgh-1[1]"))

    assert [it.count for it in agent_state.waiting()] == [1]
    agent_state.apply(ended("abcdefgh-1[1]"))
    assert [it.count for it in agent_state.waiting()] == [2]


def test_a_requeued_job_waits_behind_the_others() -> None:
    agent_state = state(submission_event(elements=3), started("abcdefgh-1[1]"))

    agent_state.apply({"what": "back", "id": "abcdefgh-1[1]", "ran": True, "time": 4.0})

    (waiting,) = agent_state.waiting()
    assert [job.index for job in agent_state.next_jobs(waiting.kind, 9)] == [2, 3, 1]
    assert agent_state.jobs["abcdefgh-1[1]"].restarts == 1


def test_a_job_that_never_began_was_not_restarted() -> None:
    agent_state = state(submission_event(), started("abcdefgh-1"))

    agent_state.apply({"what": "back", "id": "abcdefgh-1", "ran": False, "time": 4.0})

    assert agent_state.jobs["abcdefgh-1"].restarts == 0


def test_jobs_and_pilots_of_an_ended_client_are_released() -> None:
    pilot = {"what": "pilot", "name": "1", "settings": "s", "client": "7.1", "job_id": "x", "time": 1.0}
    agent_state = state(submission_event(1), submission_event(2, client="8.1"), pilot)
    assert agent_state.clients == {"7.1", "8.1"}

    agent_state.release_client("7.1")

    assert agent_state.clients == {"8.1"}
    assert {it.kind.client for it in agent_state.waiting()} == {None, "8.1"}
    assert agent_state.pilots["1"].client is None


def test_only_jobs_that_ended_long_ago_are_pruned() -> None:
    agent_state = state(
        submission_event(1),
        submission_event(2),
        submission_event(3),
        ended("abcdefgh-1"),
        ended("abcdefgh-2", time=9.0),
    )

    agent_state.prune(5.0)

    assert set(agent_state.jobs) == {"abcdefgh-2", "abcdefgh-3"}
    assert (agent_state.submission_number("tag-1"), agent_state.submission_number("tag-2")) == (None, 2)


_STEPS = st.lists(st.tuples(st.sampled_from(["start", "end", "back", "stop", "lost"]), st.integers(1, 4)))


@given(_STEPS)
def test_a_rewritten_journal_has_the_same_state(steps: list[tuple[str, int]]) -> None:
    agent_state = state(submission_event(1), submission_event(2, elements=3, client=None))
    ids = list(agent_state.jobs)
    for step, number in steps:
        job = agent_state.jobs[ids[number - 1]]
        if job.state in FINAL:
            continue
        running = job.state == "running"
        match step:
            case "start" if not running:
                agent_state.apply(started(job.native_id))
            case "back" if running:
                agent_state.apply({"what": "back", "id": job.native_id, "ran": True, "time": 5.0})
            case "stop":
                agent_state.apply({"what": "stopped", "ids": [job.native_id]})
            case "end" | "lost" if running:
                agent_state.apply(ended(job.native_id, "done" if step == "end" else "lost"))

    replayed = AgentState()
    for event in map(json.dumps, agent_state.events()):
        replayed.apply(json.loads(event))

    # requeued jobs may be in another order
    assert {**visible_state(replayed), "waiting": 0} == {**visible_state(agent_state), "waiting": 0}
    assert {it.kind: it.count for it in replayed.waiting()} == {
        it.kind: it.count for it in agent_state.waiting()
    }


def test_a_journal_continues_after_an_incomplete_last_line(tmp_path: Path) -> None:
    first = Journal(tmp_path, 0.0)
    letters = first.state.letters
    first.write(submission_event(), synced=True)
    first.write(started(f"{letters}-1"))
    first.close()
    with (tmp_path / "journal").open("a") as file:
        file.write('{"what":"ended","id"')

    second = Journal(tmp_path, 0.0)

    assert [job.state for job in second.state.jobs.values()] == ["running"]
    assert second.state.letters == letters
    second.close()


def test_only_the_user_reads_the_journal(tmp_path: Path) -> None:
    Journal(tmp_path, 0.0).close()

    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_a_compacted_journal_can_be_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0.0)
    letters = journal.state.letters
    journal.write(submission_event(1), ended(f"{letters}-1"), submission_event(2))

    journal.compact(5.0)
    journal.write(started(f"{letters}-2"))
    journal.close()

    replayed = Journal(tmp_path, 0.0)
    assert {it: job.state for it, job in replayed.state.jobs.items()} == {f"{letters}-2": "running"}
    assert replayed.state.last_number == 2
    replayed.close()
