"""Requests for many jobs, of an engine that has only those for one."""

from __future__ import annotations

from jpsi.contract.engine import Engine, Submission
from jpsi.model.errors import SubmitException


class Single(Engine):
    """An engine that cancels one job at a time, and answers more than it has to."""

    def __init__(self, answers: dict[str, object]) -> None:
        self._answers = answers

    def submit(self, submission: Submission) -> str:
        raise NotImplementedError

    def track(self, job_id: str) -> None:
        raise NotImplementedError

    def cancel(self, job_id: str) -> None:
        answer = self._answers[job_id]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]  # as a plugin without types may


def test_only_errors_are_the_result_of_cancelling_many() -> None:
    error = SubmitException("no answer")
    engine = Single({"a1": None, "a2": error, "a3": "cancelled", "a4": True})

    assert engine.cancel_many(["a1", "a2", "a3", "a4"]) == {"a2": error}
