"""The commands that create jobs, with their options and help texts."""

from __future__ import annotations

from collections.abc import Sequence

import click

from .. import exit_codes
from ..options import (
    RUN_PARAMETERS,
    SCRIPT_PARAMETERS,
    SETTINGS,
    SUBMIT_PARAMETERS,
    VALIDATE_PARAMETERS,
    GroupedCommand,
    command,
    executor_option,
    missing_value,
    require_executor,
)

# Imports stand in the functions: help and usage errors do not wait for the library.


def _run(
    *,
    command: tuple[str, ...],
    executor: str | None,
    file: str | None,
    expand: bool,
    as_json: bool,
    **options: str | bool | tuple[str, ...] | None,
) -> int:
    problem = _describe_unclear_job(command, file, is_expanding=expand) or missing_value(
        {"executor": executor, "file": file, **options}
    )
    if problem is not None:
        raise click.UsageError(problem)
    from .run import run  # noqa: PLC0415

    return run(command, options, executor=executor, file=file, is_expanding=expand, as_json=as_json)


def _submit(  # noqa: PLR0913  all that is not a field of the job
    *,
    command: tuple[str, ...],
    executor: str | None,
    files: tuple[str, ...],
    many: str | None,
    expand: bool,
    as_json: bool,
    **options: str | bool | tuple[str, ...] | None,
) -> int:
    problem = _describe_unclear_jobs(command, files, many, is_expanding=expand)
    problem = problem or missing_value({"executor": executor, "many": many, **options})
    if problem is not None:
        raise click.UsageError(problem)
    from .submit import submit  # noqa: PLC0415

    return submit(
        command, options, executor=executor, files=files, many=many, is_expanding=expand, as_json=as_json
    )


def _script(
    *,
    command: tuple[str, ...],
    executor: str | None,
    file: str | None,
    expand: bool,
    as_json: bool,
    **options: str | bool | tuple[str, ...] | None,
) -> int:
    problem = _describe_unclear_job(command, file, is_expanding=expand)
    problem = problem or missing_value({"executor": executor, "file": file, **options})
    if problem is not None:
        raise click.UsageError(problem)
    from .script import script  # noqa: PLC0415

    return script(command, options, executor=executor, file=file, is_expanding=expand, as_json=as_json)


def _validate(*, files: tuple[str, ...], many: str | None, executor: str | None, as_json: bool) -> int:
    if not files and many is None:
        msg = "name a job document: -f FILE, or a file with one on each line: --many FILE"
        raise click.UsageError(msg)
    problem = missing_value({"executor": executor, "many": many}) or _describe_double_stdin([*files, many])
    if problem is not None:
        raise click.UsageError(problem)
    from .validate import validate  # noqa: PLC0415

    return validate(files, many=many, executor=executor, as_json=as_json)


def _convert(*, file: str, executor: str | None, as_json: bool) -> int:
    require_executor(executor)
    from .convert import convert  # noqa: PLC0415

    return convert(file, executor=executor, as_json=as_json)


def _describe_unclear_job(command: tuple[str, ...], file: str | None, *, is_expanding: bool) -> str | None:
    """Return why it is not clear which job the user means; None if it is."""
    if file is None and not command:
        return "no command to run; type it after --, or name a job document: -f FILE"
    if file is not None and command:
        return f"-f {file} and the command {command[0]!r} are two jobs; use one of them"
    if file is not None and is_expanding:
        return "--expand is about a COMMAND; the arguments in a document are always expanded"
    return None


def _describe_unclear_jobs(
    command: tuple[str, ...], files: tuple[str, ...], many: str | None, *, is_expanding: bool
) -> str | None:
    """Return why it is not clear which jobs the user means; None if it is."""
    named = [f"-f {files[0]}"] if files else []
    named += [] if many is None else [f"--many {many}"]
    named += [f"the command {command[0]!r}"] if command else []
    if not named:
        return "no command to submit; type it after --, or name a job document: -f FILE"
    if len(named) > 1:
        return f"{' and '.join(named)} are different jobs; use one of them"
    if is_expanding and not command:
        return "--expand is about a COMMAND; the arguments in a document are always expanded"
    return _describe_double_stdin(files)


def _describe_double_stdin(files: Sequence[str | None]) -> str | None:
    return "standard input can be read once only" if files.count("-") > 1 else None


_RUN_EXIT_CODES = "\n".join(f"  {code}  {meaning}" for code, meaning in exit_codes.MEANINGS.items())

#: `jpsi run`
RUN = GroupedCommand(
    "run",
    usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE"],
    params=list(RUN_PARAMETERS),
    callback=_run,
    # Options end where the command begins: `jpsi run ls -l` needs no `--`.
    context_settings={**SETTINGS, "allow_interspersed_args": False},
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
SUBMIT = GroupedCommand(
    "submit",
    usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE [-f FILE]...", "[OPTIONS] --many FILE"],
    params=list(SUBMIT_PARAMETERS),
    callback=_submit,
    # Options end where the command begins: `jpsi submit ls -l` needs no `--`.
    context_settings={**SETTINGS, "allow_interspersed_args": False},
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

#: `jpsi script`
SCRIPT = GroupedCommand(
    "script",
    usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE"],
    params=list(SCRIPT_PARAMETERS),
    callback=_script,
    context_settings={**SETTINGS, "allow_interspersed_args": False},
    short_help="Show what would be submitted, and by which command.",
    help="""Show what would be submitted, and by which command; submit and write nothing.

    It shows the command, then the script that the batch system reads, then the script that runs the job. The
    executor local has no batch system.
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
    params=list(VALIDATE_PARAMETERS),
    callback=_validate,
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
  125  jpsi failed: no such executor
""",
)

#: `jpsi convert`
CONVERT = click.Command(
    "convert",
    params=[
        executor_option("The executor that SCRIPT is for.  [default: the one that knows its directives]"),
        click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, with what cannot be converted."),
        click.Argument(["file"], metavar="SCRIPT"),
    ],
    callback=_convert,
    context_settings=SETTINGS,
    short_help="Convert a script with #SBATCH, #PBS, #BSUB, #$ or # flux: lines to a job document.",
    help="""Convert SCRIPT, which was written for a batch system, to a job document on standard output.

    The job runs SCRIPT as it is, once, where the batch system would run it, with the resources and options of
    its directives. Warnings on standard error name what cannot be converted.
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
