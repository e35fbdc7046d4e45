"""The commands about all jobs, or about jobs of others: how each is called, and what its help says."""

from __future__ import annotations

import click

from .commands import command, missing
from .job_arguments import ATTACH_PARAMETERS, LS_PARAMETERS, duration

# Imports stand in the functions: help and mistakes are told without waiting for the library.


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
    mistake = missing({"executor": executor})
    if mistake is not None:
        raise click.UsageError(mistake)
    import jpsi  # noqa: PLC0415

    from .ls import RECENT, Form, Wanted, ls  # noqa: PLC0415
    from .terminal import is_terminal  # noqa: PLC0415

    if is_watching and not is_terminal():
        msg = "--watch needs a terminal"
        raise click.UsageError(msg)
    recent = RECENT if since is None else duration(since, "--since")
    wanted = Wanted(
        states=frozenset(jpsi.JobState(state.upper()) for state in states),
        executor=executor,
        name=name,
        since=None if is_all else recent,
    )
    form = Form(as_json=as_json, only_ids=only_ids, is_refreshing=is_refreshing, is_watching=is_watching)
    return ls(wanted, form)


def _top() -> int:
    from . import codes, messages  # noqa: PLC0415
    from .terminal import is_terminal  # noqa: PLC0415

    if not is_terminal():
        msg = "it needs a terminal; jpsi ls lists the jobs"
        raise click.UsageError(msg)
    try:
        from .top import top  # noqa: PLC0415
    except ModuleNotFoundError as e:
        if e.name is None or e.name.partition(".")[0] != "textual":
            raise
        messages.error("jpsi top needs textual: pip install 'jpsi-cli[top]'")
        return codes.JPSI
    return top()


def _attach(*, native_id: str | None, executor: str | None, as_json: bool) -> int:
    if not native_id:
        msg = "name a job by its native id"
        raise click.UsageError(msg)
    mistake = missing({"executor": executor})
    if mistake is not None:
        raise click.UsageError(mistake)
    from .attach import attach  # noqa: PLC0415

    return attach(native_id, executor=executor, as_json=as_json)


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

#: `jpsi attach`
ATTACH = command(
    "attach",
    params=list(ATTACH_PARAMETERS),
    callback=_attach,
    short_help="Follow any job of a batch system by its native id.",
    help="""Follow a job of a batch system, whoever submitted it and however, and exit with its exit code.

    On a terminal its states are shown. Ctrl-C leaves the job alone.
    """,
    epilog="""\b
Examples:
  jpsi attach -x slurm 4711

\b
Exit codes are as for jpsi run; 125 if there is no such job, and 130 after Ctrl-C.
""",
)
