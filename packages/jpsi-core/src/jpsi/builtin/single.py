"""The launcher `single`: runs the job's command once, where the job's script runs."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, ResourceSpecV1, ShellLine, hookimpl


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    resources = spec.resources
    if isinstance(resources, ResourceSpecV1) and resources.computed_process_count > 1:
        count = resources.computed_process_count
        return [f"the launcher single runs one process, but {count} are asked for"]
    return []


@hookimpl
def launch() -> Sequence[ShellLine]:
    # exec, so that a shell builtin of the same name is never taken for the executable
    return [ShellLine('exec "$@"')]
