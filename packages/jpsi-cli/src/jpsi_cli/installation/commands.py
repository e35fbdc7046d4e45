"""Defines `jpsi plugins` and `jpsi config`, with their options and help texts."""

from __future__ import annotations

import click

from .. import exit_codes
from ..options import PLUGIN_PARAMETERS, SETTINGS, command, json_option


@click.pass_context
def _config(ctx: click.Context) -> int:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
    return exit_codes.USAGE


#: `jpsi plugins`
PLUGINS = command(
    "plugins",
    "installation.plugins:plugins",
    PLUGIN_PARAMETERS,
    short_help="Show the installed plugins, and whether they work.",
    help="""Show the installed plugins of jpsi, such as executors and launchers: all, or those called NAME.

    For each plugin it says whether jpsi uses it under that name, and if not, why. It loads each plugin to
    check that this works, which runs the plugin's code; what a plugin prints goes to standard error. Fakes
    of batch systems, which no job needs, are loaded only with --kind fake or their NAME.
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
        command(
            "show",
            "installation.config:show",
            [json_option("Write a JSON object.")],
            short_help="Show the merged configuration.",
            help="Show the configuration as if it were one file, and the files that it comes from.",
        ),
        command(
            "check",
            "installation.config:check",
            [json_option()],
            short_help="Check whether the configuration can be used.",
            help="Check whether every configured executor and target can be used: connect to remote hosts, "
            "call the commands of batch systems, have pilots import their engine, check the simplest job. "
            "This submits no job.",
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
