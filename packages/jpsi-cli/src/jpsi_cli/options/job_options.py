"""Defines the options and arguments of `jpsi run`, `plugins` and `fake`, in the order of their help."""

from __future__ import annotations

from functools import partial

import click

from . import completion
from .click_commands import flag, grouped_flag, grouped_option, json_option, option
from .foreign_options import REFUSED_OPTIONS

_job_option = partial(grouped_option, "What runs where")
_directory_option = partial(grouped_option, "Directory and environment")
_stream_option = partial(grouped_option, "Input and output")
_staging_option = partial(grouped_option, "Files in and out", multiple=True)
_resource_option = partial(grouped_option, "Resources")
_batch_option = partial(grouped_option, "Batch system")
_wrapper_option = partial(grouped_option, "Around the command")

#: Of `jpsi run`.
RUN_PARAMETERS: tuple[click.Parameter, ...] = (
    _job_option(
        "--executor -x",
        "NAME",
        "Where to run the job: an executor, or a target of the configuration.  "
        "[default: the configured one, else local, this machine]",
        shell_complete=completion.executors,
    ),
    _job_option(
        "--file -f",
        "FILE",
        "Run what this job document (YAML or JSON) describes instead of a COMMAND; - is standard input. "
        "Other options override the document.",
    ),
    grouped_flag("What runs where", "--lenient", "Warn of unknown keys in the document, and ignore them."),
    _job_option("--name -J", "NAME", "A name for the job in listings."),
    grouped_flag(
        "What runs where",
        "--expand",
        "Replace ${NAME} in the arguments with that variable of the job's environment. "
        "Without this they reach the job exactly as they were typed.",
    ),
    _directory_option(
        "--dir", "DIR", "The directory to run in; ~/ is the home directory where the job runs."
    ),
    grouped_flag("Directory and environment", "--create-dir", "Make that directory if it does not exist."),
    _directory_option(
        "--env",
        "NAME=VALUE",
        "Set a variable; ${OTHER} in VALUE is replaced where the job runs. Can be repeated.",
        multiple=True,
    ),
    grouped_flag("Directory and environment", "--no-inherit-env", "Start with an empty environment."),
    _directory_option(
        "--setup",
        "KIND:VALUE",
        "Set up a part of the environment: module:NAME, conda:NAME, venv:DIR, spack:SPEC or source:FILE. "
        "Can be repeated.",
        multiple=True,
    ),
    _stream_option("--stdin", "FILE", "Read input from FILE.  [default: empty input]"),
    _stream_option(
        "--stdout -o", "FILE", "Write output to FILE, relative to the job's directory, and not here."
    ),
    _stream_option("--stderr -e", "FILE", "Write errors to FILE and not here."),
    grouped_flag(
        "Input and output",
        "--json as_json",
        "Write each state of the job as a line of JSON to standard error.",
    ),
    _staging_option(
        "--stage-in",
        "FILE[:NAME]",
        "Copy a file or directory into the job's directory before it runs, as NAME. Can be repeated.",
    ),
    _staging_option(
        "--stage-out",
        "NAME[:FILE]",
        "Copy a file or directory of the job's directory here, as FILE, if the job completed. "
        "Can be repeated.",
    ),
    _staging_option(
        "--cleanup",
        "NAME",
        "Remove a file or directory of the job's directory after stage-out. Can be repeated.",
    ),
    _resource_option(
        "--like",
        "JOB",
        "Request what JOB did, but the time and memory that it used and a fifth more, if they are known. "
        "Other options override that.",
        shell_complete=completion.jobs,
    ),
    _resource_option("--nodes -N", "N", "Nodes to allocate."),
    _resource_option("--processes -n", "N", "Processes in total."),
    _resource_option("--processes-per-node", "N", "Processes on each node."),
    _resource_option("--cores -c", "N", "Cores for each process."),
    _resource_option("--gpus", "N", "GPUs for each process."),
    _resource_option("--gpu-type", "NAME", "The kind of the GPUs, as the batch system names it: a100."),
    _resource_option("--memory", "SIZE", "Memory for the whole job: 4G, 512M, or bytes, 1048576 at least."),
    _resource_option("--mem-per-cpu", "SIZE", "Instead, memory for each core."),
    _resource_option("--mem-per-gpu", "SIZE", "Instead, memory for each GPU."),
    grouped_flag("Resources", "--exclusive", "Share the nodes with no other job."),
    _batch_option(
        "--time",
        "TIME",
        "The time limit of the job: 90 (seconds), 10m, 2h30m, 1:30:00; 0 is no limit.  [default: 10m on "
        "batch systems, unless the configuration has another]",
    ),
    _batch_option(
        "-t t", "TIME", "--time in Slurm's forms: 90 (minutes), 10:30 (m:s), 1:30:00, 2-12 (days-hours)."
    ),
    _batch_option(
        "--warn",
        "SIGNAL@TIME",
        "Send the job a signal such as USR1 so long before the end of its time limit: USR1@90, USR1@5m.",
    ),
    _batch_option(
        "--retry",
        "WHY=N,...",
        "Submit the job again up to N times if it ends for a reason (oom, timeout, node, preempted, lost) "
        "or with an exit code: oom=3,75=1.",
    ),
    _batch_option(
        "--grow",
        "memory=X,time=X",
        "What the next attempt requests X times as much of: memory after oom, time after timeout.",
    ),
    _batch_option("--queue -p", "NAME", "The queue or partition; auto is one that fits the job."),
    _batch_option("--project", "NAME", "The project or account that is charged."),
    _batch_option("--reservation", "ID", "The advance reservation to run in."),
    _batch_option("--qos", "NAME", "The quality of service, which decides on priority and limits."),
    _batch_option(
        "--mail",
        "[EVENT,...:]ADDRESS",
        "Have the batch system send mail when the job ends, or of these events: begin, end, fail.",
    ),
    _batch_option("--licenses", "NAME[:N],...", "The licenses that the job needs, such as matlab:2,abaqus."),
    _batch_option(
        "--after -d",
        "[KIND:]JOB",
        "Start once JOB has ended: well (ok, the default), however (any), or not well (notok). JOB is an id, "
        "a native id or a name, of any executor; a name or an array stands for all its jobs, and "
        "sweep[3-5,8] for these of them. Several are ok:17:18,any:prepare. Can be repeated.",
        multiple=True,
        shell_complete=completion.jobs,
    ),
    _batch_option(
        "--attribute",
        "SYSTEM.NAME[=VALUE]",
        "An option of one batch system, such as slurm.nice=9, or slurm.requeue, which has no value; "
        "other systems ignore it. Can be repeated.",
        multiple=True,
    ),
    _wrapper_option(
        "--container",
        "IMAGE",
        "Run the command in a container: a file, or a name such as docker://debian:12.",
    ),
    _wrapper_option(
        "--bind",
        "PATH[:PATH][:ro]",
        "Show a file or directory in the container, there by its second path. Can be repeated.",
        multiple=True,
    ),
    _wrapper_option(
        "--container-runtime",
        "NAME",
        "apptainer, singularity, podman, charliecloud, docker, or a plugin's.  "
        "[default: the configured one, else the first of these where the job runs]",
    ),
    _wrapper_option("--launcher", "NAME", "The launcher that starts the processes, such as mpirun or srun."),
    _wrapper_option("--pre-launch", "FILE", "A shell script that is sourced before the command starts."),
    _wrapper_option("--post-launch", "FILE", "A shell script that is sourced after the command has ended."),
    *REFUSED_OPTIONS,
    click.Argument(["command"], nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGS]..."),
)

#: The kinds of plugins.
KINDS = ("executor", "launcher", "container", "transport", "override", "observer", "fake", "engine")

#: Of `jpsi plugins`.
PLUGIN_PARAMETERS: tuple[click.Parameter, ...] = (
    click.Option(
        ["--kind"],
        type=click.Choice(KINDS),
        help="Show plugins of this kind only.",
    ),
    json_option(),
    flag("--no-load is_loading", "Do not load the plugins: broken ones are not noticed.", is_negative=True),
    click.Argument(["name"], required=False, metavar="[NAME]"),
)

#: Of `jpsi fake`.
FAKE_PARAMETERS: tuple[click.Parameter, ...] = (
    option("--slots", "N", "How many processes of jobs run at a time.  [default: 4]"),
    option("--lag", "TIME", "How long a new job is missing from listings.  [default: 0]"),
    option("--keep", "TIME", "How long a job that has ended stays listed.  [default: 5m]"),
    flag(
        "--no-accounting has_accounting",
        "Keep no record of older jobs, like a site without sacct or job history.",
        is_negative=True,
    ),
    click.Argument(["system"], required=False, metavar="SYSTEM"),
    click.Argument(["program"], nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGS]..."),
)
