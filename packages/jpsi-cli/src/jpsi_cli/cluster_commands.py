"""The commands of `jpsi` that are about a batch system: how each is called, and what its help says."""

from __future__ import annotations

import click

from . import completion
from .commands import SETTINGS, missing

_WHOSE = "The executor, or target of the configuration.  [default: the configured one, else local]"


def _executor(text: str) -> click.Option:
    return click.Option(["--executor", "-x"], metavar="NAME", help=text, shell_complete=completion.executors)


def _need_value(executor: str | None) -> None:
    mistake = missing({"executor": executor})
    if mistake is not None:
        raise click.UsageError(mistake)


def _convert(*, file: str, executor: str | None, as_json: bool) -> int:
    _need_value(executor)
    # Help and mistakes are told without waiting for the library.
    from .convert import convert  # noqa: PLC0415

    return convert(file, executor=executor, as_json=as_json)


#: `jpsi convert`
CONVERT = click.Command(
    "convert",
    params=[
        _executor("The executor that SCRIPT is for.  [default: the one that knows its directives]"),
        click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, with what is not carried over."),
        click.Argument(["file"], metavar="SCRIPT"),
    ],
    callback=_convert,
    context_settings=SETTINGS,
    short_help="Make a job document of a script with #SBATCH, #PBS, #BSUB, #$ or # flux: lines.",
    help="""Make a job document of SCRIPT, which was written for a batch system, on standard output.

    The job runs SCRIPT as it is, once, where the batch system would run it, with what its directives ask for.
    What cannot be carried over is told on standard error.
    """,
    epilog="""\b
Examples:
  jpsi convert job.sh > job.yaml
  jpsi convert -x torque job.pbs
  jpsi convert --json job.sh | jq .lost

\b
Exit codes:
  0  a document was written
  2  a mistake in the command line, or SCRIPT cannot be read or has no directives
  125  jpsi failed: no such executor, or the configuration is wrong
""",
)


def _queues(*, executor: str | None, as_json: bool) -> int:
    _need_value(executor)
    from .queues import queues  # noqa: PLC0415  as above

    return queues(executor, as_json=as_json)


#: `jpsi queues`
QUEUES = click.Command(
    "queues",
    params=[
        _executor(_WHOSE),
        click.Option(["--json", "as_json"], is_flag=True, help="Write a JSON array with an object for each."),
    ],
    callback=_queues,
    context_settings=SETTINGS,
    short_help="Show the queues of a batch system, with their limits and states.",
    help="""Show the queues or partitions of a batch system, one a line, as it describes them now.

    A star stands behind the one where jobs go that name none. LONGEST is how long a job may run, USUAL how
    long one may that does not say; jpsi always says. Columns of which nothing is known are left out.
    """,
    epilog="""\b
Examples:
  jpsi queues
  jpsi queues -x pbs --json

\b
Exit codes:
  0  the queues were shown
  2  a mistake in the command line
  125  jpsi failed: no such executor, it has no queues, or the batch system does not answer
""",
)


def _doctor(*, executor: str | None, patience: str, is_trying: bool, as_json: bool) -> int:
    _need_value(executor)
    from .doctor import doctor  # noqa: PLC0415  as above

    return doctor(executor, patience=patience, is_trying=is_trying, as_json=as_json)


#: `jpsi doctor`
DOCTOR = click.Command(
    "doctor",
    params=[
        _executor(_WHOSE),
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
