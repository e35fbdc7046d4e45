"""The warning about files of the user's that a request names by their paths, as these may change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fake_dispatcher import spec
from forked_jpsi import run_as_text
from jpsi_records.commands.own_files import describe_own_files, describe_unseen_files

IMAGE = f"debian@sha256:{64 * '0'}"


def _described(directory: Path, *command: str, **more: Any) -> str | None:
    return describe_own_files(spec(*command, **more).computation, directory / "records")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return a program of the user's."""
    program = tmp_path / "own.sh"
    program.write_text("#!/bin/sh\necho version1\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    "command",
    [
        ["{own}"],
        ["sh", "{own}"],
        ["sh", "-c", "sort <{own}"],
        ["sh", "-c", "sort {own};echo done"],
        ["sh", "-c", "cat '{own}' # it's\necho done"],
        ["dd", "if={own}"],
        ["sh", "-c", "cat ~/own.sh"],
        ["cat", "{folder}/./own.sh"],
    ],
    ids=["program", "argument", "redirection", "list", "quoted", "option", "home", "not normal"],
)
def test_a_command_that_names_a_file_of_the_user_is_described(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    described = _described(tmp_path, *(it.format(own=own, folder=tmp_path) for it in command))

    assert described == (
        f"the command names the file {own}, whose content is not part of the request, so that a result is "
        "reused even if the file changes: keep it with `jpsi request put`, and mount it"
    )


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (["./own.sh"], "./own.sh, a file"),
        (["sort", "in.txt"], "in.txt, a file"),
        (["sh", "-c", "./own.sh <in.txt"], "./own.sh and in.txt, files"),
    ],
    ids=["program", "argument", "shell"],
)
def test_a_command_that_names_a_file_of_this_directory_is_described(
    own: Path, command: list[str], names: str
) -> None:
    (own.parent / "in.txt").touch()

    described = describe_unseen_files(spec(*command).computation, own.parent)

    assert described == (
        f"the command names {names} of this directory, which its job does not see: keep what it needs with "
        "`jpsi request put`, and mount it"
    )


def test_a_file_of_this_directory_is_not_described_if_the_job_has_one_of_that_name(own: Path) -> None:
    (own.parent / "in.txt").touch()
    (own.parent / "data").touch()
    mounts = {"/in.txt": {"kind": "text", "content": "x"}, "/out": {"kind": "collection"}}

    words = ("sort", "in.txt", "./in.txt", "data", "missing.txt", "out/x", "3.5", str(own))
    assert describe_unseen_files(spec(*words, mounts=mounts).computation, own.parent) is None
    image = spec("sort", "own.sh", container_image=IMAGE)
    assert describe_unseen_files(image.computation, own.parent) is None


def test_several_files_are_described_in_one_sentence(own: Path, tmp_path: Path) -> None:
    (tmp_path / "data").touch()

    described = _described(tmp_path, "sh", "-c", f"{own} {tmp_path}/data {own}")

    assert described is not None
    assert described.startswith(f"the command names the file {own} and 1 more, whose content")


def test_other_words_name_no_file_of_the_user(own: Path, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records/kept").touch()
    words = [
        "/usr/bin/env",
        sys.executable,
        "own.sh",
        "${JPSI_ROOT}/in",
        str(tmp_path),
        f"{own}.not",
        f"{tmp_path}/records/kept",
        "it's no shell's text",
        "~nobody-of-this-name/x",
    ]

    assert _described(tmp_path, *words) is None


@pytest.mark.parametrize("operator", [">", ">>", ">|", "2>", "&>", "&>>", ">&", ";>"])
def test_a_file_that_a_shell_writes_to_is_not_described(own: Path, tmp_path: Path, operator: str) -> None:
    assert _described(tmp_path, "sh", "-c", f"echo a {operator}{own}; echo b {operator} {own}") is None


@pytest.mark.parametrize("text", ["echo a#b; sort {}", "sort '>x' {}", "sort <{}"])
def test_a_file_that_a_shell_reads_is_described(own: Path, tmp_path: Path, text: str) -> None:
    assert _described(tmp_path, "sh", "-c", text.format(own)) is not None


def test_no_file_is_described_of_which_the_request_has_another(own: Path, tmp_path: Path) -> None:
    mounts = {str(tmp_path): {"kind": "collection"}}

    assert _described(tmp_path, "sh", "-c", f"sort {own}", mounts=mounts) is None
    assert _described(tmp_path, "sort", str(own), container_image=IMAGE) is None
    assert _described(tmp_path, "sort", str(own), purity="off") is None


def test_each_command_that_makes_or_previews_a_request_warns_once(own: Path, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(f"command: [{own}]\n")

    def warnings(command: str) -> list[str]:
        done: subprocess.CompletedProcess[str] = run_as_text("request", command, "own.yaml", cwd=tmp_path)
        assert done.returncode == 0
        return [it for it in done.stderr.splitlines() if "warning" in it]

    found = [warnings(it) for it in ("preview", "run", "submit")]

    assert found == 3 * [[f"jpsi: warning: {_described(tmp_path, str(own))}"]]
