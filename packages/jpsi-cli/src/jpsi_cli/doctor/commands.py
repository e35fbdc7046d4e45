"""Defines the command `jpsi doctor`, with its options and help text; `examination` implements it."""

from __future__ import annotations

from ..options import command, executor_option, flag, json_option, option

#: `jpsi doctor`
DOCTOR = command(
    "doctor",
    "doctor.examination:doctor",
    [
        executor_option(),
        option(
            "--wait timeout",
            "TIME",
            "How long to wait for the probe jobs, including their time in the queue.  [default: 3m]",
            default="3m",
        ),
        flag("--no-job submits_jobs", "Submit no job.", is_negative=True),
        json_option("Write JSON."),
    ],
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
  125  jpsi failed: the configuration is wrong
""",
)
