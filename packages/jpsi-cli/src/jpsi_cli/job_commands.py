"""The commands about jobs that outlive them: how each is called, and what its help says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import click

from . import completion
from .commands import SETTINGS, missing, unclear
from .grouped import GroupedCommand
from .job_arguments import (
    ATTACH_PARAMETERS,
    JOBS,
    JSON,
    LOGS_PARAMETERS,
    LS_PARAMETERS,
    REFRESH,
    SCRIPT_PARAMETERS,
    SUBMIT_PARAMETERS,
    VALIDATE_PARAMETERS,
    WAIT_PARAMETERS,
)

# Imports stand in the functions: help and mistakes are told without waiting for the library.

_JOB = """JOB is the id of a job or its beginning, a native id, or a name. Jobs of all your programs,
    executors and targets are found. What may be several jobs is refused, and they are named."""


def _submit(  # noqa: PLR0913  all that is not a field of the job
    *,
    command: tuple[str, ...],
    executor: str | None,
    files: tuple[str, ...],
    many: str | None,
    expand: bool,
    as_json: bool,
    **given: str | bool | tuple[str, ...] | None,
) -> int:
    mistake = _unclear(command, files, many, is_expanding=expand)
    mistake = mistake or missing({"executor": executor, "many": many, **given})
    if mistake is not None:
        raise click.UsageError(mistake)
    from .submit import submit  # noqa: PLC0415

    return submit(
        command, given, executor=executor, files=files, many=many, is_expanding=expand, as_json=as_json
    )


def _script(
    *,
    command: tuple[str, ...],
    executor: str | None,
    file: str | None,
    expand: bool,
    as_json: bool,
    **given: str | bool | tuple[str, ...] | None,
) -> int:
    mistake = unclear(command, file, is_expanding=expand)
    mistake = mistake or missing({"executor": executor, "file": file, **given})
    if mistake is not None:
        raise click.UsageError(mistake)
    from .script import script  # noqa: PLC0415

    return script(command, given, executor=executor, file=file, is_expanding=expand, as_json=as_json)


def _validate(*, files: tuple[str, ...], executor: str | None, as_json: bool) -> int:
    if not files:
        msg = "name a job document: -f FILE"
        raise click.UsageError(msg)
    mistake = missing({"executor": executor})
    if mistake is not None:
        raise click.UsageError(mistake)
    from .validate import validate  # noqa: PLC0415

    return validate(files, executor=executor, as_json=as_json)


def _unclear(
    command: tuple[str, ...], files: tuple[str, ...], many: str | None, *, is_expanding: bool
) -> str | None:
    """Why it is not clear which jobs are meant."""
    named = [f"-f {files[0]}"] if files else []
    named += [] if many is None else [f"--many {many}"]
    named += [f"the command {command[0]!r}"] if command else []
    if not named:
        return "no command to submit; type it after --, or name a job document: -f FILE"
    if len(named) > 1:
        return f"{' and '.join(named)} are different jobs; give one of them"
    if is_expanding and not command:
        return "--expand is about a COMMAND; the arguments in a document are always expanded"
    if files.count("-") > 1:
        return "standard input can be read once only"
    return None


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
    import jpsi  # noqa: PLC0415

    from .ls import RECENT, Form, Wanted, ls  # noqa: PLC0415
    from .terminal import is_terminal  # noqa: PLC0415

    if is_watching and not is_terminal():
        msg = "--watch needs a terminal"
        raise click.UsageError(msg)
    recent = RECENT if since is None else _time(since, "--since")
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


def _wait(*, jobs: tuple[str, ...], timeout: str | None, as_json: bool) -> int:
    _need_jobs(jobs)
    from .wait import wait  # noqa: PLC0415

    return wait(jobs, limit=None if timeout is None else _time(timeout, "--timeout"), as_json=as_json)


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


def _explain(*, job: str | None, as_json: bool) -> int:
    _need_jobs([job] if job else ())
    from .explain_job import explain_job  # noqa: PLC0415

    return explain_job(str(job), as_json=as_json)


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


def _need_jobs(jobs: Sequence[str]) -> None:
    if not jobs:
        msg = "name a job, by its id, its native id or its name; jpsi ls shows them"
        raise click.UsageError(msg)


def _time(text: str, option: str) -> timedelta:
    from . import quantities  # noqa: PLC0415

    try:
        return quantities.duration(text)
    except ValueError as e:
        msg = f"{option}: {e}"
        raise click.UsageError(msg) from e


def _command(name: str, **attributes: Any) -> click.Command:  # noqa: ANN401  click's own
    return click.Command(name, context_settings=SETTINGS, **attributes)


#: `jpsi submit`
SUBMIT = GroupedCommand(
    "submit",
    usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE [-f FILE]...", "[OPTIONS] --many FILE"],
    params=list(SUBMIT_PARAMETERS),
    callback=_submit,
    # Options end where the command begins: `jpsi submit ls -l` needs no `--`.
    context_settings={**SETTINGS, "allow_interspersed_args": False},
    short_help="Submit jobs, print their ids, and leave them to themselves.",
    help="""Submit jobs, print the id of each on a line, and leave them to themselves.

    `jpsi ls`, `show`, `wait`, `logs` and `cancel` find them again. Output that is given no file is kept with
    the job, for `jpsi logs`.
    """,
    epilog="""\b
Examples:
  jpsi submit -x slurm --time 1h --processes 64 --launcher srun -- ./simulate
  jpsi submit -f one.yaml -f two.yaml
  jpsi submit --many steps.jsonl --queue long
  id=$(jpsi submit -- make) && jpsi wait $id

\b
Exit codes:
  0  all jobs were submitted
  2  a mistake in the command line or a document; nothing was submitted
  125  jobs could not be submitted; the ids of those that were are printed
""",
)

#: `jpsi script`
SCRIPT = GroupedCommand(
    "script",
    usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE"],
    params=list(SCRIPT_PARAMETERS),
    callback=_script,
    context_settings={**SETTINGS, "allow_interspersed_args": False},
    short_help="Show what would be submitted, and by which command.",
    help="""Show what would be submitted, and by which command; nothing is sent, and nothing written.

    First the command, then what the batch system reads, then the script of the job, which runs where the job
    does. On this machine there is no batch system.
    """,
    epilog="""\b
Examples:
  jpsi script -x slurm --time 1h --processes 64 --launcher srun -- ./simulate
  jpsi script -f job.yaml --queue debug

\b
Exit codes:
  0  it was shown
  2  a mistake in the command line or a document, or the job can never run there
  125  jpsi failed
""",
)

#: `jpsi validate`
VALIDATE = _command(
    "validate",
    params=list(VALIDATE_PARAMETERS),
    callback=_validate,
    short_help="Say what is wrong with job documents.",
    help="""Say what is wrong with job documents: all of it, each mistake with its place. None is submitted.

    With -x, what their executor would refuse is told as well.
    """,
    epilog="""\b
Examples:
  jpsi validate -f job.yaml
  jpsi validate -x slurm -f one.yaml -f two.yaml

\b
Exit codes:
  0  all are valid
  2  one is not, or a mistake in the command line
  125  jpsi failed: no such executor
""",
)

#: `jpsi ls`
LS = _command(
    "ls",
    params=list(LS_PARAMETERS),
    callback=_ls,
    short_help="List your jobs, of all executors and targets.",
    help="""List your jobs, of all executors and targets, the newest last.

    Jobs that have not ended are shown, and those that ended within a day. What is shown is what jobs and
    programs have left on disk, which is the same in every terminal; batch systems are asked only with
    --refresh, which brings to light the ends of jobs that left nothing, and why jobs wait.
    """,
    epilog="""\b
Examples:
  jpsi ls
  jpsi ls --state failed --since 2h
  jpsi ls --name 'sim-*' --ids | xargs jpsi cancel
  jpsi ls --watch --refresh

\b
Exit codes:
  0  the jobs were listed, even if there are none
  2  a mistake in the command line
  125  jpsi failed: the configuration is wrong, or jobs cannot be read
""",
)

#: `jpsi show`
SHOW = _command(
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

#: `jpsi wait`
WAIT = _command(
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
CANCEL = _command(
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
HOLD = _command(
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
RELEASE = _command(
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
LOGS = _command(
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

#: `jpsi attach`
ATTACH = _command(
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

#: `jpsi explain`
EXPLAIN = _command(
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

#: `jpsi top`
TOP = _command(
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

#: In the order of the help.
JOB_COMMANDS = (SUBMIT, SCRIPT, VALIDATE, LS, SHOW, EXPLAIN, WAIT, CANCEL, HOLD, RELEASE, LOGS, TOP, ATTACH)
