"""The custom attributes `slurm.<option>`: which options of sbatch a user may set past jpsi, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jpsi.plugin import JobSpec, custom_options, custom_problems, option_text

#: Options of sbatch without their dashes, with their values; None is an option without a value.
Options = Mapping[str, str | None]

_SYSTEM = "slurm"
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
    {"account", "comment", "cpus-per-task", "dependency", "exclusive", "gpus-per-task", "job-name"}
    | {"kill-on-invalid-dep", "mem", "mem-per-cpu"}
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
    for name, value in custom_options(spec, _SYSTEM).items():
        if name == "comment":
            # The last word stays the tag, by which the job is found.
            merged[name] = " ".join(text for text in (option_text(value), options.get(name)) if text)
            continue
        merged.pop(name, None)
        if value is None or value is False:
            continue
        for other in _EXCLUDES.get(name, ()):
            merged.pop(other, None)
        merged[name] = option_text(value)
    return merged


def option_problems(spec: JobSpec) -> Iterator[str]:
    """What is wrong with the custom attributes for Slurm, one sentence each."""
    yield from custom_problems(spec, _SYSTEM, _NAME, "qos", _REFUSED)
    for name in custom_options(spec, _SYSTEM):
        whole = _abbreviated(name)
        if whole in _REFUSED:
            yield f"custom attribute {_SYSTEM}.{name} cannot be set: {_REFUSED[whole]}"
        elif whole is not None:
            yield f"custom attribute {_SYSTEM}.{name}: sbatch takes it for --{whole}; write {_SYSTEM}.{whole}"


def _abbreviated(name: str) -> str | None:
    """The option that sbatch takes `name` for, which is only how it begins."""
    if name in _ALREADY_SET or name in _REFUSED or not _NAME.fullmatch(name):
        return None
    return next((option for option in [*_REFUSED, *sorted(_ALREADY_SET)] if option.startswith(name)), None)
