"""What a job needs on this machine and does not find there is named when it is submitted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jpsi
from jpsi_cli import messages
from jpsi_cli.submission.missing_files import describe_missing, warn_of_missing_files

Run = Callable[..., subprocess.CompletedProcess[bytes]]
_LATER = "the job fails unless that is there when it starts"


def _spec(directory: Path | None, executable: str = "true", **fields: Any) -> jpsi.JobSpec:
    return jpsi.JobSpec(executable, directory=directory, **fields)


def test_missing_programs_and_directories_of_output_are_named(tmp_path: Path) -> None:
    spec = _spec(tmp_path, "./prog", stdout_path=Path("out/a"), stderr_path=Path("err/b"))

    assert list(describe_missing([spec])) == [
        f"there is no program {tmp_path}/prog",
        f"there is no directory {tmp_path}/out for standard output",
        f"there is no directory {tmp_path}/err for standard error",
    ]


@pytest.mark.parametrize("path", ["in/words", "/nowhere/words", "~/words"])
def test_a_missing_file_for_standard_input_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    missing = tmp_path / path.replace("~", "home")
    assert list(describe_missing([_spec(tmp_path, stdin_path=Path(path))])) == [
        f"there is no file {missing} for standard input"
    ]


def test_what_is_there_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "prog").touch()
    (tmp_path / "out").mkdir()
    there = _spec(
        tmp_path,
        "./prog",
        stdin_path=Path("prog"),
        stdout_path=Path("out/a"),
        stderr_path=tmp_path / "out" / "b",
    )
    in_path = _spec(tmp_path, "no-such-program", stdout_path=Path("a"))
    made = _spec(tmp_path / "made", create_directory=True, stdout_path=Path("a"))

    assert list(describe_missing([there, in_path, made])) == []


def test_nothing_is_said_where_the_current_directory_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert list(describe_missing([_spec(None, "./prog")])) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"pre_launch": Path("make.sh")},
        {"environment_setup": ["make.sh"]},
        {"stage_in": [jpsi.StageIn("prog", Path("prog"))]},
        {"container": jpsi.Container("image.sif")},
        {"attributes": jpsi.JobAttributes(after=["4711"])},
    ],
    ids=lambda it: next(iter(it)),
)
def test_what_may_be_made_before_the_job_starts_is_not_named(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert list(describe_missing([_spec(tmp_path, "./prog", stdout_path=Path("out/a"), **fields)])) == []


@pytest.mark.parametrize("command", ["submit", "run"])
def test_a_job_whose_program_is_missing_is_submitted_with_one_warning(
    run: Run, tmp_path: Path, command: str
) -> None:
    done = run(command, "--stdout", "out/a", "--", "./prog")

    first, *_ = done.stderr.decode().splitlines()
    assert first == f"jpsi: warning: there is no program {tmp_path}/prog, and 1 more is missing; {_LATER}"
    assert done.stderr.decode().count("warning") == 1
    if command == "submit":
        assert done.returncode == 0
        run("wait", done.stdout.decode().strip())


@pytest.mark.parametrize("command", ["submit", "run"])
def test_a_job_whose_input_is_missing_is_submitted_with_one_warning(
    run: Run, tmp_path: Path, command: str
) -> None:
    done = run(command, "--stdin", "words", "--", "cat")

    first, *_ = done.stderr.decode().splitlines()
    assert first == f"jpsi: warning: there is no file {tmp_path}/words for standard input; {_LATER}"
    assert done.stderr.decode().count("warning") == 1
    if command == "submit":
        assert done.returncode == 0
        run("wait", done.stdout.decode().strip())


def test_elements_of_an_array_share_one_warning(run: Run, tmp_path: Path) -> None:
    done = run("submit", "-a", "1-3", "--stdout", "out-%a/log", "--", "true")

    expected = f"there is no directory {tmp_path}/out-1 for standard output, and 2 more are missing; {_LATER}"
    assert done.stderr.decode() == f"jpsi: warning: {expected}\n"
    run("wait", done.stdout.decode().strip())


@pytest.mark.parametrize("is_remote", [True, False])
def test_a_remote_host_has_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_remote: bool
) -> None:
    warned = list[str]()
    monkeypatch.setattr(messages, "warning", warned.append)
    executor = SimpleNamespace(system=SimpleNamespace(is_remote=is_remote))

    warn_of_missing_files(executor, [_spec(tmp_path, "./prog")])  # type: ignore[arg-type]  # what it uses

    assert len(warned) == (not is_remote)


def test_a_job_that_waits_for_another_is_submitted_without_a_warning(run: Run) -> None:
    first = run("submit", "--", "true").stdout.decode().strip()

    done = run("submit", "--after", first, "--", "./prog")

    assert b"there is no program" not in done.stderr
    run("wait", done.stdout.decode().strip())


def test_a_batch_system_of_this_machine_has_its_files(run: Run, tmp_path: Path) -> None:
    jpsi_ = ("fake", "slurm", "--", sys.executable, "-m", "jpsi_cli")
    done = run(*jpsi_, "submit", "-x", "slurm", "--", "./prog")

    assert done.stderr.decode() == f"jpsi: warning: there is no program {tmp_path}/prog; {_LATER}\n"
