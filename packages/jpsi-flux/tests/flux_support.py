"""Support for several test files: recordings, a site, and output in the form of Flux's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jpsi.plugin import CommandResult, Site, SubmitContext
from jpsi_flux.config import FluxConfig
from jpsi_testing import Recording, command_result, read_recordings

RECORDINGS = Path(__file__).parent / "recordings"
VERSIONS = ("0.58.0", "0.88.0")
SITE = Site(config=FluxConfig())
CONTEXT = SubmitContext(site=SITE, job_id="job", tag="jpsi-abc-1")
HOOKED = "\N{LATIN SMALL LETTER F WITH HOOK}"


def recordings(scenario: str = "", version: str = "") -> list[Recording]:
    """Return the steps of a scenario, or of all, in the order of versions."""
    return [
        step
        for it in ([version] if version else VERSIONS)
        for file in sorted((RECORDINGS / it).glob(f"{scenario or '*'}.json"))
        for step in read_recordings(file)
    ]


def listed(**job: Any) -> CommandResult:
    """Return the output of `flux jobs --json` about one job, by default a pending one."""
    about = {
        "id": 7290690207744,
        "name": "a name jpsi-abc-1",
        "state": "SCHED",
        "status": "SCHED",
        "urgency": 16,
        "t_submit": 1795251530.25,
        "annotations": {},
        "dependencies": [],
        "exception": {"occurred": False},
    }
    return command_result(json.dumps({**about, **job}) + "\n")
