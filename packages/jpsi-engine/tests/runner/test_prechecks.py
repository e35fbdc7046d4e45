"""The shell that runs a job's script, and the check of scripts by that shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi.plugin import JobSpec
from jpsi_engine.runner.prechecks import job_shell, local_problems

SHELL = ["/bin/sh", "-e"]


@pytest.mark.parametrize(
    ("text", "shell"),
    [
        ("#!/bin/bash\n", ["/bin/bash"]),
        ("#! /usr/bin/env bash\n", ["/usr/bin/env", "bash"]),
        ("#!/bin/bash -l \n", ["/bin/bash", "-l"]),
        ("#!/opt/bin/ksh93\n", ["/opt/bin/ksh93"]),
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


def test_the_shell_of_pre_launch_takes_precedence(tmp_path: Path) -> None:
    for name in ("bash", "ksh"):
        (tmp_path / name).write_text(f"#!/bin/{name}\n")

    spec = JobSpec("a", pre_launch=tmp_path / "ksh", post_launch=tmp_path / "bash")

    assert job_shell(spec, SHELL) == ["/bin/ksh"]


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
