"""The commands of `jpsi`: how each is called, and what its help says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from . import codes
from .arguments import FAKE_PARAMETERS, PARAMETERS, PLUGIN_PARAMETERS
from .grouped import GroupedCommand

#: Of every command.
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def command(name: str, **attributes: Any) -> click.Command:  # noqa: ANN401  click's own
    """A command with the settings of every command."""
    return click.Command(name, context_settings=SETTINGS, **attributes)


def _run(
    *,
    command: tuple[str, ...],
    executor: str | None,
    file: str | None,
    expand: bool,
    as_json: bool,
    **given: str | bool | tuple[str, ...] | None,
) -> int:
    mistake = unclear(command, file, is_expanding=expand) or missing(
        {"executor": executor, "file": file, **given}
    )
    if mistake is not None:
        raise click.UsageError(mistake)
    from .run import run  # noqa: PLC0415  help and mistakes are told without waiting for the library

    return run(command, given, executor=executor, file=file, is_expanding=expand, as_json=as_json)


def unclear(command: tuple[str, ...], file: str | None, *, is_expanding: bool) -> str | None:
    """Why it is not clear which job is meant."""
    if file is None and not command:
        return "no command to run; type it after --, or name a job document: -f FILE"
    if file is not None and command:
        return f"-f {file} and the command {command[0]!r} are two jobs; give one of them"
    if file is not None and is_expanding:
        return "--expand is about a COMMAND; the arguments in a document are always expanded"
    return None


def missing(given: Mapping[str, object]) -> str | None:
    """Which option has no value, or took the `--` that follows for one; others are read later."""
    for name, value in given.items():
        if value == "--" or (not value and value is not None and name in {"executor", "file", "many"}):
            return f"--{name.replace('_', '-')} needs a value"
    return None


def _plugins(*, name: str | None, kind: str | None, as_json: bool, is_loading: bool) -> int:
    from .plugins import plugins  # noqa: PLC0415  as above

    return plugins(name, kind=kind, as_json=as_json, is_loading=is_loading)


def _fake(*, system: str | None, program: tuple[str, ...], has_accounting: bool, **given: str | None) -> int:
    mistake = _nothing_to_fake(system, program)
    if mistake is not None:
        raise click.UsageError(mistake)
    from .fake import fake  # noqa: PLC0415  as above

    return fake(str(system), _after_dashes(program), given, has_accounting=has_accounting)


def _nothing_to_fake(system: str | None, program: tuple[str, ...]) -> str | None:
    """What is missing, or stands in the wrong place."""
    if not system:
        return "name a batch system, and the command to run with it: jpsi fake slurm -- pytest"
    if program and program[0].startswith("-") and program[0] != "--":
        return f"{program[0]} stands behind {system}; options come before it"
    if not _after_dashes(program):
        return f"no command to run with {system}; type it after --"
    return None


def _after_dashes(program: tuple[str, ...]) -> tuple[str, ...]:
    return program[1:] if program[:1] == ("--",) else program


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


@click.pass_context
def _config(ctx: click.Context) -> int:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
    return codes.USAGE


def _config_show(*, as_json: bool) -> int:
    from .config import show  # noqa: PLC0415  as above

    return show(as_json=as_json)


def _config_check(*, as_json: bool) -> int:
    from .config import check  # noqa: PLC0415  as above

    return check(as_json=as_json)


#: `jpsi config`
CONFIG = click.Group(
    "config",
    invoke_without_command=True,
    callback=_config,
    context_settings=SETTINGS,
    short_help="Show and check the configuration.",
    help="Show what is configured, all files taken together, and see whether it can be used.",
    commands=[
        click.Command(
            "show",
            params=[click.Option(["--json", "as_json"], is_flag=True, help="Write a JSON object.")],
            callback=_config_show,
            context_settings=SETTINGS,
            short_help="Show what is configured.",
            help="Show what is configured as one file would have it, and of which files it is.",
        ),
        click.Command(
            "check",
            params=[
                click.Option(
                    ["--json", "as_json"], is_flag=True, help="Write a JSON array with an object for each."
                )
            ],
            callback=_config_check,
            context_settings=SETTINGS,
            short_help="See whether what is configured can be used.",
            help="See whether every executor and target that is configured can be used; nobody is asked.",
            epilog="""\b
Exit codes:
  0  all can be used
  1  one cannot: its plugin is missing or broken, or a value is wrong for it
  2  a mistake in the command line
  125  a file says something that no configuration says
""",
        ),
    ],
)

#: `jpsi fake`
FAKE = click.Command(
    "fake",
    params=list(FAKE_PARAMETERS),
    callback=_fake,
    # Options end where the batch system is named.
    context_settings={**SETTINGS, "allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Run a command with a batch system that is only played, for tests.",
    help="""Run COMMAND with the commands of a fake SYSTEM, such as slurm, first on its PATH.

    Jobs are processes of this machine. The fake ends with COMMAND: jobs that still run are killed, and
    nothing of it is left. What jpsi keeps of jobs stays apart from yours meanwhile (XDG_STATE_HOME).
    `jpsi plugins --kind fake` shows which systems can be played.
    """,
    epilog="""\b
Examples:
  jpsi fake slurm -- pytest -x
  jpsi fake --slots 1 pbs -- sh -c 'echo hostname | qsub; qstat'
  jpsi fake --keep 0 slurm -- ./my-workflow

\b
Exit codes, besides those of COMMAND:
  2  a mistake in the command line
  125  there is no such fake, or it cannot be started
  126, 127  COMMAND may not be executed, or was not found
""",
)
