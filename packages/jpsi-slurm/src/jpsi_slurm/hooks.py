"""The executor `slurm`: its hooks, each a line that calls what knows the answer."""

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
    NotOffered,
    Observation,
    Script,
    ShellLine,
    Site,
    SubmitContext,
    hookimpl,
)

from . import accounting, nodefile, requests, squeue, submission
from . import probe as probing
from . import script as scripts
from .config import SlurmConfig
from .dependencies import KINDS
from .failures import failure

# `squeue --jobs` has slurmctld list every job, whatever their number, so that few calls cost least. Linux
# takes no argument over 128 KiB.
_IDS_PER_QUERY = 2000


@hookimpl
def config_class() -> type[BatchConfig]:
    return SlurmConfig


@hookimpl
def capabilities(site: Site) -> Capabilities:
    return Capabilities(
        default_launcher="srun",
        id_variable="SLURM_JOB_ID",
        ids_per_query=_IDS_PER_QUERY,
        requeue_exit_codes=probing.Offers.of(site).requeue_exit_codes,
        dependencies=KINDS,
    )


@hookimpl
def probe(site: Site) -> Command:
    return probing.probe(site)


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
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    return submission.submit(script, spec, context.site)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    return submission.native_id(result.stdout)


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    return failure(result)


@hookimpl
def nodes() -> Sequence[ShellLine]:
    return nodefile.nodes()


@hookimpl
def find(site: Site) -> Command:
    return squeue.find(site)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    return squeue.tagged(result, tags)


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    return squeue.query(native_ids, site)


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    return squeue.statuses(result, native_ids)


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command | NotOffered:
    return accounting.query_finished(native_ids, site)


@hookimpl
def parse_finished(result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, Observation]:
    return accounting.finished(result, native_ids, site)


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
