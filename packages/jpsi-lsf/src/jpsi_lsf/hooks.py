"""The executor `lsf`: its hooks, each a line that calls what knows the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jpsi.plugin import (
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    Failure,
    JobSpec,
    Observation,
    Script,
    ShellLine,
    Site,
    SubmitContext,
    hookimpl,
)

from . import accounting, listing, nodefile, requests, submission
from . import probe as probing
from . import script as scripts
from .config import LsfConfig
from .dependencies import KINDS
from .failures import failure

# What `bjobs -l` says of a job takes about 2 kB.
_IDS_PER_QUERY = 500


@hookimpl
def config_class() -> type[BatchConfig]:
    return LsfConfig


@hookimpl
def capabilities(site: Site) -> Capabilities:
    return Capabilities(
        default_launcher="mpirun",
        id_variable="LSB_JOBID",
        ids_per_query=_IDS_PER_QUERY,
        requeue_exit_codes=probing.Offers.of(site).requeue_exit_codes.union(site.config.requeue_exit_codes),
        dependencies=KINDS if site.config.orphan_termination else frozenset(),
    )


@hookimpl
def probe() -> Command:
    return probing.probe()


@hookimpl
def parse_probe(result: CommandResult) -> Mapping[str, Any]:
    return probing.offers(result)


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
def classify_failure(result: CommandResult) -> Failure:
    return failure(result)


@hookimpl
def nodes(spec: JobSpec, site: Site) -> Sequence[ShellLine]:
    return nodefile.nodes(spec, site)


@hookimpl
def find(site: Site) -> Command:
    return listing.find(site)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str], site: Site) -> Mapping[str, str]:
    return listing.tagged(result, tags, site)


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    return listing.query(native_ids, site)


@hookimpl
def parse_status(
    result: CommandResult, native_ids: Sequence[str] | None, site: Site
) -> Mapping[str, Observation]:
    return listing.statuses(result, native_ids, site)


@hookimpl
def query_finished(native_ids: Sequence[str]) -> Command:
    return accounting.query_finished(native_ids)


@hookimpl
def parse_finished(result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, Observation]:
    return accounting.finished(result, native_ids, site)


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
