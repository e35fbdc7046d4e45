"""Support for several test files: recordings, a site, and qstat output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jpsi.plugin import (
    CommandResult,
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    Observation,
    ResourceSpecV1,
    Site,
    SubmitContext,
)
from jpsi_pbs import PbsConfig, openpbs, torque
from jpsi_pbs.hooks import Hooks
from jpsi_pbs.queue.observations import observe_jobs
from jpsi_testing import Recording, read_recordings

PBS, TORQUE = openpbs.hooks, torque.hooks
OPENPBS_RECORDINGS = Path(__file__).parent / "recordings" / "openpbs-23.06.06"
TORQUE_RECORDINGS = Path(__file__).parent / "recordings" / "torque-6.1.3.h5"
SITE = Site(config=PbsConfig())
CONTEXT = SubmitContext(site=SITE, job_id="job", tag="jpsi-abc-1")


def site(**config: Any) -> Site:
    return Site(config=PbsConfig(**config))


def recordings(scenario: str) -> list[Recording]:
    return read_recordings(OPENPBS_RECORDINGS / f"{scenario}.json")


def torque_recordings(scenario: str) -> list[Recording]:
    return read_recordings(TORQUE_RECORDINGS / f"{scenario}.json")


def spec(resources: dict[str, Any] | None = None, name: str | None = None, **attributes: Any) -> JobSpec:
    return JobSpec(
        "/bin/true",
        name=name,
        resources=None if resources is None else ResourceSpecV1.uneven(**resources),
        attributes=JobAttributes(**attributes),
    )


def spec_of_kinds(*kinds: dict[str, Any], **attributes: Any) -> JobSpec:
    """Return a spec that requests slots of several kinds."""
    resources = HeterogeneousResources([ResourceSpecV1.uneven(**it) for it in kinds])
    return JobSpec("/bin/true", resources=resources, attributes=JobAttributes(**attributes))


def in_json(native_id: str, **attributes: Any) -> str:
    """Return the output of OpenPBS's qstat about one job."""
    return in_frame({native_id: attributes})


def in_frame(jobs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the output of OpenPBS's qstat about these jobs."""
    content = {"timestamp": 1795251827, "pbs_server": "node01", **({"Jobs": jobs} if jobs else {})}
    return json.dumps(content, indent="\t", separators=(",", ":\t"), ensure_ascii=False) + "\n"


def of_all(listing: str, user: str = "tester") -> str:
    """Return the output of the command that lists all jobs, given qstat's listing."""
    return f"jobs for {user}\n{listing}no more jobs for {user}\n"


SERVER = "Server: node01\n    server_state = Active\n\n"


def observed(hooks: Hooks, result: CommandResult) -> dict[str, Observation]:
    """Return the Observations of all jobs in a listing, of all owners."""
    jobs = hooks.parse_jobs(result)
    return observe_jobs(((job, [job.native_id]) for job in jobs), hooks.name, hooks.derive_end)


def in_xml(native_id: str, **attributes: str) -> str:
    """Return the output of Torque's qstat about one job."""
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in attributes.items())
    return f'<?xml version="1.0"?>\n<Data><Job><Job_Id>{native_id}</Job_Id>{inner}</Job></Data>\n'
