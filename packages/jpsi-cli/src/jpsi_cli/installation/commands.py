"""The commands about plugins and the configuration, with their options and help texts."""

from __future__ import annotations

import click

from .. import exit_codes
from ..options import PLUGIN_PARAMETERS, SETTINGS

# Imports stand in the functions: help and usage errors do not wait for the library.


def _plugins(*, name: str | None, kind: str | None, as_json: bool, is_loading: bool) -> int:
    from .plugins import plugins  # noqa: PLC0415

    return plugins(name, kind=kind, as_json=as_json, is_loading=is_loading)


@click.pass_context
def _config(ctx: click.Context) -> int:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
    return exit_codes.USAGE


def _config_show(*, as_json: bool) -> int:
    from .config import show  # noqa: PLC0415

    return show(as_json=as_json)


def _config_check(*, as_json: bool) -> int:
    from .config import check  # noqa: PLC0415

    return check(as_json=as_json)


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
