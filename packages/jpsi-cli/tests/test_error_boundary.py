"""Messages about a document name its own keys, and those about a command line its options."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from jpsi_cli import messages
from jpsi_cli.error_boundary import _locate, _typed_options, run_reporting_errors, translate_to_options

Run = Callable[..., subprocess.CompletedProcess[bytes]]

_IN_SLURM = ("fake", "slurm", "--", sys.executable, "-m", "jpsi_cli")
_UNKNOWN = "names the job 99999, which is not known, or not known any more"


def _write(path: Path, duration: int = 600, **attributes: object) -> str:
    """Write a document on one line, and return the line."""
    resources = [{"type": "slot", "label": "s", "count": 1, "with": [{"type": "core", "count": 1}]}]
    tasks = [{"command": ["true"], "slot": "s", "count": {"total": 1}}]
    system = {"duration": duration, "jpsi": attributes}
    content = {"version": 1, "resources": resources, "tasks": tasks, "attributes": {"system": system}}
    line = json.dumps(content)
    path.write_text(line)
    return line


@pytest.mark.parametrize("command", [["submit"], ["run"]], ids=["submit", "run"])
def test_a_mistake_in_a_document_is_named_by_its_own_key(
    run: Run, tmp_path: Path, command: list[str]
) -> None:
    _write(tmp_path / "job.json", after=[{"job": "99999", "kind": "ok"}])

    done = run(*_IN_SLURM, *command, "-x", "slurm", "-f", "job.json")

    assert (done.returncode, done.stderr.decode()) == (2, f"jpsi: job.json: attributes.after {_UNKNOWN}\n")


def test_a_message_has_the_name_of_a_document_that_is_one_of_its_words(run: Run, tmp_path: Path) -> None:
    _write(tmp_path / "job", after=[{"job": "99999", "kind": "ok"}])

    done = run(*_IN_SLURM, "submit", "-x", "slurm", "-f", "job")

    assert (done.returncode, done.stderr.decode()) == (2, f"jpsi: job: attributes.after {_UNKNOWN}\n")


@pytest.mark.parametrize(
    "message",
    [
        "job: attributes.after names",
        "job:3: attributes.after names",
        "job, line 1 and 1 more: attributes.after names",
        "job is not valid:\n  - attributes.after names\n  - attributes.warn is",
        "the job is not valid:\n  - job: attributes.after names\n  - job: attributes.warn is",
    ],
)
def test_a_message_that_has_the_name_of_its_document_does_not_get_it_twice(message: str) -> None:
    assert _locate(message, ["job"]) == message


def test_a_mistake_on_a_line_of_a_file_is_named_by_its_own_key(run: Run, tmp_path: Path) -> None:
    line = _write(tmp_path / "one.jsonl", after=[{"job": "99999", "kind": "ok"}])
    (tmp_path / "jobs.jsonl").write_text(f"{line}\n{line}\n")

    done = run(*_IN_SLURM, "submit", "-x", "slurm", "--many", "jobs.jsonl")

    places = "jobs.jsonl, line 1; jobs.jsonl, line 2"
    assert f"{places}: the job is not valid: attributes.after {_UNKNOWN}" in done.stderr.decode()


def test_an_option_that_was_typed_beside_a_document_is_named(run: Run, tmp_path: Path) -> None:
    _write(tmp_path / "job.json", duration=172800)
    submit = (*_IN_SLURM, "submit", "-x", "slurm", "--queue", "debug", "-f", "job.json")

    kept, typed, short = (run(*submit, *it) for it in ([], ["--time", "3d"], ["-t", "3-0"]))

    assert "jpsi: job.json: attributes.duration: it asks for 2 days" in kept.stderr.decode()
    assert "jpsi: job.json: --time: it asks for 3 days" in typed.stderr.decode()
    assert "jpsi: job.json: --time: it asks for 3 days" in short.stderr.decode()


def test_a_number_is_typed_even_if_it_is_0() -> None:
    typed = {"memory": 0, "gpus": 0.0, "qos": "", "exclusive": True}

    options = _typed_options({**typed, "nodes": None, "lenient": False, "after": ()})

    assert options == {"--memory", "--gpus", "--qos", "--exclusive"}


def test_the_options_of_one_command_are_not_those_of_what_follows_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "show_library_warnings", lambda: None)

    def fail(**_: object) -> int:
        raise jpsi.InvalidJobException("attributes.after names")

    assert run_reporting_errors(fail, {"files": ("job",)}) == 2
    assert capfd.readouterr().err == "jpsi: job: attributes.after names\n"
    assert translate_to_options("attributes.after names") == "--after names"


def test_validate_names_the_keys_of_a_document(run: Run, tmp_path: Path) -> None:
    _write(tmp_path / "long.json", duration=172800, queue_name="debug")
    _write(tmp_path / "early.json", warn=["USR1", 900])

    done = run(*_IN_SLURM, "validate", "-x", "slurm", "-f", "long.json", "-f", "early.json")

    assert "long.json: attributes.duration: it asks for 2 days" in done.stderr.decode()
    assert "early.json: attributes.warn is 900 s before the end" in done.stderr.decode()


def test_an_option_without_effect_on_this_machine_is_named_beside_a_document(
    run: Run, tmp_path: Path
) -> None:
    _write(tmp_path / "job.json", qos="high")

    done = run("submit", "-f", "job.json", "--queue", "debug")

    expected = "jpsi: warning: local is no batch system: --queue and qos have no effect\n"
    assert (done.returncode, done.stderr.decode()) == (0, expected)
    assert run("wait", done.stdout.decode().strip()).returncode == 0
