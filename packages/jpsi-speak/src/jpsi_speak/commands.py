"""Defines `jpsi speak`, which jpsi-cli finds as an entry point of `jpsi.commands`."""

from __future__ import annotations

import os
import signal
import sys

import click

_HELP = """Run a program that speaks Slurm or PBS, with jobs on any executor.

LANGUAGE is the batch system whose commands the program calls: slurm or pbs. They are first on PATH for
COMMAND; what they submit runs on the executor. Without a command, the line that puts them on PATH is
printed, for eval "$(jpsi speak slurm -x EXECUTOR)".
"""


@click.command(
    "speak",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    short_help="Run a program that speaks Slurm or PBS, on any executor.",
    help=_HELP,
)
@click.option(
    "-x",
    "--executor",
    metavar="NAME",
    help="The executor or target; default: the configured one, else local.",
)
@click.option("--url", metavar="URL", help="Where the batch system is, such as ssh://login.example.org.")
@click.option("--lenient", is_flag=True, help="Warn of what cannot be kept, instead of refusing the job.")
@click.argument("language", metavar="LANGUAGE")
@click.argument("command", nargs=-1, metavar="[-- COMMAND]...", type=click.UNPROCESSED)
def speak(
    language: str, executor: str | None, url: str | None, command: tuple[str, ...], *, lenient: bool
) -> int:
    """Put the commands on PATH, and become the program."""
    import jpsi  # noqa: PLC0415  `jpsi --help` needs none of it

    from .folders import are_known, prepare  # noqa: PLC0415

    try:
        folder = prepare(language, executor, url, is_lenient=lenient)
    except jpsi.JpsiError as e:
        click.echo(f"jpsi: {e}", err=True)
        # what cannot be loaded is no mistake of the user
        is_mistake = isinstance(e, jpsi.PluginError) and not are_known(language, executor)
        return 2 if is_mistake else 125
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PATH"))))
    if not command:
        from jpsi.plugin import line  # noqa: PLC0415

        click.echo(f"{line('export', f'PATH={path}')}")
        return 0
    os.environ["PATH"] = path
    # Python ignores these signals, and the program would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    try:
        os.execvp(command[0], list(command))  # noqa: S606  no shell is wanted
    except OSError as e:
        click.echo(f"jpsi: {command[0]} cannot be run: {e.strerror}", err=True)
        return 127 if isinstance(e, FileNotFoundError) else 126
