from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi

Run = Callable[..., subprocess.CompletedProcess[bytes]]
CONFIG = """
default_executor: here
executors:
  local: {defaults: {duration: 1h}}
targets:
  Here: {executor: local, config: {kill_delay: 1}}
"""


@pytest.fixture
def config(environment: dict[str, str]) -> Path:
    folder = Path(environment["XDG_CONFIG_HOME"], "jpsi")
    folder.mkdir()
    path = folder / "config.yaml"
    path.write_text(CONFIG)
    return path


def test_the_configuration_is_shown(run: Run, config: Path) -> None:
    text, content = run("config", "show").stdout.decode(), json.loads(run("config", "show", "--json").stdout)

    assert text == (
        f"# {config}\ndefault_executor: here\nexecutors:\n  local:\n    defaults:\n      duration: 3600.0\n"
        "targets:\n  here:\n    executor: local\n    config:\n      kill_delay: 1\n"
    )
    assert content["targets"] == {"here": {"executor": "local", "config": {"kill_delay": 1}}}


def test_without_a_file_the_configuration_is_empty(run: Run) -> None:
    printed, checked = run("config", "show"), run("config", "check")

    assert (printed.returncode, printed.stdout) == (0, b"# no file\n")
    assert (checked.returncode, checked.stdout) == (0, b"")
    assert checked.stderr.startswith(b"jpsi: no executor or target is configured; ")


def test_a_usable_configuration_passes_the_check(run: Run, config: Path) -> None:
    result = run("config", "check")

    assert (result.returncode, result.stdout) == (0, b"here: can be used\nlocal: can be used\n")


def test_the_check_names_unusable_executors(run: Run, config: Path) -> None:
    config.write_text(
        "targets:\n  missing: {executor: nosuch}\n  odd: {executor: local, config: {kill: 1}}\n"
    )

    result, content = run("config", "check"), json.loads(run("config", "check", "--json").stdout)

    assert (result.returncode, result.stdout) == (1, b"")
    assert b"no executor 'nosuch'" in result.stderr
    assert b"config.kill: is not known to LocalConfig" in result.stderr
    assert [it["name"] for it in content if it["problem"]] == ["missing", "odd"]


def test_the_check_names_executors_with_wrong_values(run: Run, config: Path) -> None:
    config.write_text("executors:\n  local:\n    config: {max_active: 0}\n")

    result = run("config", "check")

    assert result.returncode == 1
    assert result.stderr.startswith(b"jpsi: local: ")


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("", "slurm: the command scontrol was not found on PATH"),
        ("#!/bin/sh\necho 'no libslurm.so' >&2\nexit 1\n", "slurm: no libslurm.so"),
        ("#!/bin/sh\necho 'slurm 22.05'\n", ""),
    ],
    ids=["missing", "broken", "usable"],
)
def test_the_check_calls_the_commands_of_the_batch_system(
    run: Run, environment: dict[str, str], config: Path, tmp_path: Path, program: str, problem: str
) -> None:
    config.write_text("executors: {slurm: {}}\n")
    (tmp_path / "bin").mkdir()
    if program:
        (tmp_path / "bin/scontrol").write_text(program)
        (tmp_path / "bin/scontrol").chmod(0o755)

    result = run("config", "check", env={**environment, "PATH": str(tmp_path / "bin")})

    assert (result.returncode, result.stderr.decode()) == ((1, f"jpsi: {problem}\n") if problem else (0, ""))


def test_a_malformed_file_is_reported_in_a_sentence(run: Run, config: Path) -> None:
    config.write_text("executor: {}\n")

    for command in ("show", "check"):
        result = run("config", command)
        assert (result.returncode, result.stdout) == (125, b"")
        assert result.stderr.startswith(b"jpsi: the configuration is wrong:")


def test_targets_are_completed(run: Run, config: Path, environment: dict[str, str]) -> None:
    environment |= {"_JPSI_COMPLETE": "bash_complete", "COMP_WORDS": "jpsi run -x he", "COMP_CWORD": "3"}

    assert run().stdout == b"plain,here\n"


def test_documents_are_validated(run: Run, tmp_path: Path) -> None:
    good = jpsi.JobSpec("true", launcher="single", resources=jpsi.ResourceSpecV1(node_count=2))
    (tmp_path / "good.yaml").write_text(jpsi.write_document(good))
    (tmp_path / "bad.yaml").write_text("version: 1\nnonsense: 2\n")

    both = run("validate", "-f", "good.yaml", "-f", "bad.yaml")
    local = run("validate", "-x", "local", "-f", "good.yaml")
    content = json.loads(run("validate", "--json", "-f", "good.yaml", "-f", "bad.yaml").stdout)

    assert (both.returncode, both.stdout) == (2, b"good.yaml: valid\n")
    assert b"jpsi: bad.yaml" in both.stderr
    assert local.returncode == 2
    assert local.stderr.startswith(b"jpsi: good.yaml: local is one machine, but the job needs 2 nodes\n")
    assert [(it["file"], it["valid"]) for it in content] == [("good.yaml", True), ("bad.yaml", False)]
    assert run("validate").returncode == 2


def test_each_line_of_a_file_is_validated(run: Run, tmp_path: Path) -> None:
    good = json.dumps(json.loads(jpsi.write_document(jpsi.JobSpec("true"), as_json=True)))
    missing = jpsi.JobSpec("true", directory=tmp_path / "gone")
    nowhere = json.dumps(json.loads(jpsi.write_document(missing, as_json=True)))
    (tmp_path / "good.jsonl").write_text(f"{good}\n{nowhere}\n")
    (tmp_path / "bad.jsonl").write_text(f"{good}\n\n{{}}\n{good[:10]}\n")

    bad = run("validate", "--many", "bad.jsonl").stderr.decode().splitlines()
    alone = run("validate", "--many", "good.jsonl")
    local = run("validate", "-x", "local", "--many", "good.jsonl")
    as_one = run("validate", "-f", "good.jsonl")

    assert "jpsi: bad.jsonl, line 3: version: is missing" in bad
    assert bad[-1].startswith("jpsi: bad.jsonl, line 4: is not a document in JSON: ")
    assert (alone.returncode, alone.stdout) == (0, b"good.jsonl: valid\n")
    assert local.returncode == 2
    assert local.stderr.startswith(b"jpsi: good.jsonl, line 2: ")
    assert as_one.returncode == 2
    assert as_one.stderr.decode() == (
        "jpsi: good.jsonl has a document on each line: "
        "jpsi submit and jpsi validate take it as --many good.jsonl\n"
    )
    assert run("validate", "-f", "-", "--many", "-", input=b"").stderr.startswith(
        b"jpsi: standard input can be read once only"
    )


@pytest.mark.parametrize(
    ("exists", "is_open", "is_reported"),
    [(True, True, True), (True, False, False), (False, True, False)],
    ids=["unsafe", "safe", "not there yet"],
)
def test_an_empty_work_directory_that_others_can_change_is_named(
    run: Run, config: Path, tmp_path: Path, exists: bool, is_open: bool, is_reported: bool
) -> None:
    work = tmp_path / "open/work"
    (work if exists else work.parent).mkdir(parents=True, mode=0o755)
    work.parent.chmod(0o777 if is_open else 0o755)
    config.write_text(f"executors:\n  local:\n    config: {{work_directory: {work}}}\n")

    listed = run("ls")

    sentence = (
        f"the work directory {work} is not safe to use: {work.parent} can be written by others "
        f"(yours, mode 0777); change that: chmod go-w {work.parent}; or choose another"
    )
    assert listed.returncode == 0
    assert listed.stderr.decode() == (f"jpsi: warning: {sentence}\n" if is_reported else "")


def test_work_directory_that_others_can_replace_is_named(run: Run, config: Path, tmp_path: Path) -> None:
    """By each command that uses it: to run a job, to examine the executor, and to list jobs."""
    (tmp_path / "open").mkdir()
    work = tmp_path / "open/work"
    config.write_text(f"executors:\n  local:\n    config: {{work_directory: {work}}}\n")
    assert run("run", "--", "true").returncode == 0
    (tmp_path / "open").chmod(0o777)

    checked, examined = run("config", "check"), run("doctor", "-x", "local")
    ran, listed = run("run", "--", "true"), run("ls", "--all")

    problem = f"{tmp_path}/open can be written by others (yours, mode 0777); change that: chmod go-w"
    assert (checked.returncode, examined.returncode, ran.returncode) == (1, 125, 125)
    for done in (checked, examined, ran):
        assert f"the work directory {work}/local is not safe to use: {problem}" in done.stderr.decode()
        assert b"Traceback" not in done.stderr
    assert f"are left out: {problem}" in listed.stderr.decode()
    assert b"true" not in listed.stdout
