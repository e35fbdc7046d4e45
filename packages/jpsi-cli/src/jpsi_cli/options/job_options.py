"""The parameters of `jpsi run`, `plugins` and `fake`, in the order of their help."""

from __future__ import annotations

from functools import partial

import click

from . import completion
from .click_commands import GroupedOption

_job_option = partial(GroupedOption, group="What runs where")
_directory_option = partial(GroupedOption, group="Directory and environment")
_stream_option = partial(GroupedOption, group="Input and output")
_staging_option = partial(GroupedOption, group="Files in and out")
_resource_option = partial(GroupedOption, group="Resources")
_batch_option = partial(GroupedOption, group="Batch system")
_wrapper_option = partial(GroupedOption, group="Around the command")

#: Of `jpsi run`.
RUN_PARAMETERS: tuple[click.Parameter, ...] = (
    _job_option(
        "--executor",
        "-x",
        metavar="NAME",
        help="Where to run the job: an executor, or a target of the configuration.  "
        "[default: the configured one, else local, this machine]",
        shell_complete=completion.executors,
    ),
    _job_option(
        "--file",
        "-f",
        metavar="FILE",
        help="Run what this job document (YAML or JSON) describes instead of a COMMAND; - is standard input. "
        "Other options override the document.",
    ),
    _job_option("--name", metavar="NAME", help="A name for the job in listings."),
    _job_option(
        "--expand",
        is_flag=True,
        help="Replace ${NAME} in the arguments with that variable of the job's environment. "
        "Without this they reach the job exactly as they were typed.",
    ),
    _directory_option(
        "--dir", metavar="DIR", help="The directory to run in; ~/ is the home directory where the job runs."
    ),
    _directory_option("--create-dir", is_flag=True, help="Make that directory if it does not exist."),
    _directory_option(
        "--env",
        metavar="NAME=VALUE",
        multiple=True,
        help="Set a variable; ${OTHER} in VALUE is replaced where the job runs. Can be repeated.",
    ),
    _directory_option("--no-inherit-env", is_flag=True, help="Start with an empty environment."),
    _stream_option("--stdin", metavar="FILE", help="Read input from FILE.  [default: empty input]"),
    _stream_option(
        "--stdout",
        metavar="FILE",
        help="Write output to FILE, relative to the job's directory, and not here.",
    ),
    _stream_option("--stderr", metavar="FILE", help="Write errors to FILE and not here."),
    _stream_option(
        "--json",
        "as_json",
        is_flag=True,
        help="Write each state of the job as a line of JSON to standard error.",
    ),
    _staging_option(
        "--stage-in",
        metavar="FILE[:NAME]",
        multiple=True,
        help="Copy a file or directory into the job's directory before it runs, as NAME. Can be repeated.",
    ),
    _staging_option(
        "--stage-out",
        metavar="NAME[:FILE]",
        multiple=True,
        help="Copy a file or directory of the job's directory here, as FILE, if the job completed. "
        "Can be repeated.",
    ),
    _staging_option(
        "--cleanup",
        metavar="NAME",
        multiple=True,
        help="Remove a file or directory of the job's directory after stage-out. Can be repeated.",
    ),
    _resource_option("--nodes", metavar="N", help="Nodes to allocate."),
    _resource_option("--processes", metavar="N", help="Processes in total."),
    _resource_option("--processes-per-node", metavar="N", help="Processes on each node."),
    _resource_option("--cores", metavar="N", help="Cores for each process."),
    _resource_option("--gpus", metavar="N", help="GPUs for each process."),
    _resource_option("--memory", metavar="SIZE", help="Memory for the whole job: 4G, 512M, or bytes."),
    _resource_option("--exclusive", is_flag=True, help="Share the nodes with no other job."),
    _batch_option(
        "--time",
        metavar="TIME",
        help="The time limit of the job: 90 (seconds), 10m, 2h30m, 1:30:00; 0 is no limit.",
    ),
    _batch_option("--queue", metavar="NAME", help="The queue or partition."),
    _batch_option("--project", metavar="NAME", help="The project or account that is charged."),
    _batch_option("--reservation", metavar="ID", help="The advance reservation to run in."),
    _batch_option(
        "--after",
        metavar="[KIND:]ID",
        multiple=True,
        help="Start once the job with this native id has ended: well (ok, the default), however (any), or "
        "not well (notok), as in any:4711. Can be repeated.",
    ),
    _batch_option(
        "--attribute",
        metavar="SYSTEM.NAME[=VALUE]",
        multiple=True,
        help="An option of one batch system, such as slurm.qos=debug, or slurm.requeue, which has no value; "
        "other systems ignore it. Can be repeated.",
    ),
    _wrapper_option(
        "--launcher", metavar="NAME", help="The launcher that starts the processes, such as mpirun or srun."
    ),
    _wrapper_option(
        "--pre-launch", metavar="FILE", help="A shell script that is sourced before the command starts."
    ),
    _wrapper_option(
        "--post-launch", metavar="FILE", help="A shell script that is sourced after the command has ended."
    ),
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
        help="Do not load the plugins: broken ones are not noticed.",
    ),
    click.Argument(["name"], required=False, metavar="[NAME]"),
)

#: Of `jpsi fake`.
FAKE_PARAMETERS: tuple[click.Parameter, ...] = (
    click.Option(["--slots"], metavar="N", help="How many processes of jobs run at a time.  [default: 4]"),
    click.Option(
        ["--lag"], metavar="TIME", help="How long a new job is missing from listings.  [default: 0]"
    ),
    click.Option(
        ["--keep"], metavar="TIME", help="How long a job that has ended stays listed.  [default: 5m]"
    ),
    click.Option(
        ["--no-accounting", "has_accounting"],
        flag_value=False,
        default=True,
        help="Keep no record of older jobs, like a site without sacct or job history.",
    ),
    click.Argument(["system"], required=False, metavar="SYSTEM"),
    click.Argument(["program"], nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGS]..."),
)
