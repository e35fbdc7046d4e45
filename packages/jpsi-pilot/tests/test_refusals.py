"""The submissions that an agent refuses, and the messages about pilots that do not start."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState
from jpsi.plugin import Site
from jpsi_pilot import client
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.executor.commands import version
from jpsi_pilot.executor.requirements import pilot_settings
from jpsi_pilot.protocol.values import Need
from jpsi_testing.waiting import eventually
from pilot_support import end_agent, send_request


@pytest.fixture
def work_directory(tmp_path: Path) -> Iterator[Path]:
    """Yield a work directory; end its agent after the test."""
    yield tmp_path / "work"
    end_agent(tmp_path / "work" / "pilots")


def pilots(work_directory: Path, **settings: Any) -> JobExecutor:
    """Return an executor with such pilots."""
    return JobExecutor.get_instance("pilot", config=PilotConfig(work_directory=work_directory, **settings))


def test_submit_fails_if_the_engine_is_not_installed(work_directory: Path) -> None:
    job = Job(JobSpec("/bin/true"))

    with (
        pilots(work_directory, engine="abacus") as executor,
        pytest.raises(jpsi.InvalidJobException, match="abacus"),
    ):
        executor.submit(job)

    assert job.status.state is JobState.NEW


@pytest.mark.parametrize(
    ("settings", "is_usable", "output"),
    [
        ({"engine": "dask"}, True, r"jpsi-pilot [0-9].*, engine dask\n"),
        ({"engine": "abacus"}, False, "no pilot engine 'abacus'; installed: dask, flux\n"),
        ({"engine": "dask", "python": None}, False, ".*No module named 'jpsi_pilot'.*\n"),
    ],
    ids=["usable", "unknown", "another Python"],
)
def test_the_version_names_the_engine_or_why_it_cannot_be_used(
    settings: dict[str, Any], is_usable: bool, output: str, tmp_path: Path
) -> None:
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S "$@"\n')
    (tmp_path / "python").chmod(0o755)
    settings = {name: it or str(tmp_path / "python") for name, it in settings.items()}
    command = version(Site(config=PilotConfig(**settings)))

    done = subprocess.run(command.argv, input=command.stdin, capture_output=True, text=True, check=False)

    assert (done.returncode == 0) is is_usable
    assert re.fullmatch(output, done.stdout + done.stderr)


@pytest.mark.parametrize("has_launcher", [False, True])
def test_a_job_of_several_nodes_names_the_launcher_that_dask_does_not_have(
    work_directory: Path, *, has_launcher: bool
) -> None:
    """No launcher that could start it is installed with this package."""
    config = PilotConfig(work_directory=work_directory, engine="dask", nodes_per_pilot=2)
    request = {
        "tag": "a-tag",
        "script": "true",
        "elements": None,
        "at_a_time": None,
        "need": Need(nodes=2, seconds=60).to_dict(),
        "settings": pilot_settings(config).to_dict(),
        "retry": False,
        "has_launcher": has_launcher,
    }

    if has_launcher:
        assert send_request(work_directory / "pilots", "submit", **request)["id"]
    else:
        with pytest.raises(subprocess.CalledProcessError) as raised:
            send_request(work_directory / "pilots", "submit", **request)
        assert raised.value.returncode == client.REFUSED


def test_submit_fails_if_the_network_interface_does_not_exist(work_directory: Path) -> None:
    job = Job(JobSpec("/bin/true"))

    with (
        pilots(work_directory, interface="carrier-pigeon0") as executor,
        pytest.raises(jpsi.SubmitException, match="carrier-pigeon0"),
    ):
        executor.submit(job)

    assert job.status.state is JobState.NEW


def test_waiting_jobs_report_why_pilots_do_not_start(work_directory: Path) -> None:
    quick = timedelta(seconds=0.1)
    with pilots(
        work_directory, launcher="nowhere", shortest_interval=quick, longest_interval=quick
    ) as executor:
        job = Job(JobSpec("/bin/true"))
        executor.submit(job)

        def message() -> str:
            message = executor.info(job)
            return "" if message is None else message.message or ""

        assert eventually(lambda: bool(message()))
        assert "no launcher 'nowhere'" in message()
        job.cancel()
        status = job.wait(60)
        assert status is not None
        assert status.state is JobState.CANCELED


_TARGETS = """\
targets:
  inner: {executor: pilot}
  remote: {executor: local, url: ssh://login.example}
"""


@pytest.mark.parametrize(
    ("target", "error", "why"),
    [
        ("nowhere", jpsi.PluginError, "the target of pilots: no executor 'nowhere'"),
        ("pilot", jpsi.ConfigError, "runs jobs in pilots itself"),
        ("inner", jpsi.ConfigError, "runs jobs in pilots itself"),
        ("remote", jpsi.ConfigError, "set url=ssh://login.example for the executor pilot itself"),
    ],
)
def test_a_target_in_which_no_pilot_can_start_is_refused_at_creation(
    work_directory: Path, tmp_path: Path, target: str, error: type[Exception], why: str
) -> None:
    folder = tmp_path / "config" / "jpsi"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(_TARGETS)

    with pytest.raises(error, match=why):
        pilots(work_directory, target=target)


def test_on_another_machine_a_python_must_be_named(work_directory: Path) -> None:
    with pytest.raises(jpsi.ConfigError, match="must name, as `python`"):
        JobExecutor.get_instance("pilot", url="remote:///", config=PilotConfig(work_directory=work_directory))


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755], ids=oct)
def test_an_agents_folder_that_others_can_use_is_refused(work_directory: Path, mode: int) -> None:
    (work_directory / "pilots").mkdir(parents=True)
    (work_directory / "pilots").chmod(mode)

    with (
        pilots(work_directory) as executor,
        pytest.raises(jpsi.SubmitException, match="other users have access to it"),
    ):
        executor.submit(Job(JobSpec("/bin/true")))
