"""The command `jpsi doctor`, with its options and help text."""

from __future__ import annotations

import click

from ..options import SETTINGS, executor_option, require_executor


def _doctor(*, executor: str | None, timeout: str, submits_jobs: bool, as_json: bool) -> int:
    require_executor(executor)
    from .examination import doctor  # noqa: PLC0415  help is shown without waiting for the library

    return doctor(executor, timeout=timeout, submits_jobs=submits_jobs, as_json=as_json)


#: `jpsi doctor`
DOCTOR = click.Command(
    "doctor",
    params=[
        executor_option(),
        click.Option(
            ["--wait", "timeout"],
            metavar="TIME",
            default="3m",
            help="How long to wait for the probe jobs, including their time in the queue.  [default: 3m]",
        ),
        click.Option(["--no-job", "submits_jobs"], flag_value=False, default=True, help="Submit no job."),
        click.Option(["--json", "as_json"], is_flag=True, help="Write JSON."),
    ],
    callback=_doctor,
    context_settings=SETTINGS,
    short_help="Check whether jobs run on an executor, and what to configure if they do not.",
    help="""Check whether jobs run on an executor, and what to put into the configuration if they do not.

    It looks for the commands of the batch system, queries it, and submits three small jobs that take a second
    each: one without requests, one with a long name, and one that requests memory. It changes nothing, and
    cancels probe jobs that do not end.
    """,
    epilog="""\b
Examples:
  jpsi doctor -x slurm
  jpsi doctor -x cluster --no-job
  jpsi doctor --json | jq .configuration

\b
Exit codes:
  0  jobs run; warnings name what is missing
  1  jobs do not run
  2  a mistake in the command line
  125  jpsi failed: no such executor, or the configuration is wrong
""",
)
