"""The command `jpsi doctor`, on this machine and on fake batch systems, some of them faulty."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jpsi_testing import PluginDirectory
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, on_path

Run = Callable[..., subprocess.CompletedProcess[bytes]]

_QUICK = {"shortest_interval": 0.2, "longest_interval": 0.5, "grace": 1, "network_files": False}


class Doctor:
    """The command, with a fake batch system that the test can break."""

    def __init__(self, run: Run, environment: dict[str, str], tmp_path: Path) -> None:
        self._run, self._environment = run, environment
        self._config = tmp_path / "jpsi.yaml"
        #: The configuration of the executor.
        self.config: dict[str, Any] = dict(_QUICK)

    def __call__(
        self, *arguments: str, executor: str = "slurm", path: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Run the command; return its exit code and the check results."""
        self._config.write_text(json.dumps({"executors": {"slurm": {"config": self.config}}}))
        environment = {
            **self._environment,
            "JPSI_CONFIG": str(self._config),
            "PATH": os.environ["PATH"] if path is None else path,
        }
        done = self._run("doctor", "-x", executor, "--json", *arguments, env=environment)
        assert b"Traceback" not in done.stderr
        content: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, content


@pytest.fixture
def doctor(run: Run, environment: dict[str, str], tmp_path: Path) -> Doctor:
    return Doctor(run, environment, tmp_path)


def _verdicts(content: dict[str, Any]) -> dict[str, str]:
    return {it["name"]: it["verdict"] for it in content["checks"]}


def _message(content: dict[str, Any], name: str) -> str:
    return next(str(it["message"]) for it in content["checks"] if it["name"] == name)


def test_doctor_finds_this_machine_sound(run: Run) -> None:
    done = run("doctor", "-x", "local")

    assert done.returncode == 0, done.stderr
    assert f"it ran on {os.uname().nodename}" in done.stdout.decode()
    assert b"WRONG" not in done.stdout


def test_the_jobs_of_doctor_are_in_no_list(run: Run) -> None:
    run("doctor", "-x", "local")
    job_id = run("submit", "--name", "mine", "--", "true").stdout.decode().strip()

    assert run("ls", "--all", "--ids").stdout.decode().split() == [job_id]


def test_the_executor_whose_commands_these_are_is_named(doctor: Doctor) -> None:
    """Both PBS and Grid Engine have a qstat."""
    with FakeScheduler() as fake, on_path("gridengine", fake):
        code, content = doctor(executor="pbs")

    assert (code, _verdicts(content)["answer"]) == (1, "wrong")
    assert _message(content, "answer").endswith("; gridengine answers: try jpsi doctor -x gridengine")


@pytest.mark.usefixtures("remote_hosts")
def test_config_check_connects_as_a_job_would(run: Run) -> None:
    done = run("config", "check")

    assert (done.returncode, done.stdout) == (1, b"big: can be used\n")
    assert done.stderr == b"jpsi: lost: login1 cannot be reached: Connection refused\n"


@pytest.mark.parametrize("system", ["slurm", "pbs", "torque", "lsf", "gridengine", "flux", "oar"])
def test_doctor_finds_every_fake_sound(run: Run, system: str) -> None:
    done = run("fake", system, "--", "jpsi", "doctor", "-x", system, "--json")

    content = json.loads(done.stdout)
    assert (done.returncode, content["healthy"]) == (0, True), content
    assert content["configuration"] == {}
    verdicts = _verdicts(content)
    assert {verdicts[name] for name in ("commands", "version", "answer", "job")} == {"ok"}
    # no command of OAR's users lists queues
    assert verdicts["queues"] == ("warning" if system == "oar" else "ok")
    assert verdicts["work directory"] == "ok"


_REMOTE_TRANSPORT = """
import subprocess
from jpsi.plugin import CommandResult, TransportError, hookimpl

class FakeTransport:
    is_local = False

    def __init__(self, is_lost):
        self.is_lost = is_lost

    def run(self, command, keep=None, ready=None):
        if self.is_lost:
            raise TransportError("login1 cannot be reached: Connection refused", transient=True)
        if ready is not None:
            ready()
        done = subprocess.run(command.argv, input=command.stdin or "", capture_output=True, text=True)
        return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def close(self):
        pass

@hookimpl
def open_transport(url):
    return FakeTransport(url == "remote://lost")
"""


@pytest.fixture
def remote_hosts(tmp_path: Path, environment: dict[str, str]) -> None:
    """Install transports to this machine under another name, and to no host."""
    environment |= {"JPSI_PLUGIN_PATH": str(tmp_path / "plugins"), "JPSI_CONFIG": str(tmp_path / "jpsi.yaml")}
    PluginDirectory(tmp_path / "plugins").add(
        "remote_hosts",
        entry_points={"jpsi.transports": {"remote": "remote_transport"}},
        files={"remote_transport.py": _REMOTE_TRANSPORT},
    )
    (tmp_path / "jpsi.yaml").write_text(
        "targets: {lost: {executor: local, url: 'remote://lost'}, big: {executor: local, url: 'remote://big'}}\n"
    )


@pytest.mark.usefixtures("remote_hosts")
def test_an_unreachable_host_is_one_sentence_and_submits_no_probe(run: Run) -> None:
    done = run("doctor", "-x", "lost", "--json")

    content = json.loads(done.stdout)
    assert (done.returncode, content["healthy"]) == (1, False)
    assert _message(content, "connection") == "login1 cannot be reached: Connection refused"
    assert set(_verdicts(content).values()) == {"wrong", "skipped"}


@pytest.mark.usefixtures("remote_hosts")
def test_doctor_finds_a_reachable_host_sound(run: Run) -> None:
    done = run("doctor", "-x", "big", "--json")

    content = json.loads(done.stdout)
    assert done.returncode == 0, content
    assert _message(content, "connection") == f"commands run on {os.uname().nodename}"
    assert _verdicts(content)["job"] == "ok"


def test_commands_that_are_missing(doctor: Doctor) -> None:
    code, content = doctor(path="/nonexistent")

    assert (code, content["healthy"]) == (1, False)
    assert "sbatch, squeue, scancel, sacct, scontrol are not on PATH" in _message(content, "commands")
    assert _verdicts(content)["job"] == "skipped"


def test_a_scheduler_that_is_down(doctor: Doctor) -> None:
    with FakeScheduler() as scheduler, on_path("slurm", scheduler):
        scheduler.faults.down()

        code, content = doctor()

    assert code == 1
    verdicts = _verdicts(content)
    assert (verdicts["commands"], verdicts["answer"], verdicts["queues"]) == ("ok", "wrong", "warning")
    assert verdicts["job"] == "skipped"
    assert "Unable to contact slurm controller" in _message(content, "answer")


def test_a_work_directory_that_the_node_does_not_have(doctor: Doctor) -> None:
    """A path relative to each process's current directory."""
    doctor.config["work_directory"] = "/proc/self/cwd/work"
    with FakeScheduler() as scheduler, on_path("slurm", scheduler):
        code, content = doctor()

    assert code == 1
    assert _verdicts(content)["work directory"] == "wrong"
    assert content["configuration"] == {
        "executors": {"slurm": {"config": {"work_directory": "/a/directory/that/all/nodes/see"}}}
    }


def test_a_site_without_accounting(doctor: Doctor) -> None:
    with FakeScheduler(accounting=False) as scheduler, on_path("slurm", scheduler):
        code, content = doctor()

    assert code == 0
    assert _verdicts(content)["accounting"] == "warning"


def test_a_job_that_waits_too_long_is_cancelled(doctor: Doctor) -> None:
    with FakeScheduler(slots=1) as scheduler, on_path("slurm", scheduler):
        blocking = FakeJob("900", script="#!/bin/sh\nexec sleep 600\n")
        scheduler.submit(blocking)

        code, content = doctor("--wait", "1")

        others = [job for job in scheduler.jobs if job is not blocking]
        assert scheduler.wait_for(lambda: all(job.state is FakeState.CANCELLED for job in others))

    assert code == 0
    match = re.search(r"not ended after (\d+) s, and jpsi cancelled it", _message(content, "job"))
    # on a busy machine a second is a while
    assert match is not None
    assert 1 <= int(match[1]) < 60


def test_an_option_prevents_the_probe_job(doctor: Doctor) -> None:
    with FakeScheduler() as scheduler, on_path("slurm", scheduler):
        code, content = doctor("--no-job")

        assert scheduler.jobs == []

    assert code == 0
    assert _verdicts(content)["job"] == "skipped"


def test_a_refused_job_is_wrong(doctor: Doctor) -> None:
    with FakeScheduler() as scheduler, on_path("slurm", scheduler):
        scheduler.faults.fail("sbatch", None, stderr="sbatch: error: Invalid account\n")

        code, content = doctor("--wait", "1")

    assert code == 1
    assert "Invalid account" in _message(content, "job")


def test_advice_has_the_form_of_a_configuration_file(
    run: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "jpsi.yaml"
    config.write_text(json.dumps({"executors": {"lsf": {"config": {"default_duration": "2d"}}}}))
    variables = {**environment, "JPSI_CONFIG": str(config)}

    done = run("fake", "lsf", "--", "jpsi", "doctor", "-x", "lsf", "--no-job", env=variables)

    assert done.returncode == 0
    assert done.stdout.decode().endswith(
        "\nPut this into the configuration:\n\n"
        "  executors:\n    lsf:\n      config:\n        default_duration: 86400\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-x", "nope"], 2, b"no executor 'nope'"),
        (["--wait", "soon"], 2, b"--wait: 'soon' is not a time"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(
    run: Run, arguments: list[str], code: int, message: bytes
) -> None:
    done = run("doctor", *arguments)

    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr
