"""What a job says of itself while it runs: how much of its work is done, and whether it succeeds."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

_SUCCESS, _FAILURE = "success", "failure"


@attrs.frozen(slots=True)
class Report:
    """Success or failure, as a job has reported it; None is nothing."""

    is_success: bool | None = None
    #: Why it fails.
    message: str = ""

    @property
    def word(self) -> str:
        """What the records call it."""
        return "" if self.is_success is None else _SUCCESS if self.is_success else _FAILURE

    def added_to(self, status: Mapping[str, str]) -> dict[str, str]:
        """Return what is recorded of an execution whose status was another.

        >>> Report(is_success=False, message="no input").added_to({"activity": "x"})
        {'activity': 'x', 'reported': 'failure', 'error': 'no input'}
        """
        if self.is_success is None:
            return dict(status)
        kept = {name: it for name, it in status.items() if name not in {"reported", "error"}}
        error = {} if self.is_success else {"error": self.message or "the job has reported a failure"}
        return {**kept, "reported": self.word, **error}


NO_REPORT = Report()


def write_progress(progress: float | None, report: Report) -> str:
    r"""Return what the file of a job's progress holds.

    >>> write_progress(0.5, Report(is_success=False, message="no\ninput"))
    '0.5\nfailure no input\n'
    """
    lines = [] if progress is None else [f"{progress}"]
    if report.is_success is not None:
        lines.append(" ".join([report.word, *report.message.split()]))
    return "".join(f"{it}\n" for it in lines)


def read_progress(text: str) -> tuple[float | None, Report]:
    r"""Return what a file of progress says; of each the last line that can be understood.

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
