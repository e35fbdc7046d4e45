"""A job that no queue can ever start is refused with the numbers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[bytes]]

DOCUMENT = """{"version": 1, \
"resources": [{"type": "slot", "label": "s", "count": 1, "with": [{"type": "core", "count": 1}]}], \
"tasks": [{"command": ["true"], "slot": "s", "count": {"total": 1}}], \
"attributes": {"system": {"duration": %s}}}
"""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["run", "-x", "slurm", "--nodes", "5000", "--", "true"],
            (
                "--nodes: it asks for 5000 nodes and can never start; "
                "the queue main has 2, the queue debug has 2"
            ),
        ),
        (
            ["submit", "-x", "slurm", "--cores", "9", "--memory", "8G", "--", "true"],
            (
                "the job is not valid:\n  - "
                "--cores: it asks for 9 cores on one node and can never start; "
                "the queue main has 8, the queue debug has 8\n"
                "  - --memory: it asks for 8G on one node and can never start; the queue main has 8000M, "
                "the queue debug has 8000M"
            ),
        ),
        (
            ["submit", "-x", "slurm", "-n", "9", "--processes-per-node", "3", "--", "true"],
            (
                "--processes: it asks for 3 nodes and can never start; "
                "the queue main has 2, the queue debug has 2"
            ),
        ),
        (
            ["submit", "-x", "slurm", "-c", "2", "--mem-per-cpu", "5G", "--", "true"],
            (
                "--mem-per-cpu: it asks for 10G on one node and can never start; the queue main has 8000M, "
                "the queue debug has 8000M"
            ),
        ),
        (
            ["submit", "-x", "slurm", "--queue", "debug", "--time", "2d", "--", "true"],
            "--time: it asks for 2 days, 0:00:00 and can never start; the queue debug has 1:00:00",
        ),
        (
            ["submit", "-x", "slurm", "--queue", "debug", "--many", "jobs"],
            (
                "jobs, line 2 and 1 more: attributes.duration: it asks for 2 days, 0:00:00 and can never "
                "start; the queue debug has 1:00:00"
            ),
        ),
    ],
)
def test_a_job_that_can_never_start_is_refused_at_submission(
    run: Run, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    hour, days = (DOCUMENT % seconds for seconds in (3600, 172800))
    (tmp_path / "jobs").write_text(f"{hour}{days}{days}")
    done = run("fake", "slurm", "--", sys.executable, "-m", "jpsi_cli", *arguments)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"jpsi: {sentence}\n"


def test_validate_warns_of_a_queue_that_the_batch_system_does_not_list(run: Run, tmp_path: Path) -> None:
    document = DOCUMENT % '60, "jpsi": {"queue_name": "debgu"}'
    (tmp_path / "jobs").write_text(document * 2)

    arguments = ["validate", "-x", "slurm", "--many", "jobs"]
    done = run("fake", "slurm", "--", sys.executable, "-m", "jpsi_cli", *arguments)

    assert (done.returncode, done.stdout) == (0, b"jobs: valid\n")
    assert done.stderr.decode() == (
        "jpsi: warning: jobs, line 1 and 1 more: the queue debgu is none of those that slurm lists: "
        "main, debug; did you mean debug?\n"
    )


def test_jpsi_chooses_a_queue_and_explain_says_why(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "script"
    jpsi = [sys.executable, "-m", "jpsi_cli"]
    options = "-x slurm --name placed --queue auto --attribute slurm.hold"
    script.write_text(f'"$@" submit {options} --time 1h -- true && "$@" explain placed')

    done = run("fake", "slurm", "--", "sh", str(script), *jpsi)
    refused = run("fake", "slurm", "--", *jpsi, "submit", *options.split(), "-N", "5", "--", "true")

    assert "jpsi chose the queue debug: its limits are the smallest that suffice; main fits, too" in (
        done.stdout.decode()
    ), done.stderr
    assert (
        "--queue: no queue takes a job that asks for 5 nodes: main has 2 nodes, debug has 2 nodes"
    ) in " ".join(refused.stderr.decode().split())


def test_a_job_without_a_time_limit_gets_a_queue_without_one(run: Run) -> None:
    arguments = ["script", "-x", "slurm", "--queue", "auto", "--time", "0", "--", "true"]
    done = run("fake", "slurm", "--", sys.executable, "-m", "jpsi_cli", *arguments)

    assert b"#SBATCH --partition=main" in done.stdout, done.stderr


def test_the_configuration_has_the_preferred_queues(run: Run, environment: dict[str, str]) -> None:
    directory = Path(environment["XDG_CONFIG_HOME"], "jpsi")
    directory.mkdir()
    (directory / "config.yaml").write_text("executors: {slurm: {config: {queue_order: [main]}}}")

    arguments = ["script", "-x", "slurm", "--queue", "auto", "--", "true"]
    done = run("fake", "slurm", "--", sys.executable, "-m", "jpsi_cli", *arguments)

    assert b"#SBATCH --partition=main" in done.stdout, done.stderr


def test_a_time_limit_that_is_rounded_up_is_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("".join(DOCUMENT % seconds for seconds in (5, 60, 61, 5)))
    jpsi = ("fake", "slurm", "--", sys.executable, "-m", "jpsi_cli")
    sentence = "jpsi: slurm rounds the time limit 0:00:05 up to 0:01:00"

    one = run(*jpsi, "run", "-x", "slurm", "--time", "5", "--", "true")
    alone = run(*jpsi, "submit", "-x", "slurm", "--time", "5", "--", "true")
    many = run(*jpsi, "submit", "-x", "slurm", "--many", "jobs")
    exact = run(*jpsi, "submit", "-x", "slurm", "--time", "1m", "--", "true")
    local = run("submit", "-x", "local", "--time", "5.5", "--", "true")

    assert one.stderr.decode().startswith(f"{sentence}\n")
    assert (alone.returncode, alone.stderr.decode()) == (0, f"{sentence}\n")
    assert (many.returncode, many.stderr.decode()) == (0, f"{sentence}, and 1 more\n")
    assert (exact.stderr, local.stderr) == (b"", b"")


ATTRIBUTES = """
version: 1
resources: [{type: slot, label: s, count: 1, with: [{type: core, count: 1}]}]
tasks: [{command: ["true"], slot: s, count: {total: 1}}]
attributes:
  system:
    duration: 60
    jpsi:
      queue_name: long
      custom_attributes: {slurm.constraint: skylake, slurm.nice: 5, pbs.p: 1, script.path: s, ours.x: 1}
"""


@pytest.mark.parametrize("verb", [["run", "-f"], ["submit", "-f"], ["validate", "-x", "local", "-f"]])
def test_what_has_no_effect_on_this_machine_is_named_once(run: Run, tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "job.yaml").write_text(ATTRIBUTES)

    done = run(*verb, "job.yaml")

    named = "queue_name, slurm.constraint, slurm.nice and pbs.p"
    assert done.returncode == 0
    assert done.stderr.decode() == f"jpsi: warning: local is no batch system: {named} have no effect\n"


@pytest.mark.parametrize(
    ("count", "named"),
    [
        (6, "slurm.a1, slurm.a2, slurm.a3, slurm.a4, slurm.a5 and slurm.a6"),
        (7, "slurm.a1, slurm.a2, slurm.a3, slurm.a4, slurm.a5 and 2 more"),
    ],
)
def test_up_to_six_names_without_effect_are_listed(run: Run, count: int, named: str) -> None:
    options = [word for it in range(1, count + 1) for word in ("--attribute", f"slurm.a{it}=1")]

    done = run("run", *options, "--", "true")

    assert done.stderr.decode() == f"jpsi: warning: local is no batch system: {named} have no effect\n"


def test_options_without_effect_on_this_machine_are_named(run: Run) -> None:
    done = run("run", "--queue", "long", "--", "true")

    assert (done.returncode, done.stderr) == (
        0,
        b"jpsi: warning: local is no batch system: --queue has no effect\n",
    )


def test_a_batch_system_says_nothing_of_attributes_for_others(run: Run, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(ATTRIBUTES.replace("long", "main").replace("constraint", "comment"))

    done = run(
        "fake", "slurm", "--", sys.executable, "-m", "jpsi_cli", "run", "-x", "slurm", "-f", "job.yaml"
    )

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "command", [["run"], ["submit"], ["submit", "--array", "1-2"]], ids=["run", "submit", "array"]
)
def test_the_queues_are_named_if_the_batch_system_refuses_one(run: Run, command: list[str]) -> None:
    jpsi = ("fake", "slurm", "--", sys.executable, "-m", "jpsi_cli", *command, "-x", "slurm")

    done = run(*jpsi, "-p", "debgu", "--", "true")

    first, *others = done.stderr.decode().splitlines()
    assert done.returncode == 2
    assert first == (
        "jpsi: warning: the queue debgu is none of those that slurm lists: main, debug; did you mean debug?"
    )
    assert any("Invalid partition name" in it for it in others)
    assert b"none of those" not in run(*jpsi, "-p", "main", "--", "true").stderr
