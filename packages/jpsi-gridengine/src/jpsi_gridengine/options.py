"""Options of qsub: those that are attributes of a job, and those that users may set past jpsi."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jpsi.plugin import CustomOptions, JobSpec

#: The options whose value is that of an attribute of the job, with its name.
NAMES: Mapping[str, str] = {"q": "queue_name", "P": "project_name", "ar": "reservation_id"}
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
        "clear": "it would take away what jpsi asks for",
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
# The one option of two words: a parallel environment, and how many slots; no range, as the number of a job's
# processes does not vary
_ENVIRONMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_.+-]*) ([1-9][0-9]*)")
_NOTHING_SUBMITTED = frozenset({"p", "v"})


def spelled(option: str, value: str | None) -> tuple[str, str | None]:
    """An option and its value; `pe` with its first word, so that the blank between the two is not quoted."""
    words = _ENVIRONMENT.fullmatch(value or "") if option == "pe" else None
    return (option, value) if words is None else (f"pe {words[1]}", words[2])


def own_slots(spec: JobSpec) -> int | None:
    """How many slots a user's own parallel environment gives the job, if there is one."""
    words = _ENVIRONMENT.fullmatch(str(CUSTOM.of(spec).get("pe")))
    return None if words is None else int(words[2])


def value_problems(spec: JobSpec) -> Iterator[str]:
    """What is wrong with the values of custom attributes, one sentence each."""
    custom = CUSTOM.of(spec)
    if custom.get("w") in _NOTHING_SUBMITTED:
        yield f"custom attribute gridengine.w cannot be {custom['w']}: it submits nothing"
    environment = custom.get("pe")
    if isinstance(environment, str | int | float) and not _ENVIRONMENT.fullmatch(str(environment)):
        wanted = "a name and a number such as 'mpi 8'"
        yield f"custom attribute gridengine.pe must be {wanted}, not {environment!r}"
