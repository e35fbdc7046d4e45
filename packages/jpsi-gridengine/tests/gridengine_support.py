"""What several test files share: recordings, a site, and the hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jpsi.plugin import Site, SubmitContext
from jpsi.testing import Recording, read_recordings
from jpsi_gridengine.config import GridEngineConfig

RECORDINGS = Path(__file__).parent / "recordings" / "8.1.9"
SITE = Site(config=GridEngineConfig())
CONTEXT = SubmitContext(site=SITE, job_id="job", tag="jpsi-abc-1")


def site(**config: Any) -> Site:
    return Site(config=GridEngineConfig(**config))


def recordings(scenario: str) -> list[Recording]:
    return read_recordings(RECORDINGS / f"{scenario}.json")
