"""Renders a task as a job of a Flux instance: the same script, with only its submission's environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import jpsi
from jpsi import JobAttributes, JobSpec, JobState, JobStatus, Reason, ResourceSpecV1
from jpsi.plugin import word

from ..protocol import End, Task

_NOTHING = Path("/dev/null")
# The node's log records the beginning first. No variable that Flux or the pilot has set reaches the task,
# except for those by which a task on several nodes finds its own instance, or a task finds its GPUs.
_BEGIN = """\
printf 'beginning %s %s\\n' "$1" "$2" >>"$3" || exit 125
umask "$4"
environment=$5
shift 5
exec /bin/sh "$environment" {given} "$@"
"""
_INSTANCE = 'FLUX_URI="$FLUX_URI"'
_DEVICES = 'CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES-}"'


def task_spec(task: Task, ranks: Sequence[int], log: Path, environment: Path) -> JobSpec:
    """Return the job spec of a task.

    Args:
        task: the task.
        ranks: the ranks of the brokers on whose nodes it runs.
        log: the log of the first of these nodes.
        environment: a file that holds an `environment_script`.
    """
    several = len(ranks) > 1
    given = _INSTANCE if several else "" if task.gpus is None else _DEVICES
    arguments = [
        *("-c", _BEGIN.format(given=given), "task"),
        *(task.native_id, str(task.restarts), str(log), format(task.umask, "o"), str(environment)),
        *(f"{name}={value}" for name, value in task.variables.items()),
        *("/bin/sh", "-c", task.script),
    ]
    return JobSpec(
        "/bin/sh",
        [jpsi.escape(it) for it in arguments],
        directory=Path("/"),
        stdout_path=_NOTHING,
        stderr_path=_NOTHING,
        # on several nodes, the job's own launcher reaches the others
        launcher="single",
        resources=ResourceSpecV1(
            node_count=len(ranks) if several else None,
            processes_per_node=1 if several else None,
            cpu_cores_per_process=task.cores,
            gpu_cores_per_process=task.gpus or 0,
        ),
        attributes=JobAttributes(
            duration=timedelta(seconds=task.seconds), custom_attributes={**_options(ranks, several=several)}
        ),
    )


def _options(ranks: Sequence[int], *, several: bool) -> Mapping[str, str]:
    """Return Flux options that fix the nodes, which the agent chose, and leave cores unbound.

    Flux must not bind cores: other jobs may use some of the same node.
    """
    options = {"flux.requires": f"rank:{','.join(map(str, ranks))}", "flux.setopt": "cpu-affinity=off"}
    # a pilot has as many cores as it asked for, whatever the job's own instance detects
    return {**options, "flux.conf": "resource.noverify=true"} if several else options


def environment_script(variables: Mapping[bytes, bytes]) -> bytes:
    """Return a script that runs its arguments with these variables alone.

    Assignments that stand before the command are added to them.
    """
    words = [_quoted(name + b"=" + value) for name, value in variables.items()]
    return b" ".join([b"exec /usr/bin/env -i", *words, b'"$@"\n'])


def _quoted(text: bytes) -> bytes:
    return word(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def end_of(status: JobStatus) -> End | None:
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
