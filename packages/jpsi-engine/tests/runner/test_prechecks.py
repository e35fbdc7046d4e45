"""The shell that runs a job's script, and the check of scripts by that shell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jpsi.plugin import JobSpec
from jpsi_engine.runner.prechecks import job_shell, local_problems

SHELL = ["/bin/sh", "-e"]


@pytest.mark.parametrize(
    ("text", "shell"),
    [
        ("#!/bin/bash\n", ["/bin/bash"]),
        ("#! /usr/bin/env bash\n", [shutil.which("bash")]),
        ("#!/bin/bash -l \n", ["/bin/bash", "-l"]),
        ("#!/bin/bash --login\n", ["/bin/bash", "-l"]),
        ("#!/bin/bash -e\n", ["/bin/bash"]),  # for the script, not for the runner
        ("#!/bin/bash -n\n", ["/bin/bash"]),
        ("#!/opt/bin/ksh93\n", SHELL),  # not on this machine
        ("#!/bin/sh\n", SHELL),
        ("#!/usr/bin/python3\n", SHELL),
        ("#!/bin/mybash\n", SHELL),
        ("#!/bin/bash", SHELL),  # nothing follows
        ("echo\n#!/bin/bash\n", SHELL),
        ("", SHELL),
    ],
)
def test_the_first_line_of_a_script_names_the_shell(tmp_path: Path, text: str, shell: list[str]) -> None:
    (tmp_path / "pre").write_text(text)

    assert job_shell(JobSpec("a", pre_launch=tmp_path / "pre"), SHELL) == shell
    assert job_shell(JobSpec("a", post_launch="pre", directory=tmp_path), SHELL) == shell


def test_scripts_that_name_different_shells_are_refused(tmp_path: Path) -> None:
    ksh = tmp_path / "bin/ksh"
    ksh.parent.mkdir()
    ksh.symlink_to("/bin/sh")
    (tmp_path / "before").write_text(f"#!{ksh}\n")
    (tmp_path / "after").write_text("#!/bin/bash\n")

    spec = JobSpec("a", pre_launch=tmp_path / "before", post_launch=tmp_path / "after")

    assert local_problems(spec, "/bin/sh") == [
        "pre_launch and post_launch name different shells in their first lines"
    ]


def test_a_script_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    assert job_shell(JobSpec("a", pre_launch=tmp_path / "missing"), SHELL) == SHELL
    assert job_shell(JobSpec("a", pre_launch=tmp_path), SHELL) == SHELL
    assert job_shell(JobSpec("a"), SHELL) == SHELL


def test_a_script_is_checked_by_the_shell_that_it_names(tmp_path: Path) -> None:
    arrays = "words=(a b)\nfor it in ${words[@]}; do :; done\n"
    (tmp_path / "good").write_text(f"#!/bin/bash\n{arrays}")
    (tmp_path / "bad").write_text("#!/bin/bash\nif\n")

    assert local_problems(JobSpec("a", pre_launch=tmp_path / "good"), "/bin/sh") == []
    (problem,) = local_problems(JobSpec("a", pre_launch=tmp_path / "bad"), "/bin/sh")
    assert "is not a script for /bin/bash: " in problem
