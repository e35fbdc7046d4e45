"""The facts that `jpsi doctor` queries from a small batch system, whose commands are scripts of the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import cast

import pluggy
import pytest

from jpsi import System
from jpsi.contract.hookspecs import PROJECT
from jpsi.layers import default_hooks
from jpsi.plugin import (
    NOT_OFFERED,
    BatchConfig,
    Command,
    CommandResult,
    ExecutorConfig,
    ExecutorHooks,
    NotOffered,
    Observation,
    Script,
    Site,
    SubmitException,
    TransportError,
    hookimpl,
)
from jpsi_cli.doctor.system_checks import check_answer, find_programs, is_accounted, read_version
from jpsi_engine.host.local_transport import LocalTransport


class Backend:
    """A backend that sets PATH so that its commands are the scripts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.accounting: Command | NotOffered = NOT_OFFERED

    def script(self, name: str, text: str) -> None:
        path = self.directory / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def _command(self, *argv: str) -> Command:
        return Command(argv, environment={"PATH": f"{self.directory}:/usr/bin:/bin"})

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
    def query_finished(self) -> Command | NotOffered:
        return self.accounting

    @hookimpl
    def parse_finished(self, result: CommandResult) -> Mapping[str, Observation]:
        known = result.checked().stdout.split()
        return {it: Observation(state=None, native_state="") for it in known}


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Backend:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Backend(tmp_path)


@pytest.fixture
def system(backend: Backend) -> System:
    return _system(backend, BatchConfig(command_timeout=timedelta(seconds=30)))


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


def test_programs_are_those_of_the_commands_with_their_paths(backend: Backend, system: System) -> None:
    backend.script("xsub", "exit 1")
    backend.script("xdel", "exit 1")

    assert find_programs(system) == {
        "xsub": str(backend.directory / "xsub"),
        "xstat": None,
        "xdel": str(backend.directory / "xdel"),
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
def test_a_program_that_a_shell_runs_is_found(
    backend: Backend, system: System, text: str, found: bool
) -> None:
    backend.accounting = Command(["/bin/sh", "-c", text, "xacct", "7"])
    backend.script("xacct", "exit 1")

    assert ("xacct" in find_programs(system)) is found


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

    assert read_version(system) == version


def test_output_that_the_backend_cannot_parse_is_an_error(backend: Backend, system: System) -> None:
    backend.script("xstat", "true")
    check_answer(system)

    backend.script("xstat", "echo down >&2; exit 1")
    with pytest.raises(SubmitException, match="down"):
        check_answer(system)


def test_a_missing_command_is_named(system: System) -> None:
    with pytest.raises(TransportError, match="xstat"):
        check_answer(system)


def test_a_command_that_hangs_is_an_error(backend: Backend) -> None:
    system = _system(backend, BatchConfig(command_timeout=timedelta(milliseconds=50)))
    backend.script("xstat", "exec sleep 60")
    backend.accounting = Command(["xstat"])

    for query in (lambda: check_answer(system), lambda: is_accounted(system, "7")):
        with pytest.raises(SubmitException, match="no answer in time"):
            query()


def test_the_accounting_is_queried_for_one_job(backend: Backend, system: System) -> None:
    assert is_accounted(system, "7") is None

    backend.script("xacct", "echo 7 8")
    backend.accounting = Command(["xacct"])

    assert is_accounted(system, "7") is True
    assert is_accounted(system, "9") is False


def test_an_executor_without_commands_queries_nothing() -> None:
    system = _system(object(), ExecutorConfig(), has_commands=False)

    check_answer(system)
    assert (find_programs(system), read_version(system)) == ({}, None)
