"""The executor `flux`: its hooks, each a line that calls what knows the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jpsi.plugin import (
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    Failure,
    JobSpec,
    NotOffered,
    Observation,
    Script,
    ShellLine,
    Site,
    SubmitContext,
    hookimpl,
)

from . import events, ids, jobs, placing, requests, submission
from . import script as scripts
from .config import FluxConfig
from .dependencies import KINDS
from .failures import failure

# A thousand take 0.3 s, a hundred 0.13 s.
_IDS_PER_QUERY = 1000


@hookimpl
def config_class() -> type[BatchConfig]:
    return FluxConfig


@hookimpl
def capabilities() -> Capabilities:
    return Capabilities(
        default_launcher="flux",
        # A job that is an instance of its own knows itself by the latter, since Flux 0.71.
        id_variable="FLUX_JOB_ID FLUX_ENCLOSING_ID",
        ids_per_query=_IDS_PER_QUERY,
        dependencies=KINDS,
    )


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    return list(scripts.spec_problems(spec, site))


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    return scripts.script(spec, context)


@hookimpl
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    return submission.submit(script, spec, context.site)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    return submission.native_id(result.stdout)


@hookimpl
def canonical_id(native_id: str) -> str:
    return ids.decimal(native_id)


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    return failure(result)


@hookimpl
def nodes(spec: JobSpec) -> Sequence[ShellLine]:
    return placing.nodes(spec)


@hookimpl
def find(site: Site) -> Command:
    return jobs.find(site)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    return jobs.tagged(result, tags)


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    return jobs.query(native_ids, site)


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    return jobs.statuses(result, native_ids)


@hookimpl
def cancel(native_ids: Sequence[str], site: Site) -> Command:
    return requests.cancel(native_ids, site)


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    return requests.not_cancelled(result, native_ids)


@hookimpl
def hold(native_ids: Sequence[str], site: Site) -> Command:
    return requests.hold(native_ids, site)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    return requests.not_changed(result, native_ids)


@hookimpl
def release(native_ids: Sequence[str], site: Site) -> Command:
    return requests.release(native_ids, site)


@hookimpl
def parse_release(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    return requests.not_changed(result, native_ids)


@hookimpl
def watch(site: Site) -> Command | NotOffered:
    return events.watch(site)


@hookimpl
def parse_event(line: str) -> Sequence[str]:
    return events.told(line)
