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
    short_help="Show the installed plugins, and whether they work.",
    help="""Show the installed plugins of jpsi, such as executors and launchers: all, or those called NAME.

    For each plugin it says whether jpsi uses it under that name, and if not, why. It loads each plugin to
    check that this works, which runs the plugin's code; what a plugin prints goes to standard error.
    """,
    epilog="""\b
Examples:
  jpsi plugins
  jpsi plugins slurm
  jpsi plugins --kind launcher --json

\b
Exit codes:
  0  every name that is shown has a plugin that works
  1  a name has no plugin that works, or no plugin is called NAME
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
    help="Show the configuration, merged from all files, or check whether it can be used.",
    commands=[
        click.Command(
            "show",
            params=[click.Option(["--json", "as_json"], is_flag=True, help="Write a JSON object.")],
            callback=_config_show,
            context_settings=SETTINGS,
            short_help="Show the merged configuration.",
            help="Show the configuration as if it were one file, and the files that it comes from.",
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
            short_help="Check whether the configuration can be used.",
            help="Check whether every configured executor and target can be used. This queries no batch "
            "system.",
            epilog="""\b
Exit codes:
  0  all can be used
  1  one cannot: its plugin is missing or broken, or a value is wrong for it
  2  a mistake in the command line
  125  a configuration file is wrong
""",
        ),
    ],
)
