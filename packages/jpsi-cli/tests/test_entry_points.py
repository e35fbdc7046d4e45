"""Commands of other packages."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from jpsi_cli import entry_points
from jpsi_cli.main import cli

Run = Callable[..., subprocess.CompletedProcess[bytes]]

MODULE = """\
import click

@click.command(help="Greet.")
@click.option("--loud", is_flag=True)
def greet(loud: bool) -> int:
    click.echo("HELLO" if loud else "hello")
    return 7

no_command = 3
"""
ENTRIES = """\
[jpsi.commands]
greet = greeting:greet
run = greeting:greet
broken = greeting:nothing
three = greeting:no_command
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, environment: dict[str, str]) -> None:
    metadata = tmp_path / "site" / "greeting-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    (tmp_path / "site" / "greeting.py").write_text(MODULE)
    environment["PYTHONPATH"] = str(tmp_path / "site")


def test_a_command_of_another_package_is_one_of_jpsi_and_returns_its_exit_code(run: Run) -> None:
    done = run("greet", "--loud")

    assert (done.returncode, done.stdout) == (7, b"HELLO\n")


def test_help_names_commands_of_other_packages_even_if_one_is_broken(run: Run) -> None:
    done = run("--help")

    assert done.returncode == 0
    assert b"  greet " in done.stdout
    assert b"Cannot be used: AttributeError" in done.stdout


@pytest.mark.parametrize(("name", "why"), [("broken", b"AttributeError"), ("three", b"is no command")])
def test_a_command_that_cannot_be_loaded_names_its_package_and_the_reason(
    run: Run, name: str, why: bytes
) -> None:
    done = run(name, "--any", "thing")

    assert (done.returncode, done.stdout) == (125, b"")
    assert f"the command {name} of greeting cannot be used: ".encode() in done.stderr
    assert why in done.stderr


def test_own_commands_take_precedence_over_those_of_packages(run: Run) -> None:
    assert run("run", "--", "echo", "mine").stdout == b"mine\n"


def test_an_unknown_command_is_a_usage_error(run: Run) -> None:
    assert run("gret").returncode == 2


@pytest.mark.parametrize(("name", "package"), [("workflow", "jpsi-jobspec"), ("request", "jpsi-records")])
def test_a_command_of_a_package_that_is_missing_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str, package: str
) -> None:
    monkeypatch.setattr(entry_points, "_command_entry_points", dict)

    code = cli.main([name, "run", "--help"], standalone_mode=False)

    assert code == 125
    error = capfd.readouterr().err
    assert error.startswith(f"jpsi: jpsi {name} needs the package {package}; try: ")
    assert error.endswith(f" {package}\n")
    assert name not in cli.list_commands(click.Context(cli))
