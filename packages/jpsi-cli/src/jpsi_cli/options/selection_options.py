"""Defines the options and arguments of the commands about jobs, in the order of their help.

Those that `jpsi run` has, too, are in `job_options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeVar

import click

from . import completion
from .click_commands import (
    executor_option,
    flag,
    grouped_flag,
    grouped_option,
    json_option,
    option,
    require_value,
)
from .foreign_options import REFUSED_OPTIONS
from .job_options import RUN_PARAMETERS

T = TypeVar("T")


def _require_job(_: click.Context, __: click.Parameter, value: T) -> T:
    if not value:
        msg = "name a job by its id, its native id or its name; jpsi ls shows them"
        raise click.UsageError(msg)
    return value


#: One or more arguments JOB.
JOBS = click.Argument(
    ["jobs"], nargs=-1, metavar="JOB...", shell_complete=completion.jobs, callback=_require_job
)
JSON = json_option("Write a JSON array with an object for each job.")
#: For commands that report jobs one by one.
JSON_LINES = json_option("Write a line of JSON for each job.")
REFRESH = flag(
    "--refresh is_refreshing",
    "Query the batch systems once about jobs that have not ended; without this, only files are read.",
)
_STATE = click.Choice(["NEW", "QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"], case_sensitive=False)


def _parse_limit(_: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    from ..output import quantities  # noqa: PLC0415  the help needs no library

    try:
        return None if text is None else quantities.parse_count(text)
    except ValueError as e:
        raise click.BadParameter(str(e), param=parameter) from e


def _split_states(ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    found = []
    for typed in (it for text in texts for it in text.split(",")):
        # the word of jpsi's own sentences, and of Slurm
        state = typed.upper().replace("CANCELLED", "CANCELED")
        if state not in _STATE.choices:
            msg = f"{typed!r} is not one of {', '.join(_STATE.choices)}"
            raise click.BadParameter(msg, ctx, parameter)
        found.append(state)
    return tuple(found)


_file_option = partial(grouped_option, "What runs where")
_STREAM = "Input and output"
_STREAMS: dict[str | None, click.Parameter] = {
    "stdout": grouped_option(
        _STREAM, "--stdout -o", "FILE", "Write output to FILE, relative to the job's directory."
    ),
    "stderr": grouped_option(_STREAM, "--stderr -e", "FILE", "Write errors to FILE."),
}


def _override(replacements: Mapping[str | None, click.Parameter]) -> list[click.Parameter]:
    """Return the parameters of `jpsi run`, with replacements for those of the same names."""
    return [replacements.get(it.name, it) for it in RUN_PARAMETERS]


_JSON_LINES = grouped_flag(_STREAM, "--json as_json", "Write a line of JSON for each job instead of its id.")
_SUBMIT = _override(
    {
        **_STREAMS,
        "file": _file_option(
            "--file -f files",
            "FILE",
            "Submit what this job document (YAML or JSON) describes instead of a COMMAND; - is standard "
            "input. Can be repeated. Other options override the documents.",
            multiple=True,
        ),
        "as_json": _JSON_LINES,
    }
)
_MANY_OPTION = _file_option(
    "--many",
    "FILE",
    "Submit a job for each line of FILE, which is a job document in JSON; - is standard input. "
    "Jobs that are alike become one array if the batch system has arrays.",
)
_ARRAY_OPTION = _file_option(
    "--array -a",
    "INDICES[%N]",
    "Submit a job for each index, such as 1-100 or 0-9:3,20, as one array; no more than N run at a time. "
    "JPSI_ARRAY_INDEX in the environment of a job, and %a in --stdin, --stdout and --stderr, are its index.",
)
_HOLD_FLAG = grouped_flag("Batch system", "--hold", "Submit the jobs held: they start after jpsi release.")
#: Of `jpsi submit`.
SUBMIT_PARAMETERS = (*_SUBMIT[:2], _MANY_OPTION, _ARRAY_OPTION, *_SUBMIT[2:-1], _HOLD_FLAG, _SUBMIT[-1])

#: Of `jpsi resubmit`: what the same job may need more of.
RESUBMIT_PARAMETERS = (
    grouped_flag(
        "What runs where",
        "--failed only_failed",
        "Submit only the jobs that have failed or were cancelled, and that were not resubmitted before.",
    ),
    grouped_flag(
        "Directory and environment",
        "--create-dir",
        "Make the directory of the old jobs if it does not exist.",
    ),
    *(it for it in RUN_PARAMETERS if getattr(it, "group", "") in {"Resources", "Batch system"}),
    _JSON_LINES,
    *REFUSED_OPTIONS,
    JOBS,
)

_SCRIPT = _override(
    {
        **_STREAMS,
        "file": _file_option(
            "--file -f",
            "FILE",
            "Show this job document (YAML or JSON) instead of a COMMAND; - is standard input. "
            "Other options override the document.",
        ),
        "as_json": grouped_flag(_STREAM, "--json as_json", "Write a JSON object."),
    }
)
#: Of `jpsi script`.
SCRIPT_PARAMETERS = (
    *_SCRIPT[:2],
    _file_option(
        "--array -a",
        "INDICES[%N]",
        "Show the first job of such an array, without the batch system's own option for arrays.",
    ),
    *_SCRIPT[2:-1],
    grouped_flag("Batch system", "--hold", "Show the job as jpsi submit --hold submits it."),
    _SCRIPT[-1],
)

#: Of `jpsi validate`.
VALIDATE_PARAMETERS: tuple[click.Parameter, ...] = (
    option(
        "--file -f files",
        "FILE",
        "A job document (YAML or JSON); - is standard input. Can be repeated.",
        multiple=True,
    ),
    option(
        "--many",
        "FILE",
        "A file with a job document in JSON on each line; - is standard input.",
        callback=require_value,
    ),
    flag("--lenient", "Warn of unknown keys, and ignore them."),
    executor_option("Check also whether this executor or target would accept the jobs."),
    json_option(),
)

#: Of `jpsi ls`.
LS_PARAMETERS: tuple[click.Parameter, ...] = (
    flag("--all -a is_all", "Show all jobs, however long ago they ended."),
    option("--since", "TIME", "Show jobs that ended within this time, such as 2h.  [default: 1 day]"),
    option(
        "--state -s states",
        "STATE",
        "Show jobs in this state, or in one of several: FAILED,CANCELED. Can be repeated.",
        multiple=True,
        callback=_split_states,
        shell_complete=_STATE.shell_complete,
    ),
    executor_option("Show jobs of this executor or target."),
    option("--name", "PATTERN", "Show jobs whose name matches PATTERN: * matches anything."),
    option(
        "--sort",
        "KEY",
        "The order: time (of the submission, the default), name, state, executor or runtime.",
        type=click.Choice(["time", "name", "state", "executor", "runtime"], case_sensitive=False),
    ),
    option("--limit -n", "N", "Show the last N only; with --json, N jobs.", callback=_parse_limit),
    flag(
        "--members -m has_members",
        "Show each job of an array, and each task of a workflow's group, on a line.",
    ),
    flag("--ids -q only_ids", "Write only the ids: of an array its own, with --members those of its jobs."),
    JSON,
    REFRESH,
    flag("--watch -w is_watching", "Show the jobs on the whole terminal and update them until Ctrl-C."),
    click.Argument(["jobs"], nargs=-1, metavar="[JOB]...", shell_complete=completion.jobs),
)

#: Of `jpsi show`.
SHOW_PARAMETERS: tuple[click.Parameter, ...] = (
    flag(
        "--document is_document",
        "Show only the job document, for jpsi run -f -, or with --json one on each line, for "
        "jpsi submit --many -.",
    ),
    JSON,
    REFRESH,
    JOBS,
)

#: Of `jpsi wait`.
WAIT_PARAMETERS: tuple[click.Parameter, ...] = (
    option("--timeout", "TIME", "Wait no longer than this.  [default: no limit]"),
    JSON_LINES,
    JOBS,
)

#: Of `jpsi logs`.
LOGS_PARAMETERS: tuple[click.Parameter, ...] = (
    flag("--follow -f is_following", "Follow the output until the job has ended."),
    flag("--stderr is_stderr", "Show standard error instead of standard output."),
    option("--tail", "N", "Show the last N lines only.", type=click.IntRange(min=0)),
    JOBS,
)

#: Of `jpsi usage`.
USAGE_PARAMETERS: tuple[click.Parameter, ...] = (
    option("--since", "TIME", "Show jobs that ended within this time, such as 7d."),
    JSON,
    click.Argument(["jobs"], nargs=-1, metavar="[JOB]...", shell_complete=completion.jobs),
)

#: Of `jpsi attach`.
ATTACH_PARAMETERS: tuple[click.Parameter, ...] = (
    executor_option(
        "The executor or target.  [default: that of the job if known, else the configured one or local]"
    ),
    json_option(
        "Write each state of the job as a line of JSON to standard error; of an array, the end of each job "
        "to standard output."
    ),
    click.Argument(["native_id"], metavar="NATIVE_ID", required=False, shell_complete=completion.native_ids),
)
