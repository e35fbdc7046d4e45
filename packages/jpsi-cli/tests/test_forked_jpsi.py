"""A fork of `jpsi`, as most tests run it, behaves as a process of its own does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from conftest import COMMAND
from forked_jpsi import run_jpsi

COMMANDS = [
    (["--version"], b""),
    (["walk"], b""),
    (["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"], b""),
    (["run", "--", "sh", "-c", "kill -9 $$"], b""),
    (["validate", "-f", "-"], b"version: 1\n"),
    (["run", "--stdin", "/dev/stdin", "--", "cat"], b"\xff\0"),
]


@pytest.mark.parametrize(("arguments", "text"), COMMANDS, ids=[" ".join(it) for it, _ in COMMANDS])
def test_a_fork_ends_as_a_new_process_does(
    arguments: list[str], text: bytes, environment: dict[str, str], tmp_path: Path
) -> None:
    new = subprocess.run(
        [*COMMAND, *arguments], check=False, capture_output=True, cwd=tmp_path, env=environment, input=text
    )
    forked = run_jpsi(*arguments, cwd=tmp_path, env=environment, input=text)

    assert (forked.returncode, forked.stdout, forked.stderr) == (new.returncode, new.stdout, new.stderr)


def test_a_fork_has_the_variables_and_the_directory_of_its_call(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "in it").mkdir()
    script = 'import json, os; print(json.dumps([os.getcwd(), os.environ.get("MINE")]))'
    command = ("run", "--", "python3", "-c", script)

    first = run_jpsi(*command, cwd=tmp_path / "in it", env={**environment, "MINE": "1"})
    second = run_jpsi(*command, cwd=tmp_path, env=environment)

    assert json.loads(first.stdout) == [str(tmp_path / "in it"), "1"]
    assert json.loads(second.stdout) == [str(tmp_path), None]


def test_a_fork_waits_for_its_output_alone(environment: dict[str, str], tmp_path: Path) -> None:
    """A job that runs on in the background keeps no stream of the command that has submitted it."""
    submitted = run_jpsi(
        "submit",
        "--",
        "sh",
        "-c",
        f"until [ -e {tmp_path}/go ]; do sleep 0.1; done",
        cwd=tmp_path,
        env=environment,
    )
    (tmp_path / "go").touch()

    assert submitted.returncode == 0
    assert run_jpsi("wait", submitted.stdout.decode().strip(), cwd=tmp_path, env=environment).returncode == 0


def test_other_variables_of_the_interpreter_take_a_new_process(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "jpsi_cli").mkdir()
    (tmp_path / "jpsi_cli" / "__init__.py").write_text("raise SystemExit(33)")

    other = run_jpsi("--version", cwd=tmp_path, env={**environment, "PYTHONPATH": str(tmp_path)})

    assert other.returncode == 33
