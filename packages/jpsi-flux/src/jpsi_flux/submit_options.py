"""Checks the custom attributes `flux.<option>`, Flux options that users set directly."""

from __future__ import annotations

from jpsi.plugin import CustomOptions

_RESOURCES = "say it in JobSpec.resources"
_STREAMS = "set JobSpec.stdin_path, stdout_path and stderr_path"
_ENVIRONMENT = "set JobSpec.environment and inherit_environment"
_NOTHING = "it submits nothing"
_WAITS = "the submission would not return before the job has ended; use Job.wait"

#: flux-submit(1) and flux-batch(1), OPTIONS, by their long names.
CUSTOM = CustomOptions(
    systems=("flux",),
    name=r"[a-z][a-z0-9]+(-[a-z0-9]+)*",
    example="requires",
    refused={
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
        "log": "the submission would not print the job's id",
        "log-stderr": "the submission would not print its errors",
        "nodes": _RESOURCES,
        "nslots": _RESOURCES,
        "ntasks": _RESOURCES,
        "output": _STREAMS,
        "queue": "set JobAttributes.queue_name",
        "quiet": "the submission would not print the job's id",
        "tasks-per-core": _RESOURCES,
        "tasks-per-node": _RESOURCES,
        "time-limit": "set JobAttributes.duration",
        "wait": _WAITS,
        "wait-event": _WAITS,
        "watch": _WAITS,
        "wrap": "the job's command is JobSpec.executable",
    },
    repeated={"dependency", "setattr"},
    # Flux 0.58 accepts abbreviations of option names.
    abbreviated=(),
)
