"""The command line as a whole: commands, help, and the exit code of everything that goes wrong."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Mapping
from typing import NoReturn

import click

from . import codes, messages
from .arguments import PARAMETERS
from .grouped import GroupedCommand

_NAME = "jpsi"
# Set by click's shell completion scripts.
_COMPLETION = "_JPSI_COMPLETE"
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def main() -> NoReturn:
    """Do what the command line says and exit; the entry point of `jpsi`."""
    _hold_standard_streams()
    if _COMPLETION in os.environ:
        cli.main(prog_name=_NAME)
    sys.exit(_code(sys.argv[1:]))


def _code(arguments: list[str]) -> int:
    # Not through `cli.main`, which has exit codes of its own.
    try:
        with cli.make_context(_NAME, arguments) as ctx:
            code: int = cli.invoke(ctx)
            return code
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.UsageError as e:
        return _misused(e)
    except KeyboardInterrupt:
        return codes.CANCELLED
    except OSError as e:
        return _unwritable(e)
    except Exception:  # noqa: BLE001  the outermost fence: a bug, which is to be seen
        return _failed()


def _unwritable(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        # Else the interpreter complains when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), messages.STDOUT)
        return codes.BROKEN_PIPE
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        messages.error(str(error.strerror))
        return codes.JPSI
    return _failed()


def _failed() -> int:
    messages.write(traceback.format_exc())
    messages.error("this is a bug in jpsi; please report it with the lines above")
    return codes.JPSI


def _misused(error: click.UsageError) -> int:
    text = error.format_message()
    place = _NAME if error.ctx is None else error.ctx.command_path
    messages.error(f"{text[:1].lower()}{text[1:]}\nTry: {place} --help")
    return codes.USAGE


def _hold_standard_streams() -> None:
    """Keep a standard stream that was closed from becoming whatever is opened next."""
    for fd in range(messages.STDERR + 1):
        try:
            os.fstat(fd)
        except OSError:
            # Opened the wrong way round, so that using it fails as it does for a closed one.
            os.open(os.devnull, os.O_WRONLY if fd == 0 else os.O_RDONLY)


def _show_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001  click's
    if is_asked:
        from importlib.metadata import version  # noqa: PLC0415  slow to import and rarely asked for

        python = ".".join(map(str, sys.version_info[:3]))
        click.echo(f"jpsi {version('jpsi-cli')} (jpsi-core {version('jpsi-core')}, Python {python})")
        ctx.exit()


@click.group(
    context_settings=_SETTINGS,
    invoke_without_command=True,
    epilog="""\b
Examples:
  jpsi run -- python3 simulate.py --steps 100
  jpsi run -f job.yaml
""",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the versions of jpsi and exit.",
)
@click.pass_context
def cli(ctx: click.Context) -> int:
    """Run programs as jobs: on this machine, or on any batch system that jpsi has a package for."""
    if ctx.invoked_subcommand is not None:
        return 0
    click.echo(ctx.get_help(), err=True)
    return codes.USAGE


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


_CODES = "\n".join(f"  {code}  {meaning}" for code, meaning in codes.MEANINGS.items())

cli.add_command(
    GroupedCommand(
        "run",
        usages=["[OPTIONS] [--] COMMAND [ARGS]...", "[OPTIONS] -f FILE"],
        params=list(PARAMETERS),
        callback=_run,
        # Options end where the command begins: `jpsi run ls -l` needs no `--`.
        context_settings={**_SETTINGS, "allow_interspersed_args": False},
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
)
