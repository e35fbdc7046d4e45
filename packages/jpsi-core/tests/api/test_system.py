"""What is found out about a batch system, with a small one whose commands are scripts of this test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import cast

import pluggy
import pytest

from jpsi.api.system import System
from jpsi.contract.command import Command, CommandResult
from jpsi.contract.config import BatchConfig, ExecutorConfig
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks, Site, hookimpl
from jpsi.contract.observation import NOT_OFFERED, NotOffered, Observation, Queue, ShownJob
from jpsi.contract.shell import Script
from jpsi.layers import default_hooks
from jpsi.model.errors import SubmitException, TransportError
from jpsi.model.states import JobState
from jpsi_engine.host.local_transport import LocalTransport

_HOURS = timedelta(hours=3)


class Backend:
    """Its commands are found on the PATH that it sets for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.accounting: Command | NotOffered = NOT_OFFERED

    def script(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def _command(self, *argv: str) -> Command:
        return Command(argv, environment={"PATH": f"{self.folder}:/usr/bin:/bin"})

    @hookimpl
    def render_script(self) -> Script:
        return Script([])

    @hookimpl
    def submit(self) -> Command:
        return self._command("xsub")

    @hookimpl
    def query(self) -> Command:
        return self._command("xstat", "--mine")

    @hookimpl
    def parse_status(self, result: CommandResult) -> Mapping[str, Observation]:
        result.checked()
        return {}

    @hookimpl
    def cancel(self, native_ids: Sequence[str]) -> Command:
        return self._command("xdel", *native_ids)

    @hookimpl
    def version(self) -> Command:
        return self._command("xstat", "--version")

    @hookimpl
    def queues(self) -> Command:
        return self._command("/bin/sh", "-c", "exec xqueues")

    @hookimpl
    def parse_queues(self, result: CommandResult) -> Sequence[Queue]:
        return [Queue(name=line, word="") for line in result.checked().stdout.splitlines()]

    @hookimpl
    def query_finished(self) -> Command | NotOffered:
        return self.accounting

    @hookimpl
    def parse_finished(self, result: CommandResult) -> Mapping[str, Observation]:
        known = result.checked().stdout.split()
        return {it: Observation(state=None, word="") for it in known}


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Backend:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Backend(tmp_path)


@pytest.fixture
def system(backend: Backend) -> System:
    return _system(backend, BatchConfig(default_duration=_HOURS, command_timeout=timedelta(seconds=30)))


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


def test_programs_are_those_of_the_commands_with_their_places(backend: Backend, system: System) -> None:
    backend.script("xsub", "exit 1")
    backend.script("xdel", "exit 1")

    assert system.programs() == {
        "xsub": str(backend.folder / "xsub"),
        "xstat": None,
        "xdel": str(backend.folder / "xdel"),
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"$0" --old "$@"', True),
        ('old=$1; shift; "$0" "$old" && true', True),
        ('true && exec "$0" "$@"', True),
        ('for it; do xstat --set "$0" "$it"; done', False),
        ("true", False),
    ],
)
def test_a_program_that_a_shell_is_to_run_is_found(
    backend: Backend, system: System, text: str, found: bool
) -> None:
    backend.accounting = Command(["/bin/sh", "-c", text, "xacct", "7"])
    backend.script("xacct", "exit 1")

    assert ("xacct" in system.programs()) is found


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("echo welcome; echo ' X 1.2  '; echo 3", "X 1.2"),
        ("echo 'x 7' >&2; exit 1", "x 7"),
        ("echo none", None),
    ],
)
def test_the_version_is_the_first_line_with_a_digit(
    backend: Backend, system: System, text: str, version: str | None
) -> None:
    backend.script("xstat", text)

    assert system.version() == version


def test_an_answer_is_one_that_the_backend_can_read(backend: Backend, system: System) -> None:
    backend.script("xstat", "true")
    system.check_answer()

    backend.script("xstat", "echo down >&2; exit 1")
    with pytest.raises(SubmitException, match="down"):
        system.check_answer()


def test_a_command_that_is_not_there_is_said_to_be_missing(system: System) -> None:
    with pytest.raises(TransportError, match="xstat"):
        system.check_answer()


def test_a_command_that_hangs_is_no_answer(backend: Backend) -> None:
    system = _system(backend, BatchConfig(command_timeout=timedelta(milliseconds=50)))
    for name in ("xstat", "xqueues"):
        backend.script(name, "exec sleep 60")
    backend.accounting = Command(["xstat"])

    for question in (system.check_answer, system.queues, lambda: system.is_accounted("7")):
        with pytest.raises(SubmitException, match="no answer in time"):
            question()


def test_queues_are_those_that_the_backend_reads(backend: Backend, system: System) -> None:
    backend.script("xqueues", "echo a; echo b")

    assert [queue.name for queue in system.queues()] == ["a", "b"]


def test_the_accounting_is_asked_about_one_job(backend: Backend, system: System) -> None:
    assert system.is_accounted("7") is None

    backend.script("xacct", "echo 7 8")
    backend.accounting = Command(["xacct"])

    assert system.is_accounted("7") is True
    assert system.is_accounted("9") is False


def test_where_there_are_no_commands_nothing_is_asked() -> None:
    system = _system(object(), ExecutorConfig(), has_commands=False)

    system.check_answer()
    assert (system.programs(), system.version(), system.default_duration) == ({}, None, None)
    assert system.capabilities.arrays is None
    with pytest.raises(SubmitException, match="the executor x has no queues"):
        system.queues()


def test_the_limit_is_the_configured_one(system: System) -> None:
    assert system.default_duration == _HOURS


class Shows(Backend):
    """Its queue shows jobs, each by its native id."""

    seen: Mapping[str, Observation]

    @hookimpl
    def find(self, tags: Sequence[str]) -> Command:
        return self._command("xstat", *tags)

    @hookimpl
    def parse_find(self) -> Mapping[str, str]:
        return {"jpsi-b-1": "2"}

    @hookimpl
    def parse_status(self, result: CommandResult) -> Mapping[str, Observation]:
        result.checked()
        return self.seen


def test_jobs_are_shown_with_the_command_that_ends_them_unless_their_ids_are_others(tmp_path: Path) -> None:
    backend = Shows(tmp_path)
    backend.script("xstat", "exit 0")
    backend.seen = {
        "1": Observation(state=JobState.ACTIVE, word="R", tag="jpsi-a-1"),
        "2": Observation(state=JobState.QUEUED, word="Q", tag="jpsi-b-1"),
        "3": Observation(state=JobState.ACTIVE, word="R", tag="jpsi-x-1"),
        "4": Observation(state=JobState.COMPLETED, word="C", tag="jpsi-d-1"),
    }
    ids = {"a": "1", "b": None, "c": "3", "d": "4", "e": "5", "f": None}

    wanted = {it: (f"jpsi-{it}-1", native_id) for it, native_id in ids.items()}
    shown = _system(backend, BatchConfig()).shown_jobs(wanted)

    assert shown == {
        "a": ShownJob(native_id="1", word="R", cancel_command="xdel 1"),
        "b": ShownJob(native_id="2", word="Q", cancel_command="xdel 2"),
    }
