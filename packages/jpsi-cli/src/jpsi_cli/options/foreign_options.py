"""Translates options and commands of batch systems, and other names that people try, to those of jpsi."""

from __future__ import annotations

import click

# Options of sbatch that only Slurm has, and that jpsi passes on.
_SLURM = (
    "--begin --comment --constraint --contiguous --cores-per-socket --cpu-freq --deadline --distribution "
    "--exclude --gpus-per-node --hint --mem-bind --nice --nodelist --no-requeue --oversubscribe "
    "--priority --profile --reboot --requeue --sockets-per-node --switches --threads-per-core --tmp --wckey"
)
_NO_VALUE = {"--contiguous", "--no-requeue", "--oversubscribe", "--reboot", "--requeue"}

#: What jpsi has instead, as the end of the sentence "jpsi ...".
FOREIGN_OPTIONS = {
    **{it: f"has --attribute slurm.{it[2:]}{'' if it in _NO_VALUE else '=VALUE'}" for it in _SLURM.split()},
    **dict.fromkeys(("-A", "-P", "--account"), "has --project"),
    **dict.fromkeys(("-D", "-wd", "--chdir", "--cwd", "--directory", "--workdir"), "has --dir"),
    "-cwd": "runs jobs in the current directory, or in --dir",
    **dict.fromkeys(("--cpus", "--cpus-per-task", "--threads"), "has --cores"),
    **dict.fromkeys(("--ntasks", "--nprocs", "--num-tasks", "--tasks", "--np", "-np"), "has --processes"),
    **dict.fromkeys(("--ntasks-per-node", "--ppn"), "has --processes-per-node"),
    "-pe": "has --processes, or --cores for threads",
    **dict.fromkeys(("-G", "--gres"), "has --gpus, for each process"),
    **dict.fromkeys(("-gpu", "--gpus-per-task"), "has --gpus"),
    **dict.fromkeys(("--mem", "--mem-per-node", "--ram"), "has --memory, for the whole job"),
    **dict.fromkeys(("-l", "-R"), "has options for each resource: --nodes, --cores, --memory, --time"),
    "-C": "has --attribute slurm.constraint=LIST",
    **dict.fromkeys(("--duration", "--max-time", "--runtime", "--time-limit", "--wall-time"), "has --time"),
    "-W": "has --time, and --after for dependencies",
    **dict.fromkeys(("--dependency", "--hold-jid", "-hold_jid"), "has --after"),
    "-w": "has --after for dependencies, and --attribute slurm.nodelist=NODES",
    **dict.fromkeys(("--partition", "--queue-name"), "has --queue"),
    "-q": "has --queue, and --qos",
    "-tc": "has --array INDICES%N",
    "-H": "has --hold",
    "--job-name": "has --name",
    **dict.fromkeys(("--error", "-eo", "--err"), "has --stderr"),
    **dict.fromkeys(("--output", "-oo", "--out"), "has --stdout"),
    **dict.fromkeys(("-i", "--input"), "has --stdin"),
    "-j": "joins the output and the errors if --stdout and --stderr name one file",
    **dict.fromkeys(("--export", "--environment", "-v"), "has --env NAME=VALUE, and --no-inherit-env"),
    "-V": "passes the environment on, unless there is --no-inherit-env",
    "--module": "has --setup module:NAME",
    "--image": "has --container",
    **dict.fromkeys(("--mount", "--volume"), "has --bind"),
    "-m": "has --mail EVENTS:ADDRESS",
    "--mail-type": "has --mail EVENTS:ADDRESS",
    "--mail-user": "has --mail ADDRESS",
    "-M": "has --mail ADDRESS, and --memory",
    "--signal": "has --warn SIGNAL@SECONDS",
    **dict.fromkeys(("-I", "--interactive", "--pty"), "has no interactive jobs; jpsi run shows the output"),
    **dict.fromkeys(("-K", "-sync", "--wait"), "waits in jpsi run, and by jpsi wait"),
    **dict.fromkeys(("-terse", "--parsable"), "prints the ids alone in jpsi submit"),
    **dict.fromkeys(("--dry-run", "--test-only"), "has the commands jpsi validate and jpsi script"),
    "--retries": "has --retry WHY=N",
    **dict.fromkeys(("-b", "--command", "--script"), "takes the command after --"),
    "--wrap": "takes a line of shell as: -- sh -c 'LINE'",
}

#: Options of other commands that have another meaning there, or none: what to type instead.
OTHER_WAYS = {
    ("cancel", "--all"): "jpsi ls --ids | xargs jpsi cancel",
    ("ls", "--failed"): "jpsi ls --state FAILED",
    **dict.fromkeys((("run", "--array"), ("run", "-a")), "jpsi submit has it"),
}
#: What to type instead of the commands of batch systems, and of names that people try.
FOREIGN_COMMANDS = {
    **dict.fromkeys(("jobs", "ps", "qstat", "bjobs", "list", "squeue", "stat", "status"), "jpsi ls"),
    **dict.fromkeys(("history", "sacct"), "jpsi ls --all"),
    **dict.fromkeys(("bkill", "delete", "kill", "qdel", "rm", "scancel", "stop"), "jpsi cancel"),
    **dict.fromkeys(("bsub", "qsub", "sbatch", "start"), "jpsi submit"),
    **dict.fromkeys(("exec", "srun"), "jpsi run"),
    **dict.fromkeys(("describe", "info", "inspect"), "jpsi show"),
    **dict.fromkeys(("cat", "log", "output", "peek", "tail"), "jpsi logs"),
    **dict.fromkeys(("nodes", "partitions", "sinfo"), "jpsi queues"),
    **dict.fromkeys(("again", "redo", "repeat", "requeue", "rerun", "restart", "retry"), "jpsi resubmit"),
    **dict.fromkeys(("pause", "qhold", "suspend"), "jpsi hold"),
    **dict.fromkeys(("continue", "qrls", "resume"), "jpsi release"),
    "help": "jpsi --help, or jpsi run --help",
    "version": "jpsi --version",
    "why": "jpsi explain",
}


def _refuse(ctx: click.Context, parameter: click.Parameter, is_typed: bool) -> None:  # noqa: FBT001  click's
    if is_typed:
        raise click.NoSuchOption(parameter.opts[0], ctx=ctx)


#: Options such as `-pe` of Grid Engine, which click would read as `-p e`, and so submit another job.
REFUSED_OPTIONS = [
    click.Option([it], is_flag=True, hidden=True, expose_value=False, is_eager=True, callback=_refuse)
    for it in FOREIGN_OPTIONS
    if it[1] != "-" and len(it) > len("-x")
]
