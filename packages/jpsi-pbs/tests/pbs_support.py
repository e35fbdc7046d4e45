"""What several test files share: recordings, a site, and answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jpsi.plugin import (
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    ResourceSpecV1,
    Site,
    SubmitContext,
)
from jpsi.testing import Recording, read_recordings
from jpsi_pbs import PbsConfig, openpbs, torque

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
        resources=None if resources is None else ResourceSpecV1(**resources),
        attributes=JobAttributes(**attributes),
    )


def spec_of_kinds(*kinds: dict[str, Any], **attributes: Any) -> JobSpec:
    """A job that asks for slots of several kinds."""
    resources = HeterogeneousResources([ResourceSpecV1(**it) for it in kinds])
    return JobSpec("/bin/true", resources=resources, attributes=JobAttributes(**attributes))


def in_json(native_id: str, **attributes: Any) -> str:
    """What qstat of OpenPBS prints of one job."""
    content = {"pbs_server": "node01", "Jobs": {native_id: attributes}}
    return json.dumps(content, indent="\t", separators=(",", ":\t"), ensure_ascii=False) + "\n"


def in_xml(native_id: str, **attributes: str) -> str:
    """What qstat of Torque prints of one job."""
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in attributes.items())
    return f'<?xml version="1.0"?>\n<Data><Job><Job_Id>{native_id}</Job_Id>{inner}</Job></Data>\n'
