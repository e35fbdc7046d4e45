"""The tasks of a step on a machine that has no queue."""

from __future__ import annotations

from jpsi_speak.steps import wait_for_orphaning


def test_the_tasks_of_a_job_that_was_killed_end() -> None:
    parents, sleeps = iter([17, 17, 17, 1]), list[float]()

    wait_for_orphaning(lambda: next(parents), sleeps.append)

    assert len(sleeps) == 2
