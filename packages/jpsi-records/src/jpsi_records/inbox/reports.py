"""Writes and reads the progress file of a running job: its progress, and its success or failure.

The job writes it (`jpsi request progress`); the dispatcher reads it in each round and records what has
changed.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

_SUCCESS, _FAILURE = "success", "failure"


@attrs.frozen(slots=True)
class Report:
    """A job's report of success or failure."""

    #: None if the job has reported neither.
    is_success: bool | None = None
    #: The reason of a failure.
    message: str = ""

    @property
    def outcome(self) -> str:
        """`success` or `failure`, as in the records and in the progress file; empty without a report."""
        return "" if self.is_success is None else _SUCCESS if self.is_success else _FAILURE

    def added_to(self, status: Mapping[str, str]) -> dict[str, str]:
        """Return the status of an execution with this report added.

        >>> Report(is_success=False, message="no input").added_to({"activity": "x"})
        {'activity': 'x', 'reported': 'failure', 'error': 'no input'}
        """
        if self.is_success is None:
            return dict(status)
        other_entries = {name: value for name, value in status.items() if name not in {"reported", "error"}}
        error = {} if self.is_success else {"error": self.message or "the job has reported a failure"}
        return {**other_entries, "reported": self.outcome, **error}


NO_REPORT = Report()


def write_progress(progress: float | None, report: Report) -> str:
    r"""Return the content of a job's progress file.

    >>> write_progress(0.5, Report(is_success=False, message="no\ninput"))
    '0.5\nfailure no input\n'
    """
    lines = [] if progress is None else [f"{progress}"]
    if report.is_success is not None:
        lines.append(" ".join([report.outcome, *report.message.split()]))
    return "".join(f"{line}\n" for line in lines)


def read_progress(text: str) -> tuple[float | None, Report]:
    r"""Return the progress and the report in a progress file: the last valid line of each.

    >>> read_progress("0.25\n0.5\nfailure no input\n")
    (0.5, Report(is_success=False, message='no input'))
    """
    progress, report = None, NO_REPORT
    for line in text.splitlines():
        word, _, message = line.strip().partition(" ")
        if word in {_SUCCESS, _FAILURE}:
            report = Report(is_success=word == _SUCCESS, message=message.strip())
            continue
        try:
            number = float(line)
        except ValueError:
            continue
        if 0 <= number <= 1:
            progress = number
    return progress, report
