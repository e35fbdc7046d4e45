"""The commands that create jobs (`jpsi run`, `submit`, ...), with their options and help texts.

A `_check_...` function gets the parsed options before the command runs. The text that it returns becomes a
usage error (exit code 2).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from .. import exit_codes, messages
from ..options import (
    RESUBMIT_PARAMETERS,
    RUN_PARAMETERS,
    SCRIPT_PARAMETERS,
    SUBMIT_PARAMETERS,
    VALIDATE_PARAMETERS,
    command,
    executor_option,
    json_option,
)

_ARGUMENTS_OF_DOCUMENT = (
    "arguments stand in the `command` of the document; jpsi convert SCRIPT ARGS... writes those of a script"
)
_EXPAND_NEEDS_COMMAND = "--expand is about a COMMAND; the arguments in a document are always expanded"


def _check_job(*, command: tuple[str, ...], file: str | None, expand: bool, **options: object) -> str | None:
    """Return the mistake if the arguments name no job or several; None if they name one."""
    if file is None and not command:
        return "no command to run; type it after --, or name a job document: -f FILE"
    if file is not None and command:
        two = f"-f {file} and the command {command[0]!r} are two jobs"
        return f"{two}; use one of them; {_ARGUMENTS_OF_DOCUMENT}"
    if command and _is_document(command[0]):
        return f"{command[0]} is no program; if it is a job document: -f {command[0]}"
    return _EXPAND_NEEDS_COMMAND if file is not None and expand else _check_times(**options)


def _check_jobs(
    *, command: tuple[str, ...], files: tuple[str, ...], many: str | None, expand: bool, **options: object
) -> str | None:
    """Return the mistake if the arguments name no jobs, or name them in several ways; None if in one."""
    named = [f"-f {files[0]}"] if files else []
    named += [] if many is None else [f"--many {many}"]
    named += [f"the command {command[0]!r}"] if command else []
    if not named:
        return "no command to submit; type it after --, or name a job document: -f FILE"
    if len(named) > 1:
        arguments = f"; {_ARGUMENTS_OF_DOCUMENT}" if files and command else ""
        return f"{' and '.join(named)} are different jobs; use one of them{arguments}"
    if command and _is_document(command[0]):
        return f"{command[0]} is no program; if it is a job document: -f {command[0]}"
    return _EXPAND_NEEDS_COMMAND if expand and not command else _check_stdin(files) or _check_times(**options)


def _is_document(program: str) -> bool:
    """Return True if a program is a file of YAML or JSON that cannot be executed."""
    return (
        program.endswith((".yaml", ".yml", ".json"))
        and Path(program).is_file()
        and not os.access(program, os.X_OK)
    )


def _check_documents(*, files: tuple[str, ...], many: str | None, **_: object) -> str | None:
    """Return the mistake if the arguments name no document, or standard input twice; else None."""
    if not files and many is None:
        return "name a job document: -f FILE, or a file with one on each line: --many FILE"
    return _check_stdin([*files, many])


def _check_times(*, time: object, t: object, **_: object) -> str | None:
    if time is not None and t is not None:
        return "--time and -t are one option in two forms; use one of them"
    return None


def _check_stdin(files: Sequence[str | None]) -> str | None:
    return "standard input can be read once only" if files.count("-") > 1 else None


_RUN_EXIT_CODES = "\n".join(f"  {code}  {meaning}" for code, meaning in exit_codes.MEANINGS.items())

#: `jpsi run`
RUN = command(
    "run",
    "submission.run:run",
    RUN_PARAMETERS,
    check=_check_job,
    usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE"],
    # Options end where the command begins: `jpsi run ls -l` needs no `--`.
    ends_options=True,
    short_help="Run one job, show its output, and exit with its exit code.",
    help="""Run one job, show its output while it runs, and exit with its exit code.

    Ctrl-C cancels the job and waits for its end; a second Ctrl-C leaves at once. On a terminal each
    state of the job is shown on standard error; otherwise jpsi is silent unless something goes wrong.
    """,
    epilog=f"""\b
Examples:
  jpsi run -- sort -u words.txt
  jpsi run --time 10m --env LEVEL=3 --dir /scratch/me -- ./simulate --fast
  jpsi run -f job.yaml --name again
  jpsi run --expand -- echo 'at home in ${{HOME}}'

\b
Exit codes, besides the job's own:
{_RUN_EXIT_CODES}
""",
)

#: `jpsi submit`
SUBMIT = command(
    "submit",
    "submission.submit:submit",
    SUBMIT_PARAMETERS,
    check=_check_jobs,
    usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE [-f FILE]...", "[OPTIONS] --many FILE"],
    # Options end where the command begins: `jpsi submit ls -l` needs no `--`.
    ends_options=True,
    short_help="Submit jobs, print their ids, and exit.",
    help="""Submit jobs, print the id of each on a line, and exit.

    `jpsi ls`, `show`, `wait`, `logs` and `cancel` find the jobs later. Output without a file (--stdout,
    --stderr) is stored with the job, for `jpsi logs`.
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

#: `jpsi resubmit`
RESUBMIT = command(
    "resubmit",
    "submission.resubmit:resubmit",
    RESUBMIT_PARAMETERS,
    check=_check_times,
    usages=["[OPTIONS] JOB..."],
    short_help="Submit jobs again, or those of an array that failed.",
    help="""Submit new jobs with the requests of jobs that have ended, print their ids, and exit.

    JOB is an id, a native id or a name; the id of an array, and a name, stand for all their jobs, and
    NAME[3] and ID[3-5,8] for those with these indices alone. The new jobs go to the executor of the old ones,
    and run in the same directory. A job that waited for another one (--after) waits for the repetition of
    that, if that is repeated as well, or else for what has not ended yet. The elements of an array keep their
    indices, and become an array of their own. Options override the requests; --after takes the place of
    waiting for jobs that are not repeated.
    """,
    epilog="""\b
Examples:
  jpsi resubmit --failed sweep
  jpsi resubmit --failed --time 4h sweep
  jpsi resubmit --failed prep fit plot
  jpsi resubmit 4711_3

\b
Exit codes:
  0  all jobs were submitted, or with --failed there were none
  2  a mistake in the command line, or a job has not ended; nothing was submitted
  125  jobs could not be submitted; the ids of those that were are printed
""",
)

#: `jpsi script`
SCRIPT = command(
    "script",
    "submission.script:script",
    SCRIPT_PARAMETERS,
    check=_check_job,
    usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE"],
    ends_options=True,
    short_help="Show what would be submitted, and by which command.",
    help="""Show what would be submitted, and by which command; submit and write nothing.

    It shows the command, then the script that the batch system reads, then the script that runs the job. For
    the executor local it shows only the script that runs the job.
    """,
    epilog="""\b
Examples:
  jpsi script -x slurm --time 1h --processes 64 --launcher srun -- ./simulate
  jpsi script -f job.yaml --queue debug

\b
Exit codes:
  0  the script was shown
  2  a mistake in the command line or a document, or the job can never run there
  125  jpsi failed
""",
)

#: `jpsi validate`
VALIDATE = command(
    "validate",
    "submission.validate:validate",
    VALIDATE_PARAMETERS,
    check=_check_documents,
    short_help="Check job documents and report what is wrong.",
    help="""Check job documents and report every mistake with its file and line. Nothing is submitted.

    With -x, report also what that executor would refuse.
    """,
    epilog="""\b
Examples:
  jpsi validate -f job.yaml
  jpsi validate -x slurm -f one.yaml -f two.yaml
  jpsi validate -x slurm --many steps.jsonl

\b
Exit codes:
  0  all are valid
  2  a document is not valid, or a mistake in the command line
  125  jpsi failed
""",
)


class _Convert(click.Command):
    """A command that warns of its own options behind SCRIPT, unless `--` stands before SCRIPT."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; click calls this."""
        typed = list(args)
        rest = super().parse_args(ctx, args)
        arguments: Sequence[str] = ctx.params.get("arguments") or ()
        own = {name for it in self.get_params(ctx) if isinstance(it, click.Option) for name in it.opts}
        if not ctx.resilient_parsing and "--" not in typed[: len(typed) - len(arguments)]:
            for name in sorted(own.intersection(arguments)):
                messages.warning(
                    f"{name} becomes an argument of the script; if it is for jpsi convert, type it before "
                    "the script, else type -- before the script"
                )
        return rest


#: `jpsi convert`
CONVERT = command(
    "convert",
    "submission.convert:convert",
    [
        executor_option("The executor that SCRIPT is for.  [default: the one that knows its directives]"),
        json_option("Write JSON, with what cannot be converted."),
        click.Argument(["file"], metavar="SCRIPT"),
        click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]..."),
    ],
    ends_options=True,
    kind=_Convert,
    short_help="Convert a script with #SBATCH, #PBS, #BSUB, #$ or # flux: lines to a job document.",
    help="""Convert SCRIPT, which was written for a batch system, to a job document on standard output.

    The job runs SCRIPT as it is, once, where the batch system would run it, with the resources and options of
    its directives. What follows SCRIPT, also options, becomes arguments of the script, as with sbatch.
    Warnings on standard error name what cannot be converted.
    """,
    epilog="""\b
Examples:
  jpsi convert job.sh > job.yaml
  jpsi convert job.sh -n 3 input.dat > job.yaml
  jpsi convert -x torque job.pbs
  jpsi convert --json job.sh | jq .lost

\b
Exit codes:
  0  a document was written
  2  a mistake in the command line, or SCRIPT cannot be read or has no directives
  125  jpsi failed: the configuration is wrong
""",
)
