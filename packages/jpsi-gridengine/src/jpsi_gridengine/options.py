"""The custom attributes `gridengine.<option>`: which options of qsub a user may set past jpsi, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jpsi.plugin import JobSpec, custom_options, custom_problems, dependencies, option_text

#: An option of qsub without its dash, with its value; None is an option without a value.
Option = tuple[str, str | None]

# The executor has two names.
_SYSTEMS = ("gridengine", "sge")
# sge_submit(1) of 8.1.9, OPTIONS
_NAME = re.compile(r"[A-Za-z][A-Za-z_]*\Z")
# The one option of two words: a parallel environment, and how many slots; no range, as the number of a job's
# processes does not vary
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]* [1-9][0-9]*")
# Options that may be given several times: what a custom attribute says is added to what jpsi says.
_REPEATABLE = frozenset({"l", "ac"})

# Those that would break what jpsi promises, with what to do instead
_REFUSED = {
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
}
_NOTHING_SUBMITTED = frozenset({"p", "v"})


def with_custom(options: Mapping[str, str | None], spec: JobSpec) -> list[Option]:
    """The options with what the custom attributes of a sound spec add, replace and take away."""
    custom = _custom(spec)
    kept = [(name, value) for name, value in options.items() if name in _REPEATABLE or name not in custom]
    given = [(name, value) for name, value in custom.items() if value is not None and value is not False]
    texts = [(name, option_text(value)) for name, value in given]
    return [_two_words(name, text) for name, text in [*kept, *texts]]


def _two_words(name: str, value: str | None) -> Option:
    """`pe` with its first word, so that the blank between its words is not quoted."""
    if name == "pe" and value is not None and _ENVIRONMENT.fullmatch(value):
        environment, _, number = value.partition(" ")
        return f"pe {environment}", number
    return name, value


def option_problems(spec: JobSpec) -> Iterator[str]:
    """What is wrong with the custom attributes for Grid Engine, one sentence each."""
    for system in _SYSTEMS:
        yield from custom_problems(spec, system, _NAME, "js", _REFUSED)
    custom = _custom(spec)
    if custom.get("w") in _NOTHING_SUBMITTED:
        yield f"custom attribute gridengine.w cannot be {custom['w']}: it submits nothing"
    environment = custom.get("pe")
    if isinstance(environment, str | int | float) and not _ENVIRONMENT.fullmatch(str(environment)):
        wanted = "a name and a number such as 'mpi 8'"
        yield f"custom attribute gridengine.pe must be {wanted}, not {environment!r}"
    if "hold_jid" in custom and dependencies(spec):
        yield "attributes.after and the custom attribute gridengine.hold_jid cannot be given both"


def _custom(spec: JobSpec) -> dict[str, Any]:  # whatever users wrote
    return {name: value for system in _SYSTEMS for name, value in custom_options(spec, system).items()}
