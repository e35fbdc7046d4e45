"""Renders a task as a job of a Flux instance: the same script, with only its submission's environment.

`flux.jobs` submits the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import jpsi
from jpsi import JobAttributes, JobSpec, JobState, JobStatus, Reason, ResourceSpecV1
from jpsi.plugin import word

from ..protocol import End, Task

_DEV_NULL = Path("/dev/null")
# The node's log records the beginning first. No variable that Flux or the pilot has set reaches the task,
# except for those by which a task on several nodes finds its own instance, or a task finds its GPUs.
_SCRIPT = """\
printf 'beginning %s %s\\n' "$1" "$2" >>"$3" || exit 125
umask "$4"
environment=$5
shift 5
exec /bin/sh "$environment" {assignments} "$@"
"""
_INSTANCE_VARIABLE = 'FLUX_URI="$FLUX_URI"'
_DEVICE_VARIABLE = 'CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES-}"'


def task_spec(task: Task, ranks: Sequence[int], log: Path, environment: Path) -> JobSpec:
    """Return the job spec of a task.

    Args:
        task: the task.
        ranks: the ranks of the brokers on whose nodes it runs.
        log: the log of the first of these nodes.
        environment: a file that holds an `environment_script`.
    """
    is_multinode = len(ranks) > 1
    assignments = _INSTANCE_VARIABLE if is_multinode else "" if task.gpus is None else _DEVICE_VARIABLE
    arguments = [
        *("-c", _SCRIPT.format(assignments=assignments), "task"),
        *(task.native_id, str(task.restarts), str(log), format(task.umask, "o"), str(environment)),
        *(f"{name}={value}" for name, value in task.variables.items()),
        *("/bin/sh", "-c", task.script),
    ]
    return JobSpec(
        "/bin/sh",
        [jpsi.escape(it) for it in arguments],
        directory=Path("/"),
        stdout_path=_DEV_NULL,
        stderr_path=_DEV_NULL,
        # on several nodes, the job's own launcher reaches the others
        launcher="single",
        resources=ResourceSpecV1(
            node_count=len(ranks) if is_multinode else None,
            processes_per_node=1 if is_multinode else None,
            cpu_cores_per_process=task.cores,
            gpu_cores_per_process=task.gpus or 0,
        ),
        attributes=JobAttributes(
            duration=timedelta(seconds=task.seconds),
            custom_attributes={**_options(ranks, is_multinode=is_multinode)},
        ),
    )


def _options(ranks: Sequence[int], *, is_multinode: bool) -> Mapping[str, str]:
    """Return Flux options that fix the nodes, which the agent chose, and leave cores unbound.

    Flux must not bind cores: other jobs may use some of the same node.
    """
    options = {"flux.requires": f"rank:{','.join(map(str, ranks))}", "flux.setopt": "cpu-affinity=off"}
    # a pilot has as many cores as it requested, whatever the job's own instance detects
    return {**options, "flux.conf": "resource.noverify=true"} if is_multinode else options


def environment_script(variables: Mapping[bytes, bytes]) -> bytes:
    """Return a script that runs its arguments with these variables alone.

    Assignments that stand before the command are added to them.
    """
    words = [_quote(name + b"=" + value) for name, value in variables.items()]
    return b" ".join([b"exec /usr/bin/env -i", *words, b'"$@"\n'])


def _quote(text: bytes) -> bytes:
    return word(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def end_from_status(status: JobStatus) -> End | None:
    """Return how a task ended, by the final status of its job; None if Flux has lost one of its nodes."""
    if status.reason is Reason.NODE_FAIL:
        return None
    if status.state is JobState.CANCELED:
        return End(code=status.exit_code, why="cancel")
    if status.reason is Reason.TIMEOUT:
        return End(code=status.exit_code, why="timeout")
    if status.exit_code is not None:
        return End(code=status.exit_code)
    if status.reason is Reason.LAUNCH:
        return End(code=None, why="unable", message=f"Flux did not start the job: {status.message or status}")
    return End(code=None, why="lost")
