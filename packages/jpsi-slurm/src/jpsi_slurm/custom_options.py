"""Checks the sbatch options that users set directly, and parses the time format of `--time`.

Users set them as custom attributes `slurm.<option>`. Options that would break what jpsi guarantees are
refused; `directives` writes the others into the script.
"""

from __future__ import annotations

import re
from datetime import timedelta

from jpsi.plugin import CustomOptions

#: sbatch(1), OPTIONS, by their long names.
CUSTOM = CustomOptions(
    systems=("slurm",),
    name=r"[a-z][a-z0-9]+(-[a-z0-9]+)*",
    example="constraint",
    refused={
        "array": "jpsi counts one submission as one job; use submit_many",
        "chdir": "set JobSpec.directory",
        "cluster": "set `cluster` in the executor's configuration",
        "clusters": "set `cluster` in the executor's configuration",
        "error": "set JobSpec.stderr_path",
        "export": "set JobSpec.environment and inherit_environment",
        "export-file": "set JobSpec.environment",
        "get-user-env": "source what the job needs in pre_launch",
        "gid": "jpsi submits as the user who runs it",
        "help": "it submits nothing",
        "input": "set JobSpec.stdin_path",
        "open-mode": "jpsi's script opens the files of a job, and empties those that exist",
        "output": "set JobSpec.stdout_path",
        "parsable": "jpsi always sets it",
        "quiet": "sbatch would not print the job's id",
        "test-only": "it submits nothing",
        "uid": "jpsi submits as the user who runs it",
        "usage": "it submits nothing",
        "version": "it submits nothing",
        "wait": "sbatch would not return before the job has ended; use Job.wait",
        "wrap": "the job's command is JobSpec.executable",
    },
    excludes={
        "mem": ("mem-per-cpu",),
        "mem-per-cpu": ("mem",),
        "mem-per-gpu": ("mem", "mem-per-cpu"),
        "no-requeue": ("requeue",),
        "oversubscribe": ("exclusive",),
        "requeue": ("no-requeue",),
    },
    # The tag stays the last word of the comment: jpsi finds the job by it.
    joined={"comment"},
    dependency="dependency",
    exact={"gpus"},
)

_UNLIMITED = frozenset({"0", "UNLIMITED", "INFINITE"})
#: The variables that tell an element how its array is numbered; sbatch(1), OUTPUT ENVIRONMENT VARIABLES.
ARRAY_RANGE = tuple((f"SLURM_ARRAY_TASK_{it}", f"JPSI_ARRAY_{it}") for it in ("COUNT", "MIN", "MAX", "STEP"))
# sbatch(1): --time
#: Slurm counts time limits in minutes.
WALLTIME_UNIT = timedelta(minutes=1)
_TIME = re.compile(r"(?:(\d+)-)?(\d+(?::\d+){0,2})", re.ASCII)


def parse_time(text: str) -> timedelta:
    """Parse a time in the format of `--time`; 0 means no limit.

    >>> [str(parse_time(text)) for text in ("90", "1:30", "1:30:00", "1-12", "UNLIMITED")]
    ['1:30:00', '0:01:30', '1:30:00', '1 day, 12:00:00', '0:00:00']

    Raises:
        ValueError: the text is no such time.
    """
    if text.upper() in _UNLIMITED:
        return timedelta(0)
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time in the format of sbatch")
    days, numbers = match[1], [int(number) for number in match[2].split(":")]
    # without days, a number is minutes, and `a:b` is minutes and seconds
    names = ("hours", "minutes", "seconds")[0 if days or len(numbers) == 3 else 1 :]  # noqa: PLR2004  all of them
    return timedelta(days=int(days or 0), **dict(zip(names, numbers, strict=False)))
