"""The entries that run again in the next allocation of a group."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobspec_support import planned
from jpsi import JobState
from jpsi_jobspec.groups import lifetime
from jpsi_jobspec.planning.allocations import flatten
from jpsi_jobspec.planning.plan import Plan
from jpsi_jobspec.run_store.journal import Journal, Part

GROUP = """\
version: 1
resources: {r: {type: core, count: 1}}
groups:
- name: g
  resources: r
  tasks:
  - {name: prepare, local: true, command: a}
  - {name: good, command: a}
  - {name: bad, command: a}
  - {name: cut, command: a}
  - {name: clean, local: true, command: a}
"""
COMPLETED, FAILED, CANCELED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED


@pytest.fixture
def inside(tmp_path: Path) -> Journal:
    """Return the inside of a group that was ended, and not cleaned up."""
    entries = flatten(planned(GROUP).entries[0])
    states = {"g/prepare": COMPLETED, "g/good": COMPLETED, "g/bad": FAILED, "g/cut": CANCELED}
    parts = {
        it.id: [Part(it, 1, states.get(it.id, JobState.NEW), job_id="x" if it.id in states else None)]
        for it in entries
    }
    return Journal(tmp_path, Plan(source="g", target="local", entries=entries), parts)


def new(journal: Journal) -> set[str]:
    return {name.rpartition("/")[2] for name, parts in journal.parts.items() if parts[0].job_id is None}


def test_entries_that_were_ended_run_again_and_those_that_ended_by_themselves_do_not(inside: Journal) -> None:
    inside.cancel(reason="interrupted")

    assert not lifetime.begin_life(inside, "1 first", is_wanted=True)

    assert new(inside) == {"cut", "clean"}
    assert not inside.is_cancelled


def test_a_cleaned_up_group_is_prepared_again(inside: Journal) -> None:
    inside.append([inside.parts["g/clean"][0].event(job="x", state="COMPLETED")])
    inside.cancel(reason="interrupted")

    lifetime.begin_life(inside, "1 first", is_wanted=True)

    assert new(inside) == {"prepare", "cut", "clean"}


def test_a_cancelled_entry_is_not_restarted(inside: Journal) -> None:
    inside.cancel()

    lifetime.begin_life(inside, "1 first", is_wanted=False)

    assert new(inside) == {"clean"}
    assert inside.is_cancelled


def test_each_start_of_an_allocation_is_distinguished(inside: Journal) -> None:
    lives = ["1 first", "1 first", "2 second", "2 second"]

    assert [lifetime.begin_life(inside, it, is_wanted=True) for it in lives] == [False, False, True, False]


def test_within_one_start_ended_entries_stay_ended(inside: Journal) -> None:
    """The runner of the inside was killed while it ended them."""
    lifetime.begin_life(inside, "1 first", is_wanted=True)
    inside.cancel(reason="timeout")

    lifetime.begin_life(inside, "1 first", is_wanted=True)

    assert (inside.is_cancelled, inside.cancel_reason) == (True, "timeout")
