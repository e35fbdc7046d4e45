"""What several test files share: recordings, a site, and the hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jpsi.plugin import CommandResult, Site, SubmitContext
from jpsi.testing import Recording, answered, read_recordings
from jpsi_gridengine.config import GridEngineConfig

RECORDINGS = Path(__file__).parent / "recordings" / "8.1.9"
SITE = Site(config=GridEngineConfig())
CONTEXT = SubmitContext(site=SITE, job_id="job", tag="jpsi-abc-1")


def site(**config: Any) -> Site:
    return Site(config=GridEngineConfig(**config))


def recordings(scenario: str) -> list[Recording]:
    return read_recordings(RECORDINGS / f"{scenario}.json")


def listing(*rows: str) -> CommandResult:
    """What `qstat -xml` prints of these rows."""
    return answered(f"Hello\n<?xml version='1.0'?>\n<job_info>{''.join(rows)}</job_info>\n")


def row(number: int, state: str = "r", name: str = "a", more: str = "") -> str:
    """A row of it."""
    fields = f"<JB_job_number>{number}</JB_job_number><JB_name>{name}</JB_name><state>{state}</state>{more}"
    return f'<job_list state="x">{fields}</job_list>'
