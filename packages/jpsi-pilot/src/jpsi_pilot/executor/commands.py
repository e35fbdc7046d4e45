"""The commands by which the core talks to the agent: each is `client.py` with a request on its input."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jpsi.plugin import (
    RANK_VARIABLES,
    Command,
    JobSpec,
    Observation,
    Script,
    Site,
    SubmitContext,
    hookimpl,
)
from jpsi.plugin.kit import IdForm

from ..config import PilotConfig
from .requirements import need, runs_again, settings

#: What native ids look like: the letters are those of the agent's journal.
IDS = IdForm("jpsi-pilot", r"[a-z]{8}-[1-9][0-9]{0,9}(\[[1-9][0-9]{0,6}\])?")
# The quickest way here; elsewhere its place is not known.
_CLIENT = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "client.py")]
_CLIENT_ELSEWHERE = ["-P", "-m", "jpsi_pilot.client"]
_NOT_THIS_JOBS = ("JPSI_PILOT_*", *RANK_VARIABLES)


@hookimpl
def canonical_id(native_id: str) -> str:
    """The id, if it is one."""
    return IDS.canonical(native_id)


@hookimpl
def arrays_of(native_ids: Sequence[str]) -> Mapping[str, str]:
    """The arrays of those that are elements."""
    return {it: it.partition("[")[0] for it in native_ids if it.endswith("]")}


@hookimpl
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    """The command that hands a job, or an array, to the agent."""
    config = context.site.config
    return _request(
        context.site,
        "submit",
        tag=context.tag,
        script=script.text,
        elements=context.elements,
        at_a_time=context.at_a_time,
        need=need(spec, config).plain(),
        has_launcher=spec.launcher is not None,
        settings=settings(config).plain(),
        retry=runs_again(spec, config),
    )


@hookimpl
def find(tags: Sequence[str], site: Site) -> Command:
    """The command that asks which jobs carry these tags."""
    return _request(site, "find", tags=list(tags))


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all that have not ended."""
    return _request(site, "query", ids=None if native_ids is None else list(native_ids))


@hookimpl
def cancel(native_ids: Sequence[str], site: Site, seen: Mapping[str, Observation]) -> Command:
    """The command that ends jobs, those that were seen only if they carry the same tags."""
    tags = {it: seen[it].tag for it in native_ids if it in seen and seen[it].tag}
    return _request(site, "cancel", ids=list(native_ids), tags=tags)


def _request(site: Site, what: str, **values: Any) -> Command:  # noqa: ANN401  as JSON has it
    config: PilotConfig = site.config
    folder = config.work_directory
    client = _CLIENT if config.python is None else [config.python, *_CLIENT_ELSEWHERE]
    return Command(
        [*client, "" if folder is None else str(folder)],
        stdin=json.dumps({"do": what, **values}) + "\n",
        unset=_NOT_THIS_JOBS,
    )
