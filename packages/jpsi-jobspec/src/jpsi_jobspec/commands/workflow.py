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
  2  an error in the command line or the document; nothing was done
  125  jpsi failed
"""
_RUN_CODES = """\b
Exit codes:
  0  everything has completed, or was not to run
  1  a task has failed with exit code 1, 2, 124, 125 or 130
  2  an error in the command line or the document; nothing was submitted
  124  a task used up its time, or --timeout is over
  125  jpsi failed, or something has failed without an exit code
  130  it was cancelled, or interrupted by Ctrl-C, SIGTERM or SIGHUP: jobs run on then
Any other is the exit code of the first task that has failed.
"""
_RUN = """Run a document to its end.

An interrupted run continues where it was: ended jobs do not run again, and running jobs are recovered.
A run that is over is only reported; --again begins a new one, in which all tasks run again, and --failed one
in which tasks that completed do not, if neither they nor what they depend on has changed.
"""
_FILE = click.Argument(["file"], metavar="FILE")


_DOCUMENT: list[click.Parameter] = [
    _FILE,
    click.Option(["--strict", "is_strict"], is_flag=True, help="Treat warnings as errors."),
    click.Option(["--lenient", "is_lenient"], is_flag=True, help="Warn of unknown keys, and ignore them."),
    click.Option(
        ["--set", "parameters"], multiple=True, metavar="NAME=VALUE", help="Give a parameter a value."
    ),
]
_SITE = [
    *_DOCUMENT,
    click.Option(["-x", "--executor"], metavar="NAME", help="The executor, or a configured target."),
    click.Option(
        ["--subsystems"], metavar="DIRECTORY", help="Directory of subsystems (~/.compspec/subsystems)."
    ),
    click.Option(
        ["--missing"],
        type=click.Choice(["ignore", "fail"]),
        default="ignore",
        show_default=True,
        help="What to do if a subsystem is unknown.",
    ),
    click.Option(
        ["--constraint", "constraints"],
        multiple=True,
        metavar="SUBSYSTEM.FIELD=OPTION",
        help="Map a requirement to a batch system's option, as in system.platform=slurm.constraint.",
    ),
]


_TASKS = click.Argument(["tasks"], nargs=-1, metavar="[TASK]...")
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Write JSON.")


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
        callback=_import_on_call(name),
        context_settings=_SETTINGS,
        short_help=short,
        help=text,
        epilog=epilog,
        **more,
    )


def _direction(name: str, text: str, **more: bool) -> click.Option:
    return click.Option([f"--{name}", "direction"], flag_value=name, help=text, **more)


def _import_on_call(name: str) -> Callable[..., int]:
    """Return the function of a command, which imports the library when it is called, so that help is fast."""

    def call(**arguments: Any) -> int:  # noqa: ANN401  what the parameters are
        from . import document_commands, run_commands, status_commands  # noqa: PLC0415  as above
        from .messages import handle_errors  # noqa: PLC0415  as above

        words = {key: arguments.pop(key) for key in list(arguments) if key in Arguments.__slots__}
        functions = {**vars(document_commands), **vars(status_commands), **vars(run_commands)}
        return handle_errors(lambda: functions[name](Arguments(**words), **arguments), words.get("executor"))

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
            "Report the problems of a document.",
            "Report all problems of a document, each with its position and a hint.",
            [*_DOCUMENT, _JSON],
            done="nothing is wrong with it",
        ),
        _command(
            "plan",
            "Show which jobs a document becomes.",
            "Show which jobs a document becomes, with their resources and dependencies.",
            [
                *_SITE,
                click.Option(["--explain", "is_explained"], is_flag=True, help="Show the reasons."),
                _JSON,
            ],
        ),
        _command(
            "graph",
            "Draw the dependency graph.",
            "Draw the dependency graph, as SVG, or on the terminal.",
            [
                *_SITE,
                click.Option(["--states", "has_states"], is_flag=True, help="Colour it by the last run."),
                click.Option(["-o", "--output"], metavar="FILE.svg", help="Write SVG."),
            ],
        ),
        _command(
            "render",
            "Show what would be submitted.",
            "Show the scripts that a batch system would get, and by which commands.",
            _SITE,
        ),
        _command(
            "satisfy",
            "Check the requirements of a document.",
            "Check whether the requirements of a document are met: yes, no or unknown, with reasons.",
            [*_SITE, _JSON],
            epilog="""\b
Exit codes:
  0  all of it is there, or unknown (unless --missing fail)
  1  something is not there
  2  an error in the command line or the document
  125  jpsi failed
""",
        ),
        _command(
            "convert",
            "Convert another document to a workflow, or a workflow to jobspecs.",
            "Make a workflow of a job document, of a submit script, or of a canonical jobspec of Flux"
            " (version 1), or such jobspecs of a workflow, and report what could not be converted.",
            [
                *_SITE,
                _direction("from-jpsi", "The default", default=True),
                _direction("from-script", "FILE is a script with directives, such as #SBATCH."),
                _direction("from-flux", "FILE is a jobspec."),
                _direction("to-flux", "FILE is a workflow."),
            ],
        ),
        _command(
            "run",
            "Run a document to its end.",
            _RUN,
            [
                *_SITE,
                click.Option(["--again", "is_new"], is_flag=True, help="Begin a new run."),
                click.Option(
                    ["--failed", "is_failed"],
                    is_flag=True,
                    help="Begin a new run without the tasks that completed in the last one.",
                ),
                _JSON,
            ],
            epilog=_RUN_CODES,
        ),
        _command(
            "wait",
            "Wait for the end of the last run, and drive it if no other process does.",
            "Wait for the end of the last run of a document, or of some of its tasks and groups, named as"
            " `status` does, and drive it if no other process does.",
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
            "Show the state of the last run.",
            "Show the state of the last run of a document.",
            [_FILE, _JSON],
        ),
        _command(
            "cancel",
            "Cancel the last run.",
            "Cancel the last run, or some of its tasks and groups, named as `status` does: nothing more of"
            " it is submitted, jobs are cancelled and waited for.",
            [_FILE, _TASKS],
        ),
        _command(
            "logs",
            "Show the output of the last run.",
            "Show the output of the last run, or of some of its tasks; TASK.3 is the third replica alone.",
            [
                _FILE,
                _TASKS,
                click.Option(["--stderr", "is_stderr"], is_flag=True, help="Show standard error."),
            ],
        ),
    ],
)
