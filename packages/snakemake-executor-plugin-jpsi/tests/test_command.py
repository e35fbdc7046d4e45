"""The command `snakemake` with this executor: failures, interruptions, and what a killed one leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import jpsi
from jpsi_engine import job_store
from jpsi_testing.waiting import eventually
from snakemake_executor_plugin_jpsi import earlier_jobs

_FILE = """
rule all:
    input: "out.txt"

rule make:
    output: "out.txt"
    resources: mem_mb=100, {resources}
    shell: {shell!r}
"""


@pytest.fixture
def workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for a workflow, in which the test runs."""
    path = tmp_path / "workflow"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


def _snakemake(*options: str) -> subprocess.Popen[str]:
    words = ["-m", "snakemake", "--executor", "jpsi", "--jpsi-executor", "local", "--jobs", "2"]
    return subprocess.Popen(
        [sys.executable, *words, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _write(shell: str, resources: str = "runtime=5") -> None:
    Path("Snakefile").write_text(_FILE.format(shell=shell, resources=resources), encoding="utf-8")


def _output(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate()
    return output


def _submit_earlier(command: str) -> jpsi.Job:
    """Submit what an earlier Snakemake would have submitted for out.txt."""
    spec = jpsi.JobSpec("/bin/sh", ["-c", command], directory=Path.cwd())
    earlier_jobs.mark(spec, earlier_jobs.output_key(str(Path.cwd()), ["out.txt"]))
    job = jpsi.Job(spec)
    jpsi.JobExecutor("local").submit(job)
    return job


@pytest.mark.usefixtures("workflow")
def test_a_failed_job_is_reported_with_its_reason_and_the_evidence() -> None:
    _write("exit 3")

    process = _snakemake()
    output = _output(process)

    assert process.returncode == 1
    (job,) = job_store.jobs()
    assert "the executable returned exit code 1 (local" in output
    assert "reason: exit_code, evidence: marker" in output
    assert f"jpsi explain {job.id}" in output


@pytest.mark.usefixtures("workflow")
def test_mistakes_are_told_before_a_job_is_submitted() -> None:
    _write("true", resources="tasks='some'")

    output = _output(_snakemake())

    assert "rule make: tasks='some' is not a whole number" in output
    assert "no executor 'slrum'" in _output(_snakemake("--jpsi-executor", "slrum"))
    assert not job_store.jobs()


@pytest.mark.usefixtures("workflow")
def test_an_interrupt_cancels_the_jobs() -> None:
    _write("touch started; exec sleep 1000")

    process = _snakemake()
    eventually(lambda: Path("started").exists() or process.poll() is not None)
    process.send_signal(signal.SIGINT)

    output = _output(process)
    assert Path("started").exists(), output
    (job,) = job_store.jobs()
    (recalled,) = jpsi.JobExecutor("local").recall([job.id])
    assert recalled.wait().state is jpsi.JobState.CANCELED


@pytest.mark.usefixtures("workflow")
def test_a_job_of_a_killed_snakemake_goes_on_and_runs_once() -> None:
    os.mkfifo("go")
    earlier = _submit_earlier("read line < go; echo earlier > out.txt")
    _write("echo later > out.txt")

    process = _snakemake()
    assert process.stdout is not None
    assert any(f"goes on as {earlier.id}" in line for line in process.stdout)
    Path("go").write_text("\n", encoding="utf-8")
    _output(process)

    assert process.returncode == 0
    assert Path("out.txt").read_text(encoding="utf-8") == "earlier\n"


@pytest.mark.usefixtures("workflow")
def test_rerun_incomplete_first_ends_the_job_of_a_killed_snakemake() -> None:
    os.mkfifo("go")
    earlier = _submit_earlier("read line < go; echo earlier > out.txt")
    _write("echo later > out.txt")

    process = _snakemake("--rerun-incomplete")
    _output(process)

    assert process.returncode == 0
    assert Path("out.txt").read_text(encoding="utf-8") == "later\n"
    assert earlier.wait().state is jpsi.JobState.CANCELED


@pytest.mark.usefixtures("workflow")
def test_a_job_of_another_executor_that_writes_the_same_files_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "jpsi.yaml"
    target = f"{{executor: local, config: {{work_directory: {tmp_path}/other}}}}"
    config.write_text(f"targets: {{other: {target}}}\n", encoding="utf-8")
    monkeypatch.setenv("JPSI_CONFIG", str(config))
    os.mkfifo("go")
    earlier = _submit_earlier("read line < go")
    _write("true")

    output = _output(_snakemake("--jpsi-executor", "other"))

    assert f"jpsi cancel {earlier.id} (executor local)" in output
    earlier.cancel()
