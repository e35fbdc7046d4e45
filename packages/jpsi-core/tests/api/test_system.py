"""The facts about a small batch system, whose commands are scripts of this test."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import cast

import pluggy
import pytest

from jpsi.api.system import System
from jpsi.contract.command import Command, CommandResult
from jpsi.contract.config import BatchConfig, ExecutorConfig
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks, Site, hookimpl
from jpsi.contract.observation import Queue
from jpsi.layers import default_hooks
from jpsi.model.errors import SubmitException
from jpsi_engine.host.local_transport import LocalTransport

_HOURS = timedelta(hours=3)


class Backend:
    """Find the command on the PATH that it sets for it."""

    def __init__(self, directory: Path, text: str) -> None:
        self.directory = directory
        path = directory / "xqueues"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    @hookimpl
    def queues(self) -> Command:
        return Command(["xqueues"], environment={"PATH": f"{self.directory}:/usr/bin:/bin"})

    @hookimpl
    def parse_queues(self, result: CommandResult) -> Sequence[Queue]:
        return [Queue(name=line, native_state="") for line in result.checked().stdout.splitlines()]


def _system(backend: object, config: ExecutorConfig, *, has_commands: bool = True) -> System:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExecutorHooks)
    for layer in (default_hooks, backend):
        manager.register(layer)
    return System(
        name="x",
        hooks=cast("ExecutorHooks", manager.hook),
        transport=LocalTransport(),
        site=lambda: Site(config=config),
        has_commands=has_commands,
    )


def test_a_command_that_hangs_is_no_answer(tmp_path: Path) -> None:
    config = BatchConfig(command_timeout=timedelta(milliseconds=50))
    system = _system(Backend(tmp_path, "exec sleep 60"), config)

    with pytest.raises(SubmitException, match="no answer in time"):
        system.queues()


def test_queues_are_those_that_the_backend_reads(tmp_path: Path) -> None:
    system = _system(Backend(tmp_path, "echo a; echo b"), BatchConfig())

    assert [queue.name for queue in system.queues()] == ["a", "b"]


def test_an_executor_without_commands_has_no_queues_and_no_default_duration() -> None:
    system = _system(object(), ExecutorConfig(), has_commands=False)

    assert system.default_duration is None
    assert system.capabilities.arrays is None
    with pytest.raises(SubmitException, match="the executor x has no queues"):
        system.queues()


def test_the_default_duration_is_the_configured_one() -> None:
    assert _system(object(), BatchConfig(default_duration=_HOURS)).default_duration == _HOURS
