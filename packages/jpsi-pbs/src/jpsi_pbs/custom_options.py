"""Checks the qsub options that users set directly.

Users set them as custom attributes `pbs.<option>` and `torque.<option>`. Options that would break what jpsi
guarantees are refused; `directives` writes the others into the script.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from jpsi.plugin import CustomOptions

# PBS's newer way to request resources; it excludes the older options.
_NEW_FORM = ("l.select", "l.place")

#: qsub(1B), OPTIONS: a letter, or a resource of -l or an attribute of -W.
CUSTOM = CustomOptions(
    systems=(),
    name=r"[A-Za-z]|[lW]\.[A-Za-z][A-Za-z0-9_.-]*",
    example="p",
    refused={
        "C": "jpsi writes the directives",
        "I": "an interactive job has no script",
        "J": "jpsi counts one submission as one job; use submit_many",
        "R": "set JobSpec.stdout_path and stderr_path",
        "S": "set `shell` in the executor's configuration",
        "V": "jpsi always sets it",
        "W": "name the attribute, such as W.group_list",
        "W.block": "qsub would not return before the job has ended; use Job.wait",
        "W.interactive": "an interactive job has no script",
        "X": "an interactive job has no script",
        "e": "set JobSpec.stderr_path",
        "j": "set JobSpec.stdout_path and stderr_path",
        "k": "set JobSpec.stdout_path and stderr_path",
        "l": "name the resource, such as l.software",
        "o": "set JobSpec.stdout_path",
        "t": "jpsi counts one submission as one job; use submit_many",
        "v": "set JobSpec.environment",
        "z": "qsub would not print the job's id",
    },
    excludes={"l.mem": _NEW_FORM, "l.ncpus": _NEW_FORM, "l.nodes": _NEW_FORM},
    dependency="W.depend",
)


def system_options(
    systems: tuple[str, ...], refused: Mapping[str, str] | None = None, indirect: tuple[str, ...] = ()
) -> CustomOptions:
    """Return the options of one batch system.

    Args:
        systems: the prefixes of its custom attributes.
        refused: custom attributes that only this system refuses.
        indirect: custom attributes that are no options of qsub.
    """
    return attrs.evolve(
        CUSTOM,
        systems=systems,
        name="|".join([CUSTOM.name.pattern, *indirect]),
        refused={**CUSTOM.refused, **(refused or {})},
        indirect=indirect,
    )
