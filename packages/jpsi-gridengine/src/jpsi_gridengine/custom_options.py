"""Checks the qsub options that users set directly.

Users set them as custom attributes `gridengine.<option>` or `sge.<option>`. Options that would break what
jpsi guarantees are refused; `directives` writes the others into the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jpsi.plugin import CustomOptions, JobSpec

#: The variables that tell a task how its array is numbered; qsub(1), -t.
ARRAY_RANGE = (
    ("SGE_TASK_FIRST", "JPSI_ARRAY_MIN"),
    ("SGE_TASK_LAST", "JPSI_ARRAY_MAX"),
    ("SGE_TASK_STEPSIZE", "JPSI_ARRAY_STEP"),
)
#: sge_submit(1) of 8.1.9, OPTIONS.
CUSTOM = CustomOptions(
    # The executor has two names.
    systems=("gridengine", "sge"),
    name=r"[A-Za-z][A-Za-z_]*",
    example="js",
    refused={
        "C": "jpsi writes the directives",
        "N": "set JobSpec.name",
        "S": "set `shell` in the executor's configuration",
        "V": "set JobSpec.inherit_environment",
        "b": "jpsi submits a script",
        "clear": "it would remove jpsi's own options",
        "cwd": "set JobSpec.directory",
        "e": "set JobSpec.stderr_path",
        "help": "it submits nothing",
        "i": "set JobSpec.stdin_path",
        "j": "set JobSpec.stdout_path and stderr_path to one file",
        "now": "jpsi counts on a job that is queued",
        "o": "set JobSpec.stdout_path",
        "shell": "jpsi submits a script",
        "sync": "qsub would not return before the job has ended; use Job.wait",
        "t": "jpsi counts one submission as one job; use submit_many",
        "tc": "it is for arrays",
        "terse": "jpsi always sets it",
        "v": "set JobSpec.environment",
        "verify": "it submits nothing",
        "wd": "set JobSpec.directory",
    },
    repeated={"ac", "l"},
    dependency="hold_jid",
)
# The value of -pe, the only option with two arguments: a parallel environment and the slots. It may be no
# range, as the number of a job's processes is fixed.
_PARALLEL_ENVIRONMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_.+-]*) ([1-9][0-9]*)")
_VERIFY_ONLY = frozenset({"p", "v"})


def split_parallel_environment(option: str, value: str | None) -> tuple[str, str | None]:
    """Return an option and its value; the first word of `pe` joins the option, so that no blank is quoted."""
    match = _PARALLEL_ENVIRONMENT.fullmatch(value or "") if option == "pe" else None
    return (option, value) if match is None else (f"pe {match[1]}", match[2])


def requested_slots(spec: JobSpec) -> int | None:
    """Return the slots that the user's custom attribute `pe` requests; None if it is not set."""
    match = _PARALLEL_ENVIRONMENT.fullmatch(str(CUSTOM.of(spec).get("pe")))
    return None if match is None else int(match[2])


def value_problems(spec: JobSpec) -> Iterator[str]:
    """Yield one sentence for each custom attribute with an invalid value."""
    custom = CUSTOM.of(spec)
    if custom.get("w") in _VERIFY_ONLY:
        yield f"custom attribute gridengine.w cannot be {custom['w']}: it submits nothing"
    environment = custom.get("pe")
    if isinstance(environment, str | int | float) and not _PARALLEL_ENVIRONMENT.fullmatch(str(environment)):
        expected = "a name and a number such as 'mpi 8'"
        yield f"custom attribute gridengine.pe must be {expected}, not {environment!r}"
