"""The parameters of the commands about jobs, in the order of their help."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import click

from . import completion
from .click_commands import GroupedOption
from .job_options import RUN_PARAMETERS

_job_option = partial(GroupedOption, group="What runs where")
_stream_option = partial(GroupedOption, group="Input and output")


def parse_duration(text: str, option: str) -> timedelta:
    """Return a duration that the user typed; raise UsageError if it is none."""
    from ..output import quantities  # noqa: PLC0415  help is shown without waiting for the library

    try:
        return quantities.parse_duration(text)
    except ValueError as e:
        msg = f"{option}: {e}"
        raise click.UsageError(msg) from e


#: The argument JOB, and one or more of them.
JOB = click.Argument(["job"], metavar="JOB", required=False, shell_complete=completion.jobs)
JOBS = click.Argument(["jobs"], nargs=-1, metavar="JOB...", shell_complete=completion.jobs)
JSON = click.Option(["--json", "as_json"], is_flag=True, help="Write JSON: an object for each job.")
REFRESH = click.Option(
    ["--refresh", "is_refreshing"],
    is_flag=True,
    help="Query the batch systems once about jobs that have not ended; without this, only files are read.",
)
EXECUTOR = click.Option(
    ["--executor", "-x"],
    metavar="NAME",
    help="The executor or target.  [default: the configured one, else local]",
    shell_complete=completion.executors,
)

_OVERRIDES = {
    "file": _job_option(
        "--file",
        "-f",
        "files",
        metavar="FILE",
        multiple=True,
        help="Submit what this job document (YAML or JSON) describes instead of a COMMAND; - is standard "
        "input. Can be repeated. Other options override the documents.",
    ),
    "stdout": _stream_option(
        "--stdout", metavar="FILE", help="Write output to FILE, relative to the job's directory."
    ),
    "stderr": _stream_option("--stderr", metavar="FILE", help="Write errors to FILE."),
    "as_json": _stream_option(
        "--json", "as_json", is_flag=True, help="Write a line of JSON for each job instead of its id."
    ),
}
_MANY_OPTION = _job_option(
    "--many",
    metavar="FILE",
    help="Submit a job for each line of FILE, which is a job document in JSON; - is standard input. "
    "Jobs that are alike become one array if the batch system has arrays.",
)


def _submit_parameters(parameter: click.Parameter) -> list[click.Parameter]:
    own = _OVERRIDES.get(str(parameter.name), parameter)
    return [own, _MANY_OPTION] if parameter.name == "file" else [own]


#: Of `jpsi submit`.
SUBMIT_PARAMETERS: tuple[click.Parameter, ...] = tuple(
    own for parameter in RUN_PARAMETERS for own in _submit_parameters(parameter)
)

#: Of `jpsi script`.
SCRIPT_PARAMETERS: tuple[click.Parameter, ...] = tuple(
    {
        "file": _job_option(
            "--file",
            "-f",
            metavar="FILE",
            help="Show this job document (YAML or JSON) instead of a COMMAND; - is standard input. "
            "Other options override the document.",
        ),
        "stdout": _OVERRIDES["stdout"],
        "stderr": _OVERRIDES["stderr"],
        "as_json": _stream_option("--json", "as_json", is_flag=True, help="Write a JSON object."),
    }.get(str(parameter.name), parameter)
    for parameter in RUN_PARAMETERS
)

#: Of `jpsi validate`.
VALIDATE_PARAMETERS: tuple[click.Parameter, ...] = (
    click.Option(
        ["--file", "-f", "files"],
        metavar="FILE",
        multiple=True,
        help="A job document (YAML or JSON); - is standard input. Can be repeated.",
    ),
    click.Option(
        ["--many"],
        metavar="FILE",
        help="A file with a job document in JSON on each line; - is standard input.",
    ),
    click.Option(
        ["--executor", "-x"],
        metavar="NAME",
        help="Check also whether this executor or target would accept the jobs.",
        shell_complete=completion.executors,
    ),
    click.Option(["--json", "as_json"], is_flag=True, help="Write a JSON array with an object for each."),
)

#: Of `jpsi ls`.
LS_PARAMETERS: tuple[click.Parameter, ...] = (
    click.Option(["--all", "-a", "is_all"], is_flag=True, help="Show all jobs, however long ago they ended."),
    click.Option(
        ["--since"],
        metavar="TIME",
        help="Show jobs that ended within this time, such as 2h.  [default: 1 day]",
    ),
    click.Option(
        ["--state", "-s", "states"],
        metavar="STATE",
        multiple=True,
        type=click.Choice(
            ["NEW", "QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"], case_sensitive=False
        ),
        help="Show jobs in this state. Can be repeated.",
    ),
    click.Option(
        ["--executor", "-x"],
        metavar="NAME",
        help="Show jobs of this executor or target.",
        shell_complete=completion.executors,
    ),
    click.Option(
        ["--name"], metavar="PATTERN", help="Show jobs whose name matches PATTERN: * matches anything."
    ),
    click.Option(["--ids", "-q", "only_ids"], is_flag=True, help="Write only the ids."),
    JSON,
    REFRESH,
    click.Option(
        ["--watch", "-w", "is_watching"],
        is_flag=True,
        help="Show the jobs on the whole terminal and update them until Ctrl-C.",
    ),
)

#: Of `jpsi wait`.
WAIT_PARAMETERS: tuple[click.Parameter, ...] = (
    click.Option(["--timeout"], metavar="TIME", help="Wait no longer than this.  [default: no limit]"),
    JSON,
    JOBS,
)

#: Of `jpsi logs`.
LOGS_PARAMETERS: tuple[click.Parameter, ...] = (
    click.Option(
        ["--follow", "-f", "is_following"], is_flag=True, help="Follow the output until the job has ended."
    ),
    click.Option(
        ["--stderr", "is_stderr"], is_flag=True, help="Show standard error instead of standard output."
    ),
    JOB,
)

#: Of `jpsi attach`.
ATTACH_PARAMETERS: tuple[click.Parameter, ...] = (
    EXECUTOR,
    click.Option(
        ["--json", "as_json"],
        is_flag=True,
        help="Write each state of the job as a line of JSON to standard error.",
    ),
    click.Argument(["native_id"], metavar="NATIVE_ID", required=False),
)
