"""The parameters of `jpsi run`, `plugins` and `fake`, in the order of their help."""

from __future__ import annotations

from functools import partial

import click

from . import completion
from .click_commands import GroupedOption

_this = partial(GroupedOption, group="What runs where")
_place = partial(GroupedOption, group="Directory and environment")
_stream = partial(GroupedOption, group="Input and output")
_files = partial(GroupedOption, group="Files in and out")
_resource = partial(GroupedOption, group="Resources")
_batch = partial(GroupedOption, group="Batch system")
_around = partial(GroupedOption, group="Around the command")

#: Of `jpsi run`.
RUN_PARAMETERS: tuple[click.Parameter, ...] = (
    _this(
        "--executor",
        "-x",
        metavar="NAME",
        help="Where to run the job: an executor, or a target of the configuration.  "
        "[default: the configured one, else local, this machine]",
        shell_complete=completion.executors,
    ),
    _this(
        "--file",
        "-f",
        metavar="FILE",
        help="Run what this job document (YAML or JSON) describes instead of a COMMAND; - is standard input. "
        "Other options override the document.",
    ),
    _this("--name", metavar="NAME", help="A name for the job in listings."),
    _this(
        "--expand",
        is_flag=True,
        help="Replace ${NAME} in the arguments by that variable of the job's environment. "
        "Without this they reach the job exactly as they were typed.",
    ),
    _place(
        "--dir", metavar="DIR", help="The directory to run in; ~/ is the home directory where the job runs."
    ),
    _place("--create-dir", is_flag=True, help="Make that directory if it does not exist."),
    _place(
        "--env",
        metavar="NAME=VALUE",
        multiple=True,
        help="Set a variable; ${OTHER} in VALUE is replaced where the job runs. Can be repeated.",
    ),
    _place("--no-inherit-env", is_flag=True, help="Start with an empty environment."),
    _stream("--stdin", metavar="FILE", help="Read input from FILE.  [default: empty input]"),
    _stream(
        "--stdout",
        metavar="FILE",
        help="Write output to FILE, relative to the job's directory, and not here.",
    ),
    _stream("--stderr", metavar="FILE", help="Write errors to FILE and not here."),
    _stream(
        "--json",
        "as_json",
        is_flag=True,
        help="Tell each state of the job as a line of JSON on standard error.",
    ),
    _files(
        "--stage-in",
        metavar="FILE[:NAME]",
        multiple=True,
        help="Copy a file or directory into the job's directory before it runs, as NAME. Can be repeated.",
    ),
    _files(
        "--stage-out",
        metavar="NAME[:FILE]",
        multiple=True,
        help="Copy a file or directory of the job's directory here, as FILE, if the job ended well. "
        "Can be repeated.",
    ),
    _files(
        "--cleanup",
        metavar="NAME",
        multiple=True,
        help="Remove a file or directory of the job's directory after that. Can be repeated.",
    ),
    _resource("--nodes", metavar="N", help="Nodes to allocate."),
    _resource("--processes", metavar="N", help="Processes in total."),
    _resource("--processes-per-node", metavar="N", help="Processes on each node."),
    _resource("--cores", metavar="N", help="Cores for each process."),
    _resource("--gpus", metavar="N", help="GPUs for each process."),
    _resource("--memory", metavar="SIZE", help="Memory for the whole job: 4G, 512M, or bytes."),
    _resource("--exclusive", is_flag=True, help="Share the nodes with no other job."),
    _batch(
        "--time",
        metavar="TIME",
        help="How long the job may run: 90 (seconds), 10m, 2h30m, 1:30:00; 0 for ever.",
    ),
    _batch("--queue", metavar="NAME", help="The queue or partition."),
    _batch("--project", metavar="NAME", help="The project or account that is charged."),
    _batch("--reservation", metavar="ID", help="The advance reservation to run in."),
    _batch(
        "--after",
        metavar="[KIND:]ID",
        multiple=True,
        help="Start once the job with this native id has ended: well (ok, the default), however (any), or "
        "not well (notok), as in any:4711. Can be repeated.",
    ),
    _batch(
        "--attribute",
        metavar="SYSTEM.NAME[=VALUE]",
        multiple=True,
        help="An option of one batch system, such as slurm.qos=debug, or slurm.requeue, which has no value; "
        "other systems ignore it. Can be repeated.",
    ),
    _around("--launcher", metavar="NAME", help="What starts the processes, such as mpirun or srun."),
    _around("--pre-launch", metavar="FILE", help="A shell script that is sourced before the command starts."),
    _around("--post-launch", metavar="FILE", help="A shell script that is sourced after it has ended."),
    click.Argument(["command"], nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGS]..."),
)

#: Of `jpsi plugins`.
PLUGIN_PARAMETERS: tuple[click.Parameter, ...] = (
    click.Option(
        ["--kind"],
        type=click.Choice(["executor", "launcher", "transport", "override", "observer", "fake", "engine"]),
        help="Show plugins of this kind only.",
    ),
    click.Option(["--json", "as_json"], is_flag=True, help="Write a JSON array with an object for each."),
    click.Option(
        ["--no-load", "is_loading"],
        flag_value=False,
        default=True,
        help="Run no code of the plugins: what cannot be loaded is not noticed.",
    ),
    click.Argument(["name"], required=False, metavar="[NAME]"),
)

#: Of `jpsi fake`.
FAKE_PARAMETERS: tuple[click.Parameter, ...] = (
    click.Option(
        ["--slots"], metavar="N", help="How many processes of jobs there is room for at a time.  [default: 4]"
    ),
    click.Option(["--lag"], metavar="TIME", help="How long a new job shows in no listing.  [default: 0]"),
    click.Option(["--keep"], metavar="TIME", help="How long a job that has ended still does.  [default: 5m]"),
    click.Option(
        ["--no-accounting", "has_accounting"],
        flag_value=False,
        default=True,
        help="Keep no records of jobs beyond that, as a site without sacct or job history.",
    ),
    click.Argument(["system"], required=False, metavar="SYSTEM"),
    click.Argument(["program"], nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGS]..."),
)
