"""The tables that `qstat` of the fakes of PBS and Torque prints for people.

Tests and `jpsi fake` run jobs on the fake, without a real PBS or Torque.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jpsi_testing.fake import FakeJob

_OPENPBS = (
    "Job id            Name             User              Time Use S Queue",
    "----------------  ---------------- ----------------  -------- - -----",
    (17, 16, 17, 8, 1, 16),
)
_TORQUE = (
    "Job ID                    Name             User            Time Use S Queue",
    "------------------------- ---------------- --------------- -------- - -----",
    (26, 16, 15, 8, 1, 15),
)


def openpbs_table(jobs: Iterable[FakeJob], state: Callable[[FakeJob], str]) -> str:
    """Return OpenPBS's table of jobs; "" if there are none."""
    return _table(*_OPENPBS, jobs, state)


def torque_table(jobs: Iterable[FakeJob], state: Callable[[FakeJob], str]) -> str:
    """Return Torque's table of jobs; "" if there are none."""
    return _table(*_TORQUE, jobs, state)


def job_paragraphs(jobs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the output of `qstat -f` for jobs by their ids; the fake does not fold lines."""
    return "".join(
        f"Job Id: {native_id}\n{''.join(_attribute(*it) for it in attributes.items())}\n"
        for native_id, attributes in jobs.items()
    )


def queue_paragraphs(names: Iterable[str], last: str) -> str:
    """Return the output of `qstat -Q -f`; `last` is the last state of the counts, at which lines fold."""
    return "".join(
        f"Queue: {name}\n    queue_type = Execution\n    total_jobs = 0\n"
        "    state_count = Transit:0 Queued:0 "
        f"Held:0 Waiting:0 Running:0 Exiting:0 {last[:4]}\n\t{last[4:]}:0 \n{_LIMITS.get(name, '')}"
        "    enabled = True\n    started = True\n\n"
        for name in names
    )


_LIMITS = {
    "debug": "    resources_max.walltime = 01:00:00\n    resources_default.walltime = 00:10:00\n",
}


def _attribute(name: str, value: Any) -> str:  # noqa: ANN401  what JSON knows
    text = ",".join(f"{key}={it}" for key, it in value.items()) if isinstance(value, dict) else value
    return f"    {name} = {text}\n"


def _table(
    heading: str,
    rule: str,
    widths: tuple[int, ...],
    jobs: Iterable[FakeJob],
    state: Callable[[FakeJob], str],
) -> str:
    rows = [_row(job, widths, state(job)) for job in jobs]
    return "".join(f"{line}\n" for line in [heading, rule, *rows]) if rows else ""


def _row(job: FakeJob, widths: tuple[int, ...], state: str) -> str:
    number, name, user, used, _, queue = widths
    time = "0" if job.started is None else "00:00:00"
    cells = [
        f"{job.native_id[:number]:{number}}",
        f"{job.name[:name]:{name}}",
        f"{job.owner[:user]:{user}}",
        f"{time:>{used}}",
        state,
        f"{job.queue:{queue}}",
    ]
    return " ".join(cells)
