"""The entry point of the command `jpsi`: its commands, its help, and the exit codes of all errors."""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NoReturn

import click

from . import exit_codes, messages
from .cluster import ATTACH, FAKE, QUEUES
from .doctor import DOCTOR
from .entry_points import CommandLine
from .installation import CONFIG, PLUGINS
from .jobs import CANCEL, EXPLAIN, HOLD, LOGS, LS, RELEASE, SHOW, TOP, USAGE, WAIT
from .options import FOREIGN_COMMANDS, FOREIGN_OPTIONS, OTHER_WAYS, SETTINGS
from .submission import CONVERT, RESUBMIT, RUN, SCRIPT, SUBMIT, VALIDATE

_NAME = "jpsi"
# How many commands a message names; of more, it says that there are others.
_MOST_COMMANDS = 4
# An option of all commands that describe a job.
_OF_JOBS = "--project"
# How similar a misspelt option is to the one that is meant, as difflib counts it.
_SIMILARITY = 0.7
# Set by click's shell completion scripts.
_COMPLETION = "_JPSI_COMPLETE"
# The number of new objects after which garbage is collected. By default it is so small that the interpreter
# searches the modules that a command imports again and again, where it finds nothing.
_COLLECTED_AFTER = 100_000


def main() -> NoReturn:
    """Run the command line and exit; the entry point of `jpsi`."""
    gc.set_threshold(_COLLECTED_AFTER)
    _reserve_standard_streams()
    if _COMPLETION in os.environ:
        cli.main(prog_name=_NAME)
    code = _run_command_line(sys.argv[1:])
    # the process ends, so that nothing is worth a search for garbage; a tenth of the time of `jpsi ls`
    gc.freeze()
    sys.exit(code)


def _run_command_line(arguments: list[str]) -> int:
    # Not through `cli.main`, which has exit codes of its own.
    try:
        with cli.make_context(_NAME, arguments) as ctx:
            code: int = cli.invoke(ctx)
            return code
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.UsageError as e:
        return _report_usage_error(e, arguments)
    except KeyboardInterrupt:
        return exit_codes.CANCELLED
    except (messages.UnwritableError, OSError) as e:
        return _report_unwritable(e)
    except Exception:  # noqa: BLE001  the outermost fence: a bug, which is to be seen
        return _report_bug()


def _report_unwritable(error: messages.UnwritableError | OSError) -> int:
    if isinstance(error, messages.UnwritableError):
        messages.error(str(error))
        return exit_codes.JPSI
    if isinstance(error, BrokenPipeError):
        # Otherwise the interpreter complains when it flushes standard output at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), messages.STDOUT)
        return exit_codes.BROKEN_PIPE
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        messages.error(str(error.strerror))
        return exit_codes.JPSI
    return _report_bug()


def _report_bug() -> int:
    messages.write(traceback.format_exc())
    messages.error("this is a bug in jpsi, or in a plugin; please report it with the lines above")
    return exit_codes.JPSI


def _report_usage_error(error: click.UsageError, arguments: list[str]) -> int:
    text = error.format_message()
    text = f"{text[:1].lower()}{text[1:]}"
    options = [] if error.ctx is None else _options_of(error.ctx.command)
    if text.startswith("got unexpected extra argument"):
        text += _describe_extra(error, options)
    if isinstance(error, click.NoSuchOption):
        text = f"no such option '{error.option_name}'{_describe_similar(error, options)}"
    is_at_top = error.ctx is not None and error.ctx.command is cli
    unknown = _NO_COMMAND.match(text)
    if unknown and not is_at_top:
        if unknown[1] in cli.commands:
            text = f"{unknown[0]}; there is {_NAME} {unknown[1]}"
    elif unknown and (meant := _command_for(unknown[1], is_guessed="Did you mean" in text)):
        text = f"{unknown[0]}; type {meant}"
    messages.error(f"{text}\nTry: {_command_path(error, arguments)} --help")
    return exit_codes.USAGE


# click has no exception of its own for this in all versions.
_NO_COMMAND = re.compile("no such command '(.*?)'")


def _command_for(word: str, *, is_guessed: bool) -> str | None:
    """Return the command that other programs, or people, call by this word; None if none is known.

    Args:
        word: what was typed.
        is_guessed: True if a command of jpsi is spelt like it, which counts for more than such words.
    """
    if word in FOREIGN_COMMANDS:
        return FOREIGN_COMMANDS[word]
    nearest = [] if is_guessed else get_close_matches(word, FOREIGN_COMMANDS, n=1, cutoff=_SIMILARITY)
    return next((FOREIGN_COMMANDS[it] for it in nearest), None)


def _describe_extra(error: click.UsageError, options: Sequence[str]) -> str:
    """Return by which option a word is given that the command does not take as an argument."""
    takes_words = error.ctx is not None and any(
        isinstance(it, click.Argument) for it in error.ctx.command.params
    )
    if "--file" in options:
        return "; name a document by -f"
    return "; name an executor by -x" if "--executor" in options and not takes_words else ""


def _options_of(command: click.Command) -> list[str]:
    return [name for it in command.params if not getattr(it, "hidden", False) for name in it.opts]


def _describe_similar(error: click.NoSuchOption, options: Sequence[str]) -> str:
    """Return the end of a sentence that says which option is meant."""
    typed = error.option_name
    if other := OTHER_WAYS.get((error.ctx.info_name or "" if error.ctx else "", typed)):
        return f"; {other}"
    foreign = FOREIGN_OPTIONS if _OF_JOBS in options else {}
    if typed in foreign:
        return f"; jpsi {foreign[typed]}"
    if others := _commands_with(error, is_of_jobs=bool(foreign)):
        return f"; {_list_words(others)} {'has' if len(others) == 1 else 'have'} it"
    # own options come first, and dashes do not make words alike
    names = {it.lstrip("-"): it for it in (*foreign, *options) if it.startswith("--")}
    for closest in get_close_matches(typed.lstrip("-"), names, n=1, cutoff=_SIMILARITY):
        if (name := names[closest]) in options:
            return f". Did you mean '{name}'?"
        return f", nor '{name}'; jpsi {foreign[name]}"
    return "."


def _commands_with(error: click.NoSuchOption, *, is_of_jobs: bool) -> list[str]:
    """Return the commands that have the option which was typed after another.

    If others of the same group have it, such as `jpsi workflow run`, these are meant. Of options that
    describe a job, only those of such commands are.
    """
    if error.ctx is None:
        return []
    group = error.ctx.parent
    if group is not None and isinstance(group.command, click.Group):
        path, commands = group.command_path, group.command.commands
        if found := _with_option(commands, error.option_name, path, is_of_jobs=is_of_jobs):
            return found
    return _with_option(cli.commands, error.option_name, _NAME, is_of_jobs=is_of_jobs)


def _with_option(
    commands: Mapping[str, click.Command], option: str, path: str, *, is_of_jobs: bool
) -> list[str]:
    options = {name: _options_of(it) for name, it in commands.items()}
    return [
        f"{path} {name}"
        for name in sorted(options, key=lambda it: it != "run")
        if option in options[name] and (not is_of_jobs or _OF_JOBS in options[name])
    ]


def _list_words(words: Sequence[str]) -> str:
    """Return words as in `a, b and c`; of many, only the first ones."""
    shown = [*words[:_MOST_COMMANDS], "others"] if len(words) > _MOST_COMMANDS + 1 else words
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _command_path(error: click.UsageError, arguments: list[str]) -> str:
    """Return the command whose help shows the right usage."""
    if error.ctx is not None:
        return error.ctx.command_path
    # click does not say to which command an option without a value belongs
    return " ".join([_NAME, *(name for name in arguments[:1] if name in cli.commands)])


def _reserve_standard_streams() -> None:
    """Keep the descriptor of a closed standard stream from being reused for the next file."""
    for fd in range(messages.STDERR + 1):
        try:
            os.fstat(fd)
        except OSError:
            # Opened in the wrong mode, so that using it fails as for a closed stream.
            os.open(os.devnull, os.O_WRONLY if fd == 0 else os.O_RDONLY)


def _show_version(ctx: click.Context, _: click.Parameter, is_requested: bool) -> None:  # noqa: FBT001  click's
    if is_requested:
        from importlib.metadata import version  # noqa: PLC0415  slow to import and rarely used

        python = ".".join(map(str, sys.version_info[:3]))
        click.echo(f"jpsi {version('jpsi-cli')} (jpsi-core {version('jpsi-core')}, Python {python})")
        ctx.exit()


@click.group(
    cls=CommandLine,
    context_settings=SETTINGS,
    invoke_without_command=True,
    epilog="""\b
Examples:
  jpsi run -- python3 simulate.py --steps 100
  jpsi run -f job.yaml
  jpsi submit -x slurm --time 1h -- ./simulate
  jpsi ls
  jpsi convert job.sh > job.yaml
  jpsi plugins
  jpsi doctor -x slurm
  jpsi fake slurm -- pytest
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
    return exit_codes.USAGE


for command in (
    *(RUN, SUBMIT, RESUBMIT, SCRIPT, VALIDATE, CONVERT),
    *(LS, SHOW, EXPLAIN, USAGE, WAIT, CANCEL, HOLD, RELEASE, LOGS, TOP),
    *(QUEUES, ATTACH, FAKE, PLUGINS, CONFIG, DOCTOR),
):
    cli.add_command(command)
