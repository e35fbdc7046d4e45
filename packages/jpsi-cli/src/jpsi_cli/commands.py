"""The commands of `jpsi`: how each is called, and what its help says."""

from __future__ import annotations

from collections.abc import Mapping

import click

from . import codes
from .arguments import PARAMETERS, PLUGIN_PARAMETERS
from .grouped import GroupedCommand

#: Of every command.
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _run(
    *,
    command: tuple[str, ...],
    executor: str | None,
    file: str | None,
    expand: bool,
    as_json: bool,
    **given: str | bool | tuple[str, ...] | None,
) -> int:
    mistake = _mistake(command, file, is_expanding=expand) or _missing(
        {"executor": executor, "file": file, **given}
    )
    if mistake is not None:
        raise click.UsageError(mistake)
    from .run import run  # noqa: PLC0415  help and mistakes are told without waiting for the library

    return run(command, given, executor=executor, file=file, is_expanding=expand, as_json=as_json)


def _mistake(command: tuple[str, ...], file: str | None, *, is_expanding: bool) -> str | None:
    """Why it is not clear which job is meant."""
    if file is None and not command:
        return "no command to run; type it after --, or name a job document: -f FILE"
    if file is not None and command:
        return f"-f {file} and the command {command[0]!r} are two jobs; give one of them"
    if file is not None and is_expanding:
        return "--expand is about a COMMAND; the arguments in a document are always expanded"
    return None


def _missing(given: Mapping[str, object]) -> str | None:
    """Which option has no value, or took the `--` that follows for one; others are read later."""
    for name, value in given.items():
        if value == "--" or (not value and value is not None and name in {"executor", "file"}):
            return f"--{name.replace('_', '-')} needs a value"
    return None


def _plugins(*, name: str | None, kind: str | None, as_json: bool, is_loading: bool) -> int:
    from .plugins import plugins  # noqa: PLC0415  as above

    return plugins(name, kind=kind, as_json=as_json, is_loading=is_loading)


_CODES = "\n".join(f"  {code}  {meaning}" for code, meaning in codes.MEANINGS.items())

#: `jpsi run`
RUN = GroupedCommand(
    "run",
    usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE"],
    params=list(PARAMETERS),
    callback=_run,
    # Options end where the command begins: `jpsi run ls -l` needs no `--`.
    context_settings={**SETTINGS, "allow_interspersed_args": False},
    short_help="Run one job, show its output, and exit with its exit code.",
    help="""Run one job, show its output as it comes, and exit with its exit code.

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
{_CODES}
""",
)

#: `jpsi plugins`
PLUGINS = click.Command(
    "plugins",
    params=list(PLUGIN_PARAMETERS),
    callback=_plugins,
    context_settings=SETTINGS,
    short_help="Show what is installed for jpsi, and whether it works.",
    help="""Show what is installed for jpsi: every executor, launcher and so on, all or those called NAME.

    For each: whether it is what its name stands for, and if not, why. Each is loaded to see whether that
    works, which runs its code; what a plugin prints then goes to standard error.
    """,
    epilog="""\b
Examples:
  jpsi plugins
  jpsi plugins slurm
  jpsi plugins --kind launcher --json

\b
Exit codes:
  0  every name that is shown stands for something that works
  1  a name stands for nothing that works, or nothing is called NAME
  2  a mistake in the command line
  125  jpsi failed: the configuration is wrong, or the output cannot be written
""",
)
