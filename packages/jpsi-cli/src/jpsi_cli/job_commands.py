"""The commands about jobs that are named: how each is called, and what its help says."""

from __future__ import annotations

from collections.abc import Sequence

import click

from . import completion
from .commands import command
from .job_arguments import JOBS, JSON, LOGS_PARAMETERS, REFRESH, WAIT_PARAMETERS, duration

# Imports stand in the functions: help and mistakes are told without waiting for the library.

_JOB = """JOB is the id of a job or its beginning, a native id, or a name. Jobs of all your programs,
    executors and targets are found. What may be several jobs is refused, and they are named."""


def _show(*, jobs: tuple[str, ...], as_json: bool, is_refreshing: bool) -> int:
    _need_jobs(jobs)
    from .show import show  # noqa: PLC0415

    return show(jobs, as_json=as_json, is_refreshing=is_refreshing)


def _explain(*, job: str | None, as_json: bool) -> int:
    _need_jobs([job] if job else ())
    from .explain_job import explain_job  # noqa: PLC0415

    return explain_job(str(job), as_json=as_json)


def _wait(*, jobs: tuple[str, ...], timeout: str | None, as_json: bool) -> int:
    _need_jobs(jobs)
    from .wait import wait  # noqa: PLC0415

    return wait(jobs, limit=None if timeout is None else duration(timeout, "--timeout"), as_json=as_json)


def _cancel(*, jobs: tuple[str, ...], as_json: bool) -> int:
    _need_jobs(jobs)
    from .change import cancel  # noqa: PLC0415

    return cancel(jobs, as_json=as_json)


def _hold(*, jobs: tuple[str, ...]) -> int:
    _need_jobs(jobs)
    from .change import hold  # noqa: PLC0415

    return hold(jobs)


def _release(*, jobs: tuple[str, ...]) -> int:
    _need_jobs(jobs)
    from .change import release  # noqa: PLC0415

    return release(jobs)


def _logs(*, job: str | None, is_following: bool, is_stderr: bool) -> int:
    _need_jobs([job] if job else ())
    from .logs import logs  # noqa: PLC0415

    return logs(str(job), is_following=is_following, is_stderr=is_stderr)


def _need_jobs(jobs: Sequence[str]) -> None:
    if not jobs:
        msg = "name a job, by its id, its native id or its name; jpsi ls shows them"
        raise click.UsageError(msg)


#: `jpsi show`
SHOW = command(
    "show",
    params=[JSON, REFRESH, JOBS],
    callback=_show,
    short_help="Show everything that is known of jobs.",
    help=f"""Show everything that is known of jobs: states with times, ids, files, and what was asked for.

    {_JOB}
    """,
    epilog="""\b
Exit codes:
  0  the jobs were shown
  2  a mistake in the command line: JOB is none, or may be several
  125  jpsi failed
""",
)

#: `jpsi explain`
EXPLAIN = command(
    "explain",
    params=[
        click.Option(["--json", "as_json"], is_flag=True, help="Write a JSON object."),
        click.Argument(["job"], metavar="JOB", required=False, shell_complete=completion.jobs),
    ],
    callback=_explain,
    short_help="Say why a job waits, or ended as it did, and what to change.",
    help=f"""Say in a sentence why a job waits, or ended as it did, and what to change.

    It goes by what the batch system says, by the exit code or signal, by what was asked for, and by the last
    lines of its errors. The batch system is asked about a job that has not ended.

    {_JOB}
    """,
    epilog="""\b
Exit codes:
  0  the job was explained
  2  a mistake in the command line: JOB is none, or may be several
  125  jpsi failed
""",
)

#: `jpsi wait`
WAIT = command(
    "wait",
    params=list(WAIT_PARAMETERS),
    callback=_wait,
    short_help="Wait until jobs have ended, and exit with their exit code.",
    help=f"""Wait until jobs have ended, and exit with the exit code of the first that did not end well.

    On a terminal a bar shows how many have. Ctrl-C ends the waiting, not the jobs.

    {_JOB}
    """,
    epilog="""\b
Exit codes, besides those of the jobs, which are as for jpsi run:
  0  all jobs completed
  2  a mistake in the command line: JOB is none, or may be several
  124  --timeout is over, or a job used up its time
  125  jpsi failed, or lost a job without an exit code
  130  a job was cancelled, or the waiting was
""",
)

#: `jpsi cancel`
CANCEL = command(
    "cancel",
    params=[JSON, JOBS],
    callback=_cancel,
    short_help="Have jobs ended.",
    help=f"""Have jobs ended, wherever they run. Jobs that have ended already are passed over.

    It stays until they have, for up to 10 seconds; those that take longer are told, and end later.

    {_JOB}
    """,
    epilog="""\b
Exit codes:
  0  all jobs were told to end, or had ended
  2  a mistake in the command line: JOB is none, or may be several; nothing was done
  125  a job could not be told to end
""",
)

_CHANGE_CODES = """\b
Exit codes:
  0  it was done for all jobs
  2  a mistake in the command line: JOB is none, or may be several; nothing was done
  125  it could not be done for a job: it runs or has ended, or its batch system refuses
"""

#: `jpsi hold`
HOLD = command(
    "hold",
    params=[JOBS],
    callback=_hold,
    short_help="Keep jobs that wait from starting.",
    help=f"""Keep jobs that wait from starting until `jpsi release`.

    {_JOB}
    """,
    epilog=_CHANGE_CODES,
)

#: `jpsi release`
RELEASE = command(
    "release",
    params=[JOBS],
    callback=_release,
    short_help="Let jobs start that were held.",
    help=f"""Let jobs start that were held.

    {_JOB}
    """,
    epilog=_CHANGE_CODES,
)

#: `jpsi logs`
LOGS = command(
    "logs",
    params=list(LOGS_PARAMETERS),
    callback=_logs,
    short_help="Show the output of a job.",
    help=f"""Show the output of a job, as far as it came, or with -f as it comes.

    {_JOB}
    """,
    epilog="""\b
Exit codes:
  0  the output was shown; nothing was written yet
  2  a mistake in the command line: JOB is none, or may be several
  125  there is no output, or it cannot be read
""",
)
