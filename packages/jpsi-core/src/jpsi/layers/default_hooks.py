"""The lowest layer of hooks: the defaults for a backend that does not implement a hook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jpsi.contract import (
    NOT_OFFERED,
    BatchConfig,
    Capabilities,
    CommandResult,
    ExecutorConfig,
    Failure,
    FailureKind,
    ShellLine,
    hookimpl,
)
from jpsi.model import JobSpec, process_count


@hookimpl
def config_class() -> type[ExecutorConfig]:
    """Return the configuration of every batch system."""
    return BatchConfig


@hookimpl
def capabilities() -> Capabilities:
    """Return the features that every batch system can be expected to have."""
    return Capabilities(default_launcher="mpirun")


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return the native id unchanged."""
    return native_id


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> Sequence[str]:
    """Return the array's id with the index in brackets."""
    return [f"{native_id}[{index}]" for index in indices]


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    """Return AMBIGUOUS: the job may exist or not, and the engine looks for it."""
    return Failure(FailureKind.AMBIGUOUS, result.complaint)


@hookimpl
def nodes(spec: JobSpec) -> Sequence[ShellLine]:
    """Return shell that prints the name of this machine for every process."""
    return [
        # Linux has it in a file; the process of uname takes a tenth of a runner's time
        ShellLine("{ read -r node </proc/sys/kernel/hostname; } 2>/dev/null || node=$(uname -n) || exit"),
        ShellLine(f"left={process_count(spec.resources)}"),
        ShellLine("while [ $left -gt 0 ]; do"),
        ShellLine('  echo "$node"'),
        ShellLine("  left=$((left - 1))"),
        ShellLine("done"),
    ]


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Report an error for all jobs or for none, by the exit code."""
    if result.returncode == 0 and not result.timed_out:
        return {}
    return dict.fromkeys(native_ids, result.complaint)


@hookimpl
def arrays_of() -> Mapping[str, Any]:
    """Return an empty mapping: no job is an element."""
    return {}


parse_hold = parse_release = parse_cancel
# no command reports more of the site, the version, the queues, changes, finished jobs, or jobs by their tags
probe = version = queues = watch = query_finished = find = hookimpl(lambda: NOT_OFFERED)
# each job has a submit command of its own, no job can be held, and no scripts but those of jpsi are read
submit_several = hold = release = read_script = hookimpl(lambda: NOT_OFFERED)
parse_probe = parse_submit_several = parse_find = parse_finished = arrays_of
parse_event = parse_queues = hookimpl(lambda: ())
