"""What several test files share: recordings, a site, and the hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pluggy

from jpsi.plugin import CommandResult, ExecutorHooks, Site, SubmitContext
from jpsi.testing import Recording, read_recordings
from jpsi_gridengine import hooks
from jpsi_gridengine.config import GridEngineConfig

RECORDINGS = Path(__file__).parent / "recordings" / "8.1.9"
SITE = Site(config=GridEngineConfig())
CONTEXT = SubmitContext(site=SITE, job_id="job", tag="jpsi-abc-1")


def site(**config: Any) -> Site:
    return Site(config=GridEngineConfig(**config))


def relay() -> ExecutorHooks:
    manager = pluggy.PluginManager("jpsi")
    manager.add_hookspecs(ExecutorHooks)
    manager.register(hooks)
    manager.check_pending()
    return cast("ExecutorHooks", manager.hook)


def recordings(scenario: str) -> list[Recording]:
    return read_recordings(RECORDINGS / f"{scenario}.json")


def answered(stdout: str = "", stderr: str = "", returncode: int = 0) -> CommandResult:
    return CommandResult(returncode=returncode, stdout=stdout, stderr=stderr)
