"""The jobs that the queue of a small batch system shows, whose command is a script of this test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pluggy

from jpsi import System
from jpsi.contract.hookspecs import PROJECT
from jpsi.layers import default_hooks
from jpsi.plugin import (
    BatchConfig,
    Command,
    CommandResult,
    ExecutorHooks,
    JobState,
    Observation,
    Site,
    hookimpl,
)
from jpsi_engine.host.local_transport import LocalTransport
from jpsi_engine.shown_jobs import ShownJob, query_shown_jobs


class Backend:
    """A fake backend whose queue shows these observations by native id."""

    def __init__(self, directory: Path, observations: Mapping[str, Observation]) -> None:
        self.directory, self.observations = directory, observations

    def _command(self, *argv: str) -> Command:
        return Command(argv, environment={"PATH": f"{self.directory}:/usr/bin:/bin"})

    @hookimpl
    def query(self) -> Command:
        return self._command("xstat", "--mine")

    @hookimpl
    def parse_status(self, result: CommandResult) -> Mapping[str, Observation]:
        result.checked()
        return self.observations

    @hookimpl
    def cancel(self, native_ids: Sequence[str]) -> Command:
        return self._command("xdel", *native_ids)

    @hookimpl
    def find(self, tags: Sequence[str]) -> Command:
        return self._command("xstat", *tags)

    @hookimpl
    def parse_find(self) -> Mapping[str, str]:
        return {"jpsi-b-1": "2"}


def _system(backend: Backend) -> System:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExecutorHooks)
    for layer in (default_hooks, backend):
        manager.register(layer)
    return System(
        name="x",
        hooks=cast("ExecutorHooks", manager.hook),
        transport=LocalTransport(),
        site=lambda: Site(config=BatchConfig()),
        has_commands=True,
    )


def test_jobs_are_shown_with_the_command_that_ends_them_unless_their_ids_are_others(tmp_path: Path) -> None:
    (tmp_path / "xstat").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "xstat").chmod(0o755)
    observations = {
        "1": Observation(state=JobState.ACTIVE, native_state="R", tag="jpsi-a-1"),
        "2": Observation(state=JobState.QUEUED, native_state="Q", tag="jpsi-b-1"),
        "3": Observation(state=JobState.ACTIVE, native_state="R", tag="jpsi-x-1"),
        "4": Observation(state=JobState.COMPLETED, native_state="C", tag="jpsi-d-1"),
    }
    ids = {"a": "1", "b": None, "c": "3", "d": "4", "e": "5", "f": None}

    wanted = {it: (f"jpsi-{it}-1", native_id) for it, native_id in ids.items()}
    shown = query_shown_jobs(_system(Backend(tmp_path, observations)), wanted)

    assert shown == {
        "a": ShownJob(native_id="1", native_state="R", cancel_command="xdel 1"),
        "b": ShownJob(native_id="2", native_state="Q", cancel_command="xdel 2"),
    }
