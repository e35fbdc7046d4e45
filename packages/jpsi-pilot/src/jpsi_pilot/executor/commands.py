"""The commands by which the core talks to the agent: each is `client.py` with a request on its input.

The engine of the core runs them, as it runs those of a batch system.
"""

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
from jpsi.plugin.kit import ArrayIds

from ..config import PilotConfig
from .requirements import is_retried, job_need, pilot_settings

#: The form of native ids: the letters are those of the agent's journal.
IDS = ArrayIds("jpsi-pilot", r"[a-z]{8}-[1-9][0-9]{0,9}(\[[1-9][0-9]{0,6}\])?", "{}[{}]", "{}[{}]")
canonical_id, arrays_of = IDS.canonical_id, IDS.arrays_of
# The quickest command on this machine; on a remote host the path of client.py is not known.
_CLIENT = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "client.py")]
_REMOTE_CLIENT = ["-P", "-m", "jpsi_pilot.client"]
_ENGINES = "import sys; sys.path.append(sys.argv[1]); from jpsi_pilot.engines import main; sys.exit(main())"
_LOCAL_ENGINES = [sys.executable, "-c", _ENGINES, str(Path(__file__).parents[2])]
_REMOTE_ENGINES = ["-P", "-m", "jpsi_pilot.engines"]
_UNSET_VARIABLES = ("JPSI_PILOT_*", *RANK_VARIABLES)


@hookimpl
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    """Return the command that submits a job, or an array, to the agent."""
    config = context.site.config
    return _render_request(
        context.site,
        "submit",
        tag=context.tag,
        script=script.text,
        elements=context.elements,
        at_a_time=context.at_a_time,
        need=job_need(spec, config).to_dict(),
        has_launcher=spec.launcher is not None,
        settings=pilot_settings(config).to_dict(),
        retry=is_retried(spec, config),
    )


@hookimpl
def find(tags: Sequence[str], site: Site) -> Command:
    """Return the command that asks which jobs carry these tags."""
    return _render_request(site, "find", tags=list(tags))


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """Return the command that asks for these jobs, or for all that have not ended."""
    return _render_request(site, "query", ids=None if native_ids is None else list(native_ids))


@hookimpl
def cancel(native_ids: Sequence[str], site: Site, seen: Mapping[str, Observation]) -> Command:
    """Return the command that cancels jobs; the ones that were seen only if they still carry the same tag."""
    tags = {it: seen[it].tag for it in native_ids if it in seen and seen[it].tag}
    return _render_request(site, "cancel", ids=list(native_ids), tags=tags)


@hookimpl
def version(site: Site) -> Command:
    """Return the command that imports the engine as the agent does; it starts no agent."""
    config: PilotConfig = site.config
    program = _LOCAL_ENGINES if config.python is None else [config.python, *_REMOTE_ENGINES]
    return Command(program, stdin=json.dumps(pilot_settings(config).to_dict()), unset=_UNSET_VARIABLES)


def _render_request(site: Site, request: str, **values: Any) -> Command:  # noqa: ANN401  as JSON has it
    config: PilotConfig = site.config
    folder = config.work_directory
    client = _CLIENT if config.python is None else [config.python, *_REMOTE_CLIENT]
    return Command(
        [*client, "" if folder is None else str(folder)],
        stdin=json.dumps({"do": request, **values}) + "\n",
        unset=_UNSET_VARIABLES,
    )
