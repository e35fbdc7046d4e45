"""The commands that make jobs: how each is called, and what its help says."""

from __future__ import annotations

from collections.abc import Sequence

import click

from .commands import SETTINGS, command, missing, unclear
from .grouped import GroupedCommand
from .job_arguments import SCRIPT_PARAMETERS, SUBMIT_PARAMETERS, VALIDATE_PARAMETERS

# Imports stand in the functions: help and mistakes are told without waiting for the library.


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


def _validate(*, files: tuple[str, ...], many: str | None, executor: str | None, as_json: bool) -> int:
    if not files and many is None:
        msg = "name a job document: -f FILE, or a file with one on each line: --many FILE"
        raise click.UsageError(msg)
    mistake = missing({"executor": executor, "many": many}) or _read_twice([*files, many])
    if mistake is not None:
        raise click.UsageError(mistake)
    from .validate import validate  # noqa: PLC0415

    return validate(files, many=many, executor=executor, as_json=as_json)


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
    return _read_twice(files)


def _read_twice(files: Sequence[str | None]) -> str | None:
    return "standard input can be read once only" if files.count("-") > 1 else None


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
VALIDATE = command(
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
  jpsi validate -x slurm --many steps.jsonl

\b
Exit codes:
  0  all are valid
  2  one is not, or a mistake in the command line
  125  jpsi failed: no such executor
""",
)
