"""The commands of `jpsi workflow`, with their options and help texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .arguments import Arguments

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_CODES = """\b
Exit codes:
  0  {done}
  2  a mistake in the command line or the document; nothing was done
  125  jpsi failed
"""
_RUN_CODES = """\b
Exit codes:
  0  everything has completed, or was not to run
  2  a mistake in the command line or the document; nothing was done
  124  a task used up its time, or --timeout is over
  125  jpsi failed, or something has failed without an exit code
  130  it was cancelled, or left by Ctrl-C, SIGTERM or SIGHUP: jobs run on then
Any other is that of the first task that has failed.
"""
_RUN = """Run a document to its end.

A run that was interrupted goes on where it was: what has ended is not run again, what runs is found again.
One that is over is only told of; --again begins a new one.
"""
_FILE = click.Argument(["file"], metavar="FILE")


def _of_document() -> list[click.Parameter]:
    return [
        _FILE,
        click.Option(["--strict", "is_strict"], is_flag=True, help="Take what is only loose for wrong."),
        click.Option(
            ["--set", "parameters"], multiple=True, metavar="NAME=VALUE", help="Give a parameter a value."
        ),
    ]


def _of_site() -> list[click.Parameter]:
    return [
        *_of_document(),
        click.Option(["-x", "--executor"], metavar="NAME", help="The executor, or a configured target."),
        click.Option(
            ["--subsystems"], metavar="DIRECTORY", help="Where subsystems are (~/.compspec/subsystems)."
        ),
        click.Option(
            ["--missing"],
            type=click.Choice(["ignore", "fail"]),
            default="ignore",
            show_default=True,
            help="What to do if nothing is known of a subsystem.",
        ),
        click.Option(
            ["--constraint", "constraints"],
            multiple=True,
            metavar="SUBSYSTEM.FIELD=OPTION",
            help="Hand a requirement to the batch system, as in system.platform=slurm.constraint.",
        ),
    ]


_TASKS = click.Argument(["tasks"], nargs=-1, metavar="[TASK]...")
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Write JSON.")
_STATES = click.Option(["--states", "has_states"], is_flag=True, help="Colour it by the last run.")


def _command(
    name: str,
    short: str,
    text: str,
    params: list[click.Parameter],
    **more: Any,  # noqa: ANN401  click's own
) -> click.Command:
    epilog = more.pop("epilog", _CODES.format(done=more.pop("done", "it was done")))
    return click.Command(
        name,
        params=params,
        callback=_later(name),
        context_settings=_SETTINGS,
        short_help=short,
        help=text,
        epilog=epilog,
        **more,
    )


def _later(name: str) -> Callable[..., int]:
    """Return the function of a command, which imports the library when it is called, so that help is fast."""

    def call(**given: Any) -> int:  # noqa: ANN401  what the parameters are
        from . import document_commands, run_commands, status_commands  # noqa: PLC0415  as above

        words = {key: given.pop(key) for key in list(given) if key in Arguments.__slots__}
        module = next(it for it in (run_commands, status_commands, document_commands) if name in vars(it))
        function = getattr(module, name)
        code: int = function(Arguments(**words), **given)
        return code

    return call


@click.pass_context
def _workflow(ctx: click.Context) -> int:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
    return 2


#: `jpsi workflow`
WORKFLOW = click.Group(
    "workflow",
    invoke_without_command=True,
    callback=_workflow,
    context_settings=_SETTINGS,
    short_help="Check, plan and run workflows written in YAML (JobSpec NG).",
    help="Check, plan and run a workflow: a document in YAML with resources, tasks and groups.",
    commands=[
        _command(
            "validate",
            "Say what is wrong with a document.",
            "Say what is wrong with a document, everything at once, each with its place and what to do.",
            [*_of_document(), _JSON],
            done="nothing is wrong with it",
        ),
        _command(
            "plan",
            "Show which jobs a document comes to.",
            "Show which jobs a document comes to, with what resources, and what waits for what.",
            [
                *_of_site(),
                click.Option(["--explain", "is_explained"], is_flag=True, help="Say why."),
                _JSON,
            ],
        ),
        _command(
            "graph",
            "Draw what waits for what.",
            "Draw what waits for what, as SVG, or on the terminal.",
            [*_of_site(), _STATES, click.Option(["-o", "--output"], metavar="FILE.svg", help="Write SVG.")],
        ),
        _command(
            "render",
            "Show what would be submitted.",
            "Show the scripts that a batch system would get, and by which commands.",
            _of_site(),
        ),
        _command(
            "satisfy",
            "Say whether what is required is there.",
            "Say whether what a document requires is there: yes, no or unknown, and why.",
            [*_of_site(), _JSON],
            epilog="""\b
Exit codes:
  0  all of it is there, or nobody can tell (unless --missing fail)
  1  something is not there
  2  a mistake in the command line or the document
  125  jpsi failed
""",
        ),
        _command(
            "convert",
            "Make a workflow of another document, or the other way round.",
            "Make a workflow of a job document, of a submit script, or of a canonical jobspec of Flux"
            " (version 1), or such jobspecs of a workflow, and tell what could not be carried over.",
            [
                *_of_site(),
                click.Option(
                    ["--from-jpsi", "direction"], flag_value="from-jpsi", default=True, help="The default"
                ),
                click.Option(
                    ["--from-script", "direction"],
                    flag_value="from-script",
                    help="FILE is a script with directives, such as #SBATCH.",
                ),
                click.Option(["--from-flux", "direction"], flag_value="from-flux", help="FILE is a jobspec."),
                click.Option(["--to-flux", "direction"], flag_value="to-flux", help="FILE is a workflow."),
            ],
        ),
        _command(
            "run",
            "Run a document to its end.",
            _RUN,
            [*_of_site(), click.Option(["--again", "is_new"], is_flag=True, help="Begin a new run."), _JSON],
            epilog=_RUN_CODES,
        ),
        _command(
            "wait",
            "Wait for the end of the last run, and drive it if nobody does.",
            "Wait for the end of the last run of a document, or of some of its tasks and groups, named as"
            " `status` does, and drive it if nobody does.",
            [
                _FILE,
                _TASKS,
                click.Option(["--timeout"], metavar="TIME", help="Wait no longer, such as 90s or 1h."),
                _JSON,
            ],
            epilog=_RUN_CODES,
        ),
        _command(
            "status",
            "Show how far the last run has come.",
            "Show how far the last run of a document has come.",
            [_FILE, _JSON],
        ),
        _command(
            "cancel",
            "End the last run.",
            "End the last run, or some of its tasks and groups, named as `status` does: nothing more of it is"
            " submitted, jobs are cancelled and waited for.",
            [_FILE, _TASKS],
        ),
        _command(
            "logs",
            "Show what a task of the last run has written.",
            "Show what a task of the last run has written; TASK.3 is its third replica alone.",
            [
                _FILE,
                click.Argument(["task"]),
                click.Option(["--stderr", "is_stderr"], is_flag=True, help="Show errors."),
            ],
        ),
    ],
)
