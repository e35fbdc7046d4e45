"""The commands about submitted jobs, with their options and help texts."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..options import (
    JOB,
    JOBS,
    JSON,
    LOGS_PARAMETERS,
    LS_PARAMETERS,
    REFRESH,
    WAIT_PARAMETERS,
    command,
    parse_duration,
    require_executor,
)

# Imports stand in the functions: help and usage errors do not wait for the library.

_JOB = """JOB is the id of a job or its beginning, a native id, or a name. Jobs of all your programs,
    executors and targets are found. What may be several jobs is refused, and they are named."""


def _ls(  # noqa: PLR0913  the options
    *,
    is_all: bool,
    since: str | None,
    states: tuple[str, ...],
    executor: str | None,
    name: str | None,
    only_ids: bool,
    as_json: bool,
    is_refreshing: bool,
    is_watching: bool,
) -> int:
    if sum([only_ids, as_json, is_watching]) > 1:
        msg = "--ids, --json and --watch are different forms; give one of them"
        raise click.UsageError(msg)
    if is_all and since is not None:
        msg = "--all shows jobs however long ago they ended, --since does not; give one of them"
        raise click.UsageError(msg)
    require_executor(executor)
    import jpsi  # noqa: PLC0415

    from ..output import is_terminal  # noqa: PLC0415
    from .ls import RECENT, Form, Wanted, ls  # noqa: PLC0415

    if is_watching and not is_terminal():
        msg = "--watch needs a terminal"
        raise click.UsageError(msg)
    recent = RECENT if since is None else parse_duration(since, "--since")
    wanted = Wanted(
        states=frozenset(jpsi.JobState(state.upper()) for state in states),
        executor=executor,
        name=name,
        since=None if is_all else recent,
    )
    form = Form(as_json=as_json, only_ids=only_ids, is_refreshing=is_refreshing, is_watching=is_watching)
    return ls(wanted, form)


def _show(*, jobs: tuple[str, ...], as_json: bool, is_refreshing: bool) -> int:
    _need_jobs(jobs)
    from .show import show  # noqa: PLC0415

    return show(jobs, as_json=as_json, is_refreshing=is_refreshing)


def _explain(*, job: str | None, as_json: bool) -> int:
    _need_jobs([job] if job else ())
    from .explain import explain_job  # noqa: PLC0415

    return explain_job(str(job), as_json=as_json)


def _wait(*, jobs: tuple[str, ...], timeout: str | None, as_json: bool) -> int:
    _need_jobs(jobs)
    from .wait import wait  # noqa: PLC0415

    return wait(
        jobs, limit=None if timeout is None else parse_duration(timeout, "--timeout"), as_json=as_json
    )


def _cancel(*, jobs: tuple[str, ...], as_json: bool) -> int:
    _need_jobs(jobs)
    from .control import cancel  # noqa: PLC0415

    return cancel(jobs, as_json=as_json)


def _hold(*, jobs: tuple[str, ...]) -> int:
    _need_jobs(jobs)
    from .control import hold  # noqa: PLC0415

    return hold(jobs)


def _release(*, jobs: tuple[str, ...]) -> int:
    _need_jobs(jobs)
    from .control import release  # noqa: PLC0415

    return release(jobs)


def _logs(*, job: str | None, is_following: bool, is_stderr: bool) -> int:
    _need_jobs([job] if job else ())
    from .logs import logs  # noqa: PLC0415

    return logs(str(job), is_following=is_following, is_stderr=is_stderr)


def _top() -> int:
    from .. import exit_codes, messages  # noqa: PLC0415
    from ..output import is_terminal  # noqa: PLC0415

    if not is_terminal():
        msg = "it needs a terminal; jpsi ls lists the jobs"
        raise click.UsageError(msg)
    try:
        from .top import top  # noqa: PLC0415
    except ModuleNotFoundError as e:
        if e.name is None or e.name.partition(".")[0] != "textual":
            raise
        messages.error("jpsi top needs textual: pip install 'jpsi-cli[top]'")
        return exit_codes.JPSI
    return top()


def _need_jobs(jobs: Sequence[str]) -> None:
    if not jobs:
        msg = "name a job, by its id, its native id or its name; jpsi ls shows them"
        raise click.UsageError(msg)


#: `jpsi ls`
LS = command(
    "ls",
    params=list(LS_PARAMETERS),
    callback=_ls,
    short_help="List your jobs, of all executors and targets.",
    help="""List your jobs, of all executors and targets, the newest last.

    Jobs that have not ended are shown, and those that ended within a day. What is shown is what jobs and
    programs have left on disk, which is the same in every terminal; batch systems are asked only with
    --refresh, which brings to light the ends of jobs that left nothing, and why jobs wait. With
    the name of a target of another machine (-x), it also finds jobs that were submitted there from elsewhere.
    """,
    epilog="""\b
Examples:
  jpsi ls
  jpsi ls --state failed --since 2h
  jpsi ls --name 'sim-*' --ids | xargs jpsi cancel
  jpsi ls --watch --refresh
  jpsi ls --refresh -x cluster

\b
Exit codes:
  0  the jobs were listed, even if there are none
  2  a mistake in the command line
  125  jpsi failed: the configuration is wrong, or jobs cannot be read
""",
)

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
        JOB,
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

#: `jpsi top`
TOP = command(
    "top",
    params=[],
    callback=_top,
    short_help="Show your jobs on the whole terminal, with their output.",
    help="""Show your jobs on the whole terminal, with the output of one of them as it comes.

    Jobs can be filtered, explained and cancelled there. It takes the extra `top`:
    pip install 'jpsi-cli[top]'.
    """,
    epilog="""\b
Exit codes:
  0  it was left with q
  2  a mistake in the command line, or there is no terminal
  125  textual is not installed
""",
)
