"""The custom attributes `slurm.<option>`: which options of sbatch a user may set past jpsi, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jpsi.plugin import JobSpec

#: Options of sbatch without their dashes, with their values; None is an option without a value.
Options = Mapping[str, str | None]

_PREFIX = "slurm."
# sbatch(1), OPTIONS: long names
_NAME = re.compile(r"[a-z][a-z0-9]+(-[a-z0-9]+)*\Z")

# sbatch(1), OPTIONS, those that would break what jpsi promises, with what to do instead
_REFUSED = {
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
    "output": "set JobSpec.stdout_path",
    "parsable": "jpsi always sets it",
    "quiet": "sbatch would not tell the job's id",
    "test-only": "it submits nothing",
    "uid": "jpsi submits as the user who runs it",
    "usage": "it submits nothing",
    "version": "it submits nothing",
    "wait": "sbatch would not return before the job has ended; use Job.wait",
    "wrap": "the job's command is JobSpec.executable",
}
# What jpsi sets itself: abbreviated, which sbatch understands, it would be set twice
_ALREADY_SET = frozenset(
    {"account", "comment", "cpus-per-task", "exclusive", "gpus-per-task", "job-name", "mem", "mem-per-cpu"}
    | {"nodes", "ntasks", "ntasks-per-node", "partition", "reservation", "requeue", "no-requeue", "time"}
)
# What an option that a custom attribute sets contradicts, of those that jpsi sets itself
_EXCLUDES = {
    "mem": ("mem-per-cpu",),
    "mem-per-cpu": ("mem",),
    "mem-per-gpu": ("mem", "mem-per-cpu"),
    "no-requeue": ("requeue",),
    "oversubscribe": ("exclusive",),
    "requeue": ("no-requeue",),
}


def with_custom(options: Options, spec: JobSpec) -> dict[str, str | None]:
    """The options with what the custom attributes of a sound spec add, replace and take away."""
    merged = dict(options)
    for name, value in _custom(spec).items():
        if name == "comment":
            # The last word stays the tag, by which the job is found.
            merged[name] = " ".join(text for text in (_text(value), options.get(name)) if text)
            continue
        merged.pop(name, None)
        if value is None or value is False:
            continue
        for other in _EXCLUDES.get(name, ()):
            merged.pop(other, None)
        merged[name] = _text(value)
    return merged


def custom_problems(spec: JobSpec) -> Iterator[str]:
    """What is wrong with the custom attributes for Slurm, one sentence each."""
    for name, value in _custom(spec).items():
        if not _NAME.match(name):
            yield (
                f"custom attribute {_PREFIX}{name}: an option's long name is needed, in small letters and "
                "without dashes before it, such as slurm.qos"
            )
            continue
        refused, whole = _refused(name), _abbreviated(name)
        if refused is not None:
            yield f"custom attribute {_PREFIX}{name} cannot be set: {_REFUSED[refused]}"
        elif whole is not None:
            yield f"custom attribute {_PREFIX}{name}: sbatch takes it for --{whole}; write {_PREFIX}{whole}"
        if value is not None and not isinstance(value, str | int | float):
            yield (
                f"custom attribute {_PREFIX}{name} must be text, a number, True for an option without a "
                f"value, or None or False to leave the option out, not {value!r}"
            )


def _refused(name: str) -> str | None:
    """The refused option that `name` sets; sbatch also knows an option by how it begins."""
    if name in _REFUSED:
        return name
    return next((option for option in _REFUSED if option.startswith(name)), None)


def _abbreviated(name: str) -> str | None:
    """The option of those that jpsi sets which sbatch takes `name` for."""
    if name in _ALREADY_SET:
        return None
    return next((option for option in sorted(_ALREADY_SET) if option.startswith(name)), None)


def _custom(spec: JobSpec) -> dict[str, Any]:
    attributes = None if spec.attributes is None else spec.attributes.custom_attributes
    return {
        name[len(_PREFIX) :]: value
        for name, value in (attributes or {}).items()
        if name.lower().startswith(_PREFIX)
    }


def _text(value: object) -> str | None:
    """What stands behind an option's `=`; None for an option without a value."""
    if value is None or isinstance(value, bool):
        return None
    return str(value)
