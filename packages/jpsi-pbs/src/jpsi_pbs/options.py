"""The custom attributes `pbs.<option>` and `torque.<option>`: options of qsub that a user sets past jpsi."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jpsi.plugin import JobSpec, custom_options, custom_problems, option_text

#: Options of qsub with their values, such as `-q` and `-l walltime`; None is an option without a value.
Options = Mapping[str, str | None]

# A letter, or what -l and -W take: a resource, an attribute
_NAME = re.compile(r"[A-Za-z]|[lW]\.[A-Za-z][A-Za-z0-9_.-]*")

# qsub(1B): those that would break what jpsi promises, with what to do instead
_REFUSED = {
    "C": "jpsi writes the directives",
    "I": "an interactive job has no script",
    "J": "jpsi counts one submission as one job; use submit_many",
    "R": "set JobSpec.stdout_path and stderr_path",
    "S": "set `shell` in the executor's configuration",
    "V": "jpsi always sets it",
    "W": "name the attribute, such as {system}.W.group_list",
    "W.block": "qsub would not return before the job has ended; use Job.wait",
    "W.interactive": "an interactive job has no script",
    "X": "an interactive job has no script",
    "e": "set JobSpec.stderr_path",
    "j": "set JobSpec.stdout_path and stderr_path",
    "k": "set JobSpec.stdout_path and stderr_path",
    "l": "name the resource, such as {system}.l.software",
    "o": "set JobSpec.stdout_path",
    "t": "jpsi counts one submission as one job; use submit_many",
    "v": "set JobSpec.environment",
    "z": "qsub would not tell the job's id",
}
# What PBS refuses beside these resources: the two ways to ask for them exclude each other.
_OLD_WAY = frozenset({"-l mem", "-l ncpus", "-l nodes"})
_NEW_WAY = ("-l select", "-l place")


def with_custom(options: Options, spec: JobSpec, system: str) -> dict[str, str | None]:
    """The options with what the custom attributes of a sound spec add, replace and take away."""
    merged = dict(options)
    for name, value in custom_options(spec, system).items():
        option = f"-{name.replace('.', ' ', 1)}"
        merged.pop(option, None)
        if value is None or value is False:
            continue
        if option in _OLD_WAY:
            for other in _NEW_WAY:
                merged.pop(other, None)
        merged[option] = option_text(value)
    return merged


def option_problems(spec: JobSpec, system: str) -> Iterator[str]:
    """What is wrong with the custom attributes for one system, one sentence each."""
    refused = {name: why.format(system=system) for name, why in _REFUSED.items()}
    yield from custom_problems(spec, system, _NAME, "p", refused)
