"""Defines the commands about submitted jobs, with their options and help texts."""

from __future__ import annotations

import os

import click

from .. import exit_codes, messages
from ..options import (
    JOBS,
    JSON_LINES,
    LOGS_PARAMETERS,
    LS_PARAMETERS,
    SHOW_PARAMETERS,
    USAGE_PARAMETERS,
    WAIT_PARAMETERS,
    command,
    json_option,
)

_JOB_HELP = """JOB is the id of a job or a prefix of it, a native id, or a name. jpsi looks among the jobs of
    all your programs, executors and targets. A name stands for all jobs that have it, and the id of an
    array for all its jobs; NAME[3] and ID[3-5,8] are those with these indices of --array alone. If the
    beginning of an id fits several, jpsi names them and does nothing."""


def _check_ls(
    *, only_ids: bool, as_json: bool, is_watching: bool, is_all: bool, since: str | None, **_: object
) -> str | None:
    if sum([only_ids, as_json, is_watching]) > 1:
        return "--ids, --json and --watch exclude each other; use one of them"
    if is_all and since is not None:
        return "--all and --since exclude each other; use one of them"
    return "--watch needs a terminal" if is_watching and not os.isatty(messages.STDOUT) else None


def _check_usage(*, jobs: tuple[str, ...], since: str | None, **_: object) -> str | None:
    return None if jobs or since is not None else "name jobs, or a time: --since 7d"


def _top() -> int:
    if not os.isatty(messages.STDOUT):
        msg = "jpsi top needs a terminal; jpsi ls lists the jobs"
        raise click.UsageError(msg)
    try:
        from .top import top  # noqa: PLC0415  help and usage errors do not wait for the library
    except ModuleNotFoundError as e:
        if e.name is None or e.name.partition(".")[0] != "textual":
            raise
        from jpsi.plugin import install_command  # noqa: PLC0415  as above

        messages.error(f"jpsi top needs textual; try: {install_command('jpsi-cli[top]')}")
        return exit_codes.JPSI
    return top()


#: `jpsi ls`
LS = command(
    "ls",
    "jobs.ls:ls",
    LS_PARAMETERS,
    check=_check_ls,
    short_help="List your jobs, of all executors and targets.",
    help="""List your jobs, of all executors and targets, the newest last.

    It lists jobs that have not ended, and those that ended within a day; or the jobs that JOB means, an id,
    a native id or a name, however long ago they ended. It reads the files of the jobs and
    queries no batch system. With --refresh it also queries the batch systems, which know why jobs wait, and
    how jobs ended that left no exit code. With --refresh and -x TARGET on a remote host, it also finds the
    jobs that you submitted to that target from other machines.
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
    "jobs.show:show",
    SHOW_PARAMETERS,
    short_help="Show everything that is known about jobs.",
    help=f"""Show everything that is known about jobs: states with times, ids, files, and the request.

    With --document, show the request alone, as a job document.

    {_JOB_HELP}
    """,
    epilog="""\b
Exit codes:
  0  the jobs were shown
  2  a mistake in the command line: JOB means no job, or is not unique
  125  jpsi failed
""",
)

#: `jpsi explain`
EXPLAIN = command(
    "explain",
    "jobs.explain:explain",
    [
        json_option("Write a line of JSON for each explanation."),
        JOBS,
    ],
    short_help="Say why jobs wait, or ended as they did, and what to change.",
    help=f"""Say in a sentence why each job waits, or ended as it did, and what to change.

    It uses the batch system's reason, the exit code or signal, the resources that were requested, and the
    last lines of standard error. If the job has not ended, it queries the batch system. Of the jobs of one
    array, name or program, it explains one of those that have the same state, reason and exit code.

    {_JOB_HELP}
    """,
    epilog="""\b
Exit codes:
  0  the jobs were explained
  2  a mistake in the command line: JOB means no job, or is the beginning of several ids
  125  jpsi failed
""",
)

#: `jpsi usage`
USAGE = command(
    "usage",
    "jobs.usage:usage",
    USAGE_PARAMETERS,
    check=_check_usage,
    short_help="Show what jobs used of what they requested, and what to request.",
    help=f"""Show how much time, how many cores and how much memory jobs that have ended used, and the share
    of what they requested; and what a job like them may request.

    CORES is how many were busy on average. Memory with >= is that of the largest process alone. A - stands
    for what nothing has measured.

    {_JOB_HELP}
    """,
    epilog="""\b
Examples:
  jpsi usage sim-1
  jpsi usage --since 7d
  jpsi submit --like sim-1 --name sim-2 -- ./solve case-2

\b
Exit codes:
  0  the jobs were shown
  2  a mistake in the command line: JOB means no job, or is not unique
  125  jpsi failed
""",
)

#: `jpsi wait`
WAIT = command(
    "wait",
    "jobs.wait:wait",
    WAIT_PARAMETERS,
    short_help="Wait until jobs have ended, and exit with their exit code.",
    help=f"""Wait until jobs have ended, and exit with the exit code of the first that did not end well.

    On a terminal a bar shows how many have ended. Ctrl-C stops waiting; the jobs go on.

    {_JOB_HELP}
    """,
    epilog="""\b
Exit codes, besides those of the jobs, which are as for jpsi run:
  0  all jobs completed
  2  a mistake in the command line: JOB means no job, or is not unique
  124  --timeout has passed, or a job exceeded its time limit
  125  jpsi failed, or lost a job without an exit code
  130  a job was cancelled, or Ctrl-C stopped the waiting
""",
)

#: `jpsi cancel`
CANCEL = command(
    "cancel",
    "jobs.control:cancel",
    [JSON_LINES, JOBS],
    short_help="Cancel jobs.",
    help=f"""Cancel jobs, wherever they run. Jobs that have already ended are skipped.

    It waits up to 10 seconds until they have ended, and reports how many take longer.

    {_JOB_HELP}
    """,
    epilog="""\b
Exit codes:
  0  all jobs were cancelled, or had already ended
  2  a mistake in the command line: JOB means no job, or is not unique; nothing was done
  125  a job could not be cancelled
""",
)

_CONTROL_EXIT_CODES = """\b
Exit codes:
  0  all jobs were changed
  2  a mistake in the command line: JOB means no job, or is not unique; nothing was done
  125  a job could not be changed: it runs or has ended, or its batch system refuses
"""

#: `jpsi hold`
HOLD = command(
    "hold",
    "jobs.control:hold",
    [JOBS],
    short_help="Hold queued jobs, so that they do not start.",
    help=f"""Hold queued jobs: they do not start until `jpsi release`.

    {_JOB_HELP}
    """,
    epilog=_CONTROL_EXIT_CODES,
)

#: `jpsi release`
RELEASE = command(
    "release",
    "jobs.control:release",
    [JOBS],
    short_help="Release held jobs, so that they can start.",
    help=f"""Release held jobs, so that they can start.

    {_JOB_HELP}
    """,
    epilog=_CONTROL_EXIT_CODES,
)

#: `jpsi logs`
LOGS = command(
    "logs",
    "jobs.logs:logs",
    LOGS_PARAMETERS,
    short_help="Show the output of jobs.",
    help=f"""Show the output of jobs so far, one after the other, or with -f follow that of one job.

    {_JOB_HELP}
    """,
    epilog="""\b
Exit codes:
  0  the output was shown, or the job has written nothing yet
  2  a mistake in the command line: JOB means no job, or is not unique
  125  there is no output, or it cannot be read
""",
)

#: `jpsi top`
TOP = command(
    "top",
    _top,
    short_help="Show your jobs on the whole terminal, with their output.",
    help="""Show your jobs on the whole terminal, and follow the output of one of them.

    You can filter, explain and cancel jobs there. It needs the extra `top` of jpsi-cli; if that is not
    installed, the command says how to install it.
    """,
    epilog="""\b
Exit codes:
  0  the user quit with q
  2  a mistake in the command line, or there is no terminal
  125  textual is not installed
""",
)
