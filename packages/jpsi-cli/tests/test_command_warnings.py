"""What was typed as for a batch system or a shell, and means something else, is not taken in silence."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

import jpsi
from jpsi_cli import messages
from jpsi_cli.submission.command_warnings import warn_of_habits

Run = Callable[..., subprocess.CompletedProcess[bytes]]

DIRECTIVES = {
    "slurm": "#SBATCH --ntasks=4",
    "openpbs": "#PBS -N sim",
    "lsf": "#BSUB -n 4",
    "gridengine": "#$ -N sim",
    "flux": "# flux: -n 4",
    "oar": "#OAR -l nodes=2",
}

DOCUMENT = """\
version: 1
resources: [{type: slot, label: mine, count: 1, with: {type: core, count: 1}}]
tasks: [{command: ["true"], slot: mine, count: {total: 1}}]
attributes: {system: {duration: 60}}
"""


def _script(folder: Path, text: str) -> Path:
    path = folder / "my.sbatch"
    path.write_text(f"#!/bin/sh\n{text}\necho ran\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("executor", DIRECTIVES)
def test_a_script_with_directives_is_named_with_the_command_that_converts_it(
    run: Run, tmp_path: Path, executor: str
) -> None:
    _script(tmp_path, DIRECTIVES[executor])

    done = run("run", "./my.sbatch")

    assert (done.returncode, done.stdout) == (0, b"ran\n")
    assert done.stderr.decode() == (
        f"jpsi: warning: ./my.sbatch has directives of {executor}, which jpsi ignores here. To submit it "
        f"with them: jpsi convert my.sbatch > job.yaml, then jpsi submit -x {executor} -f job.yaml\n"
    )


def test_submit_warns_of_a_script_behind_a_shell(run: Run, tmp_path: Path) -> None:
    _script(tmp_path, DIRECTIVES["slurm"])

    done = run("submit", "bash", "my.sbatch", "5", "two words")

    assert done.returncode == 0
    assert b"jpsi convert my.sbatch 5 'two words' > job.yaml" in done.stderr


@pytest.mark.parametrize(
    ("file", "mode", "why"),
    [("my.sbatch", 0o755, "in no directory of PATH"), ("./my.sbatch", 0o644, "not executable")],
)
def test_a_script_that_cannot_be_executed_is_not_submitted(
    run: Run, tmp_path: Path, file: str, mode: int, why: str
) -> None:
    _script(tmp_path, DIRECTIVES["slurm"]).chmod(mode)

    done = run("submit", file)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(
        f"jpsi: {file} is {why}. To submit it with its directives of slurm: "
        "jpsi convert my.sbatch > job.yaml, then jpsi submit -x slurm -f job.yaml\n"
    )
    assert json.loads(run("ls", "--all", "--json").stdout) == []


@pytest.mark.parametrize("words", [["--time", "2", "hours"], ["-t", "30", "min"]])
def test_a_time_in_two_words_is_answered(run: Run, words: list[str]) -> None:
    done = run("run", *words, "--", "true")

    assert done.returncode == 2
    assert f"jpsi: '{words[-1]}' is no program; a time is one word, such as" in done.stderr.decode()


CONFIG = """\
targets:
  remote: {executor: slurm, url: "ssh://login.example"}
  modules: {executor: local, defaults: {environment_setup: ["module:tools"]}}
"""


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        (jpsi.JobSpec(), "remote"),
        (jpsi.JobSpec(), "modules"),
        (jpsi.JobSpec(environment={"PATH": "/opt/bin:/bin"}), None),
        (jpsi.JobSpec(inherit_environment=False), None),
        (jpsi.JobSpec(environment_setup=["module:tools"]), None),
        (jpsi.JobSpec(pre_launch=Path("setup.sh")), None),
        (jpsi.JobSpec(stage_in=[jpsi.StageIn("my.sbatch", "my.sbatch")]), None),
        (jpsi.JobSpec(container=jpsi.Container("image.sif")), None),
    ],
    ids=["remote target", "target", "PATH", "clean", "modules", "pre-launch", "stage-in", "container"],
)
def test_a_job_that_may_find_its_program_elsewhere_is_warned_of(
    spec: jpsi.JobSpec, target: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.setenv("JPSI_CONFIG", str(tmp_path / "config.yaml"))
    _script(tmp_path, DIRECTIVES["slurm"]).chmod(0o644)
    spec.directory = tmp_path
    warnings: list[str] = []
    monkeypatch.setattr(messages, "warning", warnings.append)

    warn_of_habits(["./my.sbatch"], {}, spec, target)
    warn_of_habits(["hours"], {"time": "2"}, spec, target)

    assert [it.partition(",")[0] for it in warnings] == [
        "./my.sbatch has directives of slurm",
        "'hours' is no program here; a time is one word",
    ]


CLUSTERS = """\
targets:
  mine: {executor: local}
  cluster: {executor: slurm}
  remote: {executor: slurm, url: "ssh://login.example"}
"""


@pytest.mark.parametrize(
    ("first_line", "target", "warning"),
    [
        ("#!/bin/nosh\n", None, "'/bin/nosh'"),
        ("#!/bin/nosh\n", "mine", "'/bin/nosh'"),
        ("#!/bin/nosh\n", "cluster", ""),
        ("#!/bin/nosh\n", "remote", ""),
        ("#!/bin/sh\r\n", "cluster", r"'/bin/sh\r' (it has Windows line ends: dos2unix {path})"),
        ("#!/bin/sh\r\n", "remote", ""),
        ("#!/bin/sh\n", None, ""),
    ],
)
def test_a_script_whose_interpreter_is_missing_where_the_job_runs_is_warned_of(
    first_line: str, target: str | None, warning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nodes of a cluster may have it, but no machine has one that ends as a line of Windows does."""
    (tmp_path / "config.yaml").write_text(CLUSTERS)
    monkeypatch.setenv("JPSI_CONFIG", str(tmp_path / "config.yaml"))
    script = tmp_path / "a.sh"
    script.write_bytes(first_line.encode())
    warnings: list[str] = []
    monkeypatch.setattr(messages, "warning", warnings.append)

    warn_of_habits(["./a.sh"], {}, jpsi.JobSpec(directory=tmp_path), target)
    warn_of_habits(["./a.sh"], {}, jpsi.JobSpec(directory=tmp_path, container="image.sif"), target)

    sentence = "./a.sh exists, but its first line names an interpreter that does not: "
    assert warnings == ([f"{sentence}{warning.format(path=script)}"] if warning else [])


@pytest.mark.parametrize("command", ["run", "submit", "script"])
def test_the_target_of_the_command_decides(
    run: Run, tmp_path: Path, environment: dict[str, str], command: str
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("targets: {remote: {executor: local, url: 'none://login.example'}}")
    environment["JPSI_CONFIG"] = str(config)

    done = run(command, "-x", "remote", "--time", "2", "hours", "--", "true")

    assert done.stderr.decode().startswith("jpsi: warning: 'hours' is no program here; a time is one word")


@pytest.mark.parametrize("text", ["# see man -k x", "#a -b", "echo '#SBATCH --ntasks=4'"])
def test_comments_are_no_directives(run: Run, tmp_path: Path, text: str) -> None:
    _script(tmp_path, text)

    assert run("run", "./my.sbatch").stderr == b""


def test_a_program_and_a_document_are_no_script(run: Run, tmp_path: Path) -> None:
    script = _script(tmp_path, DIRECTIVES["slurm"])
    (tmp_path / "job.yaml").write_bytes(run("convert", "my.sbatch").stdout)

    assert run("run", "cat", str(script)).stderr == b""
    assert run("run", "-f", "job.yaml").stderr == b""


def test_a_pipe_is_left_to_the_job(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    done = run("submit", "sh", "pipe")

    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "pipe").write_text("exit 3\n")
    assert run("wait", done.stdout.decode().strip()).returncode == 3


def test_an_interpreter_with_options_is_no_directive(tmp_path: Path) -> None:
    """All plugins would be searched, and one that fails would say so."""
    script = tmp_path / "script"
    script.write_text("#!/bin/bash -e\n")

    with patch("jpsi.read_script", side_effect=AssertionError):
        warn_of_habits([str(script)], {}, jpsi.JobSpec(), None)


def test_a_plugin_that_fails_keeps_no_job_from_running(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#SBATCH -n 4\n")

    with patch("jpsi.read_script", side_effect=jpsi.PluginError("its hook failed")):
        warn_of_habits([str(script)], {}, jpsi.JobSpec(), None)


# No system has programs of these names.
BUILTINS = {
    "export": (["export", "A"], "sh -c 'export A && ...'"),
    "set": (["set", "-x"], "sh -c 'set -x && ...'"),
    "source": (["source", "env.sh"], "bash -c 'source env.sh && ...'"),
}


@pytest.mark.parametrize("verb", ["run", "submit", "script"])
@pytest.mark.parametrize(("command", "line"), BUILTINS.values(), ids=BUILTINS)
def test_a_builtin_of_the_shell_is_no_program(run: Run, verb: str, command: list[str], line: str) -> None:
    done = run(verb, "--", *command)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines()[0] == (
        f"jpsi: there is no program {command[0]!r}: it is a builtin of the shell; for a line of shell: {line}"
    )


def test_a_builtin_that_the_job_may_find_is_warned_of(run: Run) -> None:
    done = run("script", "--env", "PATH=/opt/bin", "--", "export", "A")

    assert done.returncode == 0
    assert done.stderr.startswith(
        b"jpsi: warning: there is no program 'export' here: it is a builtin of the shell;"
    )


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        (
            "umask",
            "'umask' has no effect outside a shell; for a line of shell: sh -c 'umask 077 && ...'",
        ),
        ("command", ""),
    ],
)
def test_a_program_may_have_the_name_of_a_builtin(
    run: Run, tmp_path: Path, environment: dict[str, str], name: str, warning: str
) -> None:
    """Some systems have the programs that POSIX demands of builtins, also of those that change a shell."""
    (tmp_path / name).write_text("#!/bin/sh\necho mine\n")
    (tmp_path / name).chmod(0o755)

    done = run("run", "--", name, "077", env={**environment, "PATH": f"{tmp_path}:{environment['PATH']}"})

    assert (done.returncode, done.stdout, done.stderr.decode()) == (
        0,
        b"mine\n",
        f"jpsi: warning: {warning}\n" if warning else "",
    )


def test_a_line_of_shell_in_one_word_is_named(run: Run) -> None:
    warned = run("run", "--", "echo hi")

    assert warned.stderr.decode().splitlines()[0] == (
        "jpsi: warning: 'echo hi' is the name of one program; for a line of shell: sh -c 'echo hi'"
    )


def test_a_program_with_a_blank_in_its_name_is_run(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "my program"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)

    assert run("run", "--", "./my program").stderr == b""


def test_patterns_of_slurm_in_paths_are_named(run: Run, tmp_path: Path) -> None:
    done = run("run", "-o", "log-%x-%4j-%a-100%.txt", "--", "true")

    assert done.stderr.decode() == (
        "jpsi: warning: --stdout: jpsi replaces %a alone, the index in an array; %x and %4j stay as they are "
        "in log-%x-%4j-%a-100%.txt\n"
    )
    assert (tmp_path / "log-%x-%4j-%a-100%.txt").exists()


def test_a_document_may_name_its_interpreter(run: Run, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(f"#!/usr/bin/env -S jpsi run -f\n{DOCUMENT}")

    assert run("validate", "-f", "job.yaml").returncode == 0


def test_a_script_in_the_place_of_a_document_is_called_one(run: Run, tmp_path: Path) -> None:
    _script(tmp_path, "# nothing")

    done = run("submit", "-f", "my.sbatch")

    assert done.returncode == 2
    assert done.stderr.decode() == (
        "jpsi: my.sbatch is a script, not a job document: jpsi submit -- ./my.sbatch runs it as it is; if it "
        "has directives, such as #SBATCH: jpsi convert ./my.sbatch > job.yaml\n"
    )


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("-A", "no such option '-A'; jpsi has --project"),
        ("-D", "no such option '-D'; jpsi has --dir"),
        ("--mem", "no such option '--mem'; jpsi has --memory, for the whole job"),
        ("--wrap", "no such option '--wrap'; jpsi takes a line of shell as: -- sh -c 'LINE'"),
        ("--cpus", "no such option '--cpus'; jpsi has --cores"),
        ("--time-limit", "no such option '--time-limit'; jpsi has --time"),
        ("--begin", "no such option '--begin'; jpsi has --attribute slurm.begin=VALUE"),
        ("--depends", "no such option '--depends', nor '--dependency'; jpsi has --after"),
        ("--partiton", "no such option '--partiton', nor '--partition'; jpsi has --queue"),
        ("--quue", "no such option '--quue'. Did you mean '--queue'?"),
        ("--limit", "no such option '--limit'."),
        ("-W", "no such option '-W'; jpsi has --time, and --after for dependencies"),
        ("-pe", "no such option '-pe'; jpsi has --processes, or --cores for threads"),
        ("-hold_jid", "no such option '-hold_jid'; jpsi has --after"),
    ],
)
def test_options_of_batch_systems_are_translated(run: Run, option: str, message: str) -> None:
    done = run("submit", option, "x", "--", "true")

    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[0] == f"jpsi: {message}"


def test_singleton_is_an_option_of_slurm_alone(run: Run) -> None:
    done = run("submit", "-d", "singleton", "--", "true")

    assert done.returncode == 2
    assert done.stderr == (
        b"jpsi: --after takes jobs; Slurm's singleton is --attribute slurm.dependency=singleton\n"
    )
