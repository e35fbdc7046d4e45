"""The custom attributes `flux.<option>`: which options of Flux a user may set past jpsi, and how."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jpsi.plugin import JobSpec, custom_options, custom_problems, option_text

#: Options without their dashes, with their values; None is an option without a value.
Option = tuple[str, str | None]

_SYSTEM = "flux"
# flux-submit(1) and flux-batch(1): long names
_NAME = re.compile(r"[a-z][a-z0-9]+(-[a-z0-9]+)*\Z")
_RESOURCES = "say it in JobSpec.resources"
_STREAMS = "set JobSpec.stdin_path, stdout_path and stderr_path"
_ENVIRONMENT = "set JobSpec.environment and inherit_environment"
_NOTHING = "it submits nothing"
_WAITS = "the submission would not return before the job has ended; use Job.wait"

# flux-submit(1) and flux-batch(1), OPTIONS: those that would break what jpsi promises, with what to do
# instead
_REFUSED = {
    "bank": "set JobAttributes.project_name",
    "bcc": "jpsi counts one submission as one job; use submit_many",
    "cc": "jpsi counts one submission as one job; use submit_many",
    "cores": _RESOURCES,
    "cores-per-slot": _RESOURCES,
    "cores-per-task": _RESOURCES,
    "cwd": "set JobSpec.directory",
    "dry-run": _NOTHING,
    "env": _ENVIRONMENT,
    "env-file": _ENVIRONMENT,
    "env-remove": _ENVIRONMENT,
    "error": _STREAMS,
    "exclusive": _RESOURCES,
    "gpus-per-node": _RESOURCES,
    "gpus-per-slot": _RESOURCES,
    "gpus-per-task": _RESOURCES,
    "help": _NOTHING,
    "input": _STREAMS,
    "job-name": "set JobSpec.name",
    "list-plugins": _NOTHING,
    "log": "the submission would not tell the job's id",
    "log-stderr": "the submission would not tell what is wrong",
    "nodes": _RESOURCES,
    "nslots": _RESOURCES,
    "ntasks": _RESOURCES,
    "output": _STREAMS,
    "queue": "set JobAttributes.queue_name",
    "quiet": "the submission would not tell the job's id",
    "tasks-per-core": _RESOURCES,
    "tasks-per-node": _RESOURCES,
    "time-limit": "set JobAttributes.duration",
    "wait": _WAITS,
    "wait-event": _WAITS,
    "watch": _WAITS,
    "wrap": "the job's command is JobSpec.executable",
}


def custom(spec: JobSpec) -> Iterator[Option]:
    """The options that the custom attributes of a sound spec add."""
    for name, value in custom_options(spec, _SYSTEM).items():
        if value is not None and value is not False:
            yield name, option_text(value)


def option_problems(spec: JobSpec) -> Iterator[str]:
    """What is wrong with the custom attributes for Flux, one sentence each."""
    yield from custom_problems(spec, _SYSTEM, _NAME, "requires", _REFUSED)
    for name in custom_options(spec, _SYSTEM):
        # Flux 0.58 takes the beginning of an option's name for the option.
        if name not in _REFUSED and (whole := _beginning(name, _REFUSED)) is not None:
            why = f"it may count as --{whole}: {_REFUSED[whole]}"
            yield f"custom attribute {_SYSTEM}.{name} cannot be set: {why}"


def _beginning(name: str, options: Iterable[str]) -> str | None:
    return next((option for option in options if option.startswith(name)), None)
