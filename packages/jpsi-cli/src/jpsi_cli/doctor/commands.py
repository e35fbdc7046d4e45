"""The command `jpsi doctor`, with its options and help text."""

from __future__ import annotations

import click

from ..options import SETTINGS, executor_option, require_executor


def _doctor(*, executor: str | None, patience: str, is_trying: bool, as_json: bool) -> int:
    require_executor(executor)
    from .examination import doctor  # noqa: PLC0415  help is shown without waiting for the library

    return doctor(executor, patience=patience, is_trying=is_trying, as_json=as_json)


#: `jpsi doctor`
DOCTOR = click.Command(
    "doctor",
    params=[
        executor_option(),
        click.Option(
            ["--wait", "patience"],
            metavar="TIME",
            default="3m",
            help="How long the jobs that are tried may take, waiting in the queue included.  [default: 3m]",
        ),
        click.Option(["--no-job", "is_trying"], flag_value=False, default=True, help="Submit no job."),
        click.Option(["--json", "as_json"], is_flag=True, help="Write JSON."),
    ],
    callback=_doctor,
    context_settings=SETTINGS,
    short_help="See whether jobs run on an executor, and what to configure if they do not.",
    help="""See whether jobs run on an executor, and what to put into the configuration if they do not.

    The commands of the batch system are looked for and asked, and three small jobs are submitted, which take
    a second each: one that asks for nothing, one with a long name, and one that asks for memory. Nothing is
    changed, and no job is left behind.
    """,
    epilog="""\b
Examples:
  jpsi doctor -x slurm
  jpsi doctor -x cluster --no-job
  jpsi doctor --json | jq .configuration

\b
Exit codes:
  0  jobs run; warnings tell what jpsi has to do without
  1  jobs do not run
  2  a mistake in the command line
  125  jpsi failed: no such executor, or the configuration is wrong
""",
)
