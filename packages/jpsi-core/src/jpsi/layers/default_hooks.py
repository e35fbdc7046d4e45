"""The lowest layer of hooks: what holds for a backend that says nothing else."""

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
    """What can be set for every batch system."""
    return BatchConfig


@hookimpl
def capabilities() -> Capabilities:
    """What any batch system can be expected to serve."""
    return Capabilities(default_launcher="mpirun")


@hookimpl
def probe() -> NotOffered:
    """Nothing is asked."""
    return NOT_OFFERED


@hookimpl
def parse_probe() -> Mapping[str, Any]:
    """Nothing was found."""
    return {}


@hookimpl
def submit_several() -> NotOffered:
    """Each job wants a command of its own."""
    return NOT_OFFERED


@hookimpl
def parse_submit_several() -> Mapping[str, str]:
    """None was found."""
    return {}


@hookimpl
def canonical_id(native_id: str) -> str:
    """Native ids have one spelling."""
    return native_id


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> Sequence[str]:
    """The index in brackets."""
    return [f"{native_id}[{index}]" for index in indices]


@hookimpl
def arrays_of() -> Mapping[str, str]:
    """None is an element."""
    return {}


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    """The job may be there or not: that is looked up."""
    return Failure(FailureKind.AMBIGUOUS, result.complaint)


@hookimpl
def find() -> NotOffered:
    """Jobs cannot be found by their tag."""
    return NOT_OFFERED


@hookimpl
def parse_find() -> Mapping[str, str]:
    """None was found."""
    return {}


@hookimpl
def query_finished() -> NotOffered:
    """There is no accounting."""
    return NOT_OFFERED


@hookimpl
def parse_finished() -> Mapping[str, Observation]:
    """Nothing was learnt."""
    return {}


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """All or none, by the exit code."""
    return _refused(result, native_ids)


@hookimpl
def hold() -> NotOffered:
    """Jobs cannot be held."""
    return NOT_OFFERED


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """All or none, by the exit code."""
    return _refused(result, native_ids)


@hookimpl
def release() -> NotOffered:
    """Jobs cannot be released."""
    return NOT_OFFERED


@hookimpl
def parse_release(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """All or none, by the exit code."""
    return _refused(result, native_ids)


@hookimpl
def nodes(spec: JobSpec) -> Sequence[ShellLine]:
    """This machine, for every process."""
    return [
        # Linux tells it without a process, which takes a tenth of a runner's time
        ShellLine("{ read -r node </proc/sys/kernel/hostname; } 2>/dev/null || node=$(uname -n) || exit"),
        ShellLine(f"left={process_count(spec.resources)}"),
        ShellLine("while [ $left -gt 0 ]; do"),
        ShellLine('  echo "$node"'),
        ShellLine("  left=$((left - 1))"),
        ShellLine("done"),
    ]


@hookimpl
def watch() -> NotOffered:
    """The batch system tells nothing by itself."""
    return NOT_OFFERED


@hookimpl
def parse_event() -> Sequence[str]:
    """No line is about a job."""
    return ()


@hookimpl
def version() -> NotOffered:
    """Nobody says."""
    return NOT_OFFERED


@hookimpl
def queues() -> NotOffered:
    """The batch system is not asked for its queues."""
    return NOT_OFFERED


@hookimpl
def parse_queues() -> Sequence[Queue]:
    """Nothing was learnt."""
    return ()


@hookimpl
def read_script() -> NotOffered:
    """There are no scripts for it but those of jpsi."""
    return NOT_OFFERED


def _refused(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    if result.returncode == 0 and not result.timed_out:
        return {}
    return dict.fromkeys(native_ids, result.complaint)
