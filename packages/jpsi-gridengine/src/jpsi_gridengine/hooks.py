"""The executor `gridengine`: its hooks, each a line that calls what knows the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jpsi.plugin import (
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    DependencyKind,
    Failure,
    JobSpec,
    Observation,
    Script,
    ShellLine,
    Site,
    SubmitContext,
    hookimpl,
)

from . import nodefile, qacct, qstat, requests, submission
from . import script as scripts
from .config import GridEngineConfig
from .failures import failure
from .ids import canonical

# sge_submit(1) of 8.1.9, EXIT STATUS of jobs: the job is put back, whatever -r says.
_REQUEUE = frozenset({99})


@hookimpl
def config_class() -> type[BatchConfig]:
    return GridEngineConfig


@hookimpl
def capabilities() -> Capabilities:
    return Capabilities(
        default_launcher="mpirun",
        id_variable="JOB_ID",
        ids_per_query=None,
        ids_per_accounting=1,
        requeue_exit_codes=_REQUEUE,
        dependencies=frozenset({DependencyKind.ANY}),
    )


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    return list(scripts.spec_problems(spec, site))


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    return scripts.script(spec, context)


@hookimpl
def submit(script: Script) -> Command:
    return submission.submit(script)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    return submission.native_id(result.stdout)


@hookimpl
def canonical_id(native_id: str) -> str:
    return canonical(native_id)


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    return failure(result)


@hookimpl
def nodes(spec: JobSpec) -> Sequence[ShellLine]:
    return nodefile.nodes(spec)


@hookimpl
def find() -> Command:
    return qstat.query()


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    return qstat.tagged(result, tags)


@hookimpl
def query() -> Command:
    return qstat.query()


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    return qstat.statuses(result, native_ids)


@hookimpl
def query_finished(native_ids: Sequence[str]) -> Command:
    return qacct.query_finished(native_ids)


@hookimpl
def parse_finished(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, Observation]:
    return qacct.finished(result, native_ids)


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    return requests.cancel(native_ids)


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    return requests.not_cancelled(result, native_ids)


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    return requests.hold(native_ids)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    return requests.not_changed(result, native_ids)


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    return requests.release(native_ids)


@hookimpl
def parse_release(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    return requests.not_changed(result, native_ids)
