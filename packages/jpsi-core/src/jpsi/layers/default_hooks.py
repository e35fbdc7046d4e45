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
    NotOffered,
    Observation,
    Queue,
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
def probe() -> NotOffered:
    """Return NOT_OFFERED: no command is run."""
    return NOT_OFFERED


@hookimpl
def parse_probe() -> Mapping[str, Any]:
    """Return an empty result."""
    return {}


@hookimpl
def submit_several() -> NotOffered:
    """Return NOT_OFFERED: each job needs a command of its own."""
    return NOT_OFFERED


@hookimpl
def parse_submit_several() -> Mapping[str, str]:
    """Return no ids."""
    return {}


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return the native id unchanged."""
    return native_id


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> Sequence[str]:
    """Return the array's id with the index in brackets."""
    return [f"{native_id}[{index}]" for index in indices]


@hookimpl
def arrays_of() -> Mapping[str, str]:
    """Return an empty mapping: no job is an element."""
    return {}


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    """Return AMBIGUOUS: the job may exist or not, and the engine looks for it."""
    return Failure(FailureKind.AMBIGUOUS, result.complaint)


@hookimpl
def find() -> NotOffered:
    """Return NOT_OFFERED: jobs cannot be found by their tag."""
    return NOT_OFFERED


@hookimpl
def parse_find() -> Mapping[str, str]:
    """Return no ids."""
    return {}


@hookimpl
def query_finished() -> NotOffered:
    """Return NOT_OFFERED: there is no accounting."""
    return NOT_OFFERED


@hookimpl
def parse_finished() -> Mapping[str, Observation]:
    """Return no observations."""
    return {}


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Report an error for all jobs or for none, by the exit code."""
    return _refused(result, native_ids)


@hookimpl
def hold() -> NotOffered:
    """Return NOT_OFFERED: jobs cannot be held."""
    return NOT_OFFERED


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Report an error for all jobs or for none, by the exit code."""
    return _refused(result, native_ids)


@hookimpl
def release() -> NotOffered:
    """Return NOT_OFFERED: jobs cannot be released."""
    return NOT_OFFERED


@hookimpl
def parse_release(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Report an error for all jobs or for none, by the exit code."""
    return _refused(result, native_ids)


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
def watch() -> NotOffered:
    """Return NOT_OFFERED: the batch system does not report changes by itself."""
    return NOT_OFFERED


@hookimpl
def parse_event() -> Sequence[str]:
    """Return no ids."""
    return ()


@hookimpl
def version() -> NotOffered:
    """Return NOT_OFFERED: there is no command for the version."""
    return NOT_OFFERED


@hookimpl
def queues() -> NotOffered:
    """Return NOT_OFFERED: there is no command for the queues."""
    return NOT_OFFERED


@hookimpl
def parse_queues() -> Sequence[Queue]:
    """Return no queues."""
    return ()


@hookimpl
def read_script() -> NotOffered:
    """Return NOT_OFFERED: the backend has no scripts but those of jpsi."""
    return NOT_OFFERED


def _refused(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    if result.returncode == 0 and not result.timed_out:
        return {}
    return dict.fromkeys(native_ids, result.complaint)
