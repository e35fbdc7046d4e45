"""Checks the custom attributes `flux.<option>`, Flux options that users set directly."""

from __future__ import annotations

from jpsi.plugin import CustomOptions

_RESOURCES = "say it in JobSpec.resources"
_STREAMS = "set JobSpec.stdin_path, stdout_path and stderr_path"
_WAITS = "the submission would not return before the job has ended; use Job.wait"

#: flux-submit(1) and flux-batch(1), OPTIONS, by their long names.
CUSTOM = CustomOptions(
    systems=("flux",),
    name=r"[a-z][a-z0-9]+(-[a-z0-9]+)*",
    example="requires",
    refused={
        **dict.fromkeys(("cores", "cores-per-slot", "cores-per-task", "exclusive", "nodes"), _RESOURCES),
        **dict.fromkeys(("gpus-per-node", "gpus-per-slot", "gpus-per-task"), _RESOURCES),
        **dict.fromkeys(("nslots", "ntasks", "tasks-per-core", "tasks-per-node"), _RESOURCES),
        **dict.fromkeys(("error", "input", "output"), _STREAMS),
        **dict.fromkeys(("env", "env-file", "env-remove"), "set JobSpec.environment and inherit_environment"),
        **dict.fromkeys(("dry-run", "help", "list-plugins"), "it submits nothing"),
        **dict.fromkeys(("wait", "wait-event", "watch"), _WAITS),
        **dict.fromkeys(("bcc", "cc"), "jpsi counts one submission as one job; use submit_many"),
        **dict.fromkeys(("log", "quiet"), "the submission would not print the job's id"),
        "log-stderr": "the submission would not print its errors",
        "bank": "set JobAttributes.project_name",
        "cwd": "set JobSpec.directory",
        "job-name": "set JobSpec.name",
        "queue": "set JobAttributes.queue_name",
        "time-limit": "set JobAttributes.duration",
        "wrap": "the job's command is JobSpec.executable",
    },
    repeated={"dependency", "setattr"},
    # Flux 0.58 accepts abbreviations of option names.
    abbreviated=(),
)
