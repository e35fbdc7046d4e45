from __future__ import annotations

import subprocess

from jpsi.contract.command import Command
from jpsi.contract.shell import ShellLine
from jpsi.plugin.kit.command_text import command_lines


def _run(command: Command, **environment: str) -> subprocess.CompletedProcess[str]:
    text = "\n".join(command_lines(command, ShellLine("echo not found; exit 127")))
    variables = {"PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(["/bin/sh", "-c", text], env=variables, capture_output=True, text=True, check=False)


def test_a_shell_becomes_the_command_with_its_words() -> None:
    words = ["a b", "$HOME", "", "it's", "*", "é\n"]

    assert _run(Command(["printf", "%s|", *words])).stdout == "".join(f"{word}|" for word in words)


def test_variables_are_unset_by_name_and_by_how_they_begin_and_others_are_set() -> None:
    command = Command(["env"], unset=["OLD", "SBATCH_*", "not a name", "*"], environment={"NEW": "a\nb"})

    seen = _run(command, OLD="1", OLDER="1", SBATCH_A="x\nSBATCH_B=y", SBATCH="1").stdout

    assert {"OLDER=1", "SBATCH=1", "NEW=a", "b"} <= set(seen.splitlines())
    assert not [line for line in seen.splitlines() if line.startswith(("OLD=", "SBATCH_"))]


def test_a_command_that_is_not_there_is_told_before_anything_is_run() -> None:
    assert _run(Command(["no-such-command"])).stdout == "not found\n"
