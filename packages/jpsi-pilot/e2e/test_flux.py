"""Pilots that are instances of the Flux on PATH."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from jpsi import JobAttributes, JobExecutor, JobState, Reason, ResourceSpecV1
from jpsi.plugin import ExecutorConfig
from jpsi_pilot import hooks
from jpsi_pilot.config import PilotConfig
from jpsi_testing import ExecutorConformance
from jpsi_testing.conformance.base import Gate, Sign, shell
from jpsi_testing.waiting import eventually
from pilot_losses import LossTests, pytest_generate_tests, terminate_pilot  # noqa: F401  pytest calls it
from pilot_support import PATIENCE, end_agent, final_status, is_alive, processes, running_job

NODE = "jpsi_pilot.flux.node"
_TARGET = """\
targets:
  wide:
    executor: flux
    config:
      uri: {uri}
      work_directory: {folder}
"""


@pytest.fixture(scope="module", autouse=True)
def _flux() -> None:
    if shutil.which("flux") is None:
        pytest.skip("there is no flux on PATH")


def pilots(work_directory: Path, **changes: Any) -> PilotConfig:
    """Return a configuration whose pilots are instances of Flux on this machine."""
    quick = {
        "kill_delay": timedelta(seconds=0.5),
        "shortest_interval": timedelta(seconds=0.1),
        "longest_interval": timedelta(seconds=0.3),
        "grace": timedelta(seconds=1),
        "idle_time": timedelta(seconds=30),
    }
    return PilotConfig(work_directory=work_directory, engine="flux", **(quick | changes))


class TestPilotsOfFlux(ExecutorConformance):
    executor_name = "pilot"
    config_class = PilotConfig
    plugin = hooks
    unknown_id = "aaaaaaaa-999999"
    # an agent gives its jobs no names
    ignored_attributes = ("name",)
    timeout_seconds = 240.0

    @pytest.fixture
    def config(self, work_directory: Path) -> Iterator[ExecutorConfig]:
        yield pilots(work_directory, cores_per_node=8)
        end_agent(work_directory / "pilots")


@pytest.fixture
def config(tmp_path: Path) -> Iterator[PilotConfig]:
    """Return a configuration with pilots of two cores."""
    yield pilots(tmp_path / "work", cores_per_node=2)
    end_agent(tmp_path / "work" / "pilots")


@pytest.fixture
def folder(config: PilotConfig) -> Path:
    """Return the agent's folder."""
    assert config.work_directory is not None
    return config.work_directory / "pilots"


@pytest.fixture
def executor(config: PilotConfig) -> Iterator[JobExecutor]:
    """Yield an executor with these pilots."""
    with JobExecutor.get_instance("pilot", config=config) as executor:
        yield executor


def kill_node(folder: Path) -> None:
    (node,) = processes(folder, NODE)
    node.kill()


def kill_broker(folder: Path) -> None:
    (node,) = processes(folder, NODE)
    for child in node.children():
        # commands that end meanwhile are no brokers
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(child.pid) == child.pid:
                child.kill()


class TestLossesOfFlux(LossTests):
    losses = (kill_node, kill_broker, terminate_pilot)


def test_a_job_is_ended_at_its_time_limit(executor: JobExecutor) -> None:
    job = running_job(executor, shell("sleep 1000", attributes=JobAttributes(duration=timedelta(seconds=1))))

    status = final_status(job)

    assert (status.state, status.reason) == (JobState.FAILED, Reason.TIMEOUT)


@contextlib.contextmanager
def two_brokers() -> Iterator[str]:
    """Yield the address of a Flux of two nodes, both on this machine."""
    words = ["flux", "start", "--test-size=2", "sh", "-c", 'echo "$FLUX_URI"; exec cat']
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flux:
        assert flux.stdin is not None
        assert flux.stdout is not None
        try:
            yield flux.stdout.readline().strip()
        finally:
            # its initial program ends with its input, and the instance with its program
            flux.stdin.close()
            flux.wait(PATIENCE)


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobExecutor]:
    """Yield an executor with pilots of two nodes, which are jobs of another Flux."""
    with two_brokers() as uri:
        text = _TARGET.format(uri=uri, folder=tmp_path / "flux")
        (tmp_path / "targets.yaml").write_text(text)
        monkeypatch.setenv("JPSI_CONFIG", str(tmp_path / "targets.yaml"))
        config = pilots(tmp_path / "work", target="wide", nodes_per_pilot=2, cores_per_node=2)
        with JobExecutor.get_instance("pilot", config=config) as executor:
            yield executor
        end_agent(tmp_path / "work" / "pilots")


def test_the_processes_of_a_job_are_on_several_nodes_beside_jobs_of_one(
    wide: JobExecutor, tmp_path: Path
) -> None:
    output, gate = tmp_path / "out", Gate(tmp_path / "gate")
    text = (
        f'echo "$FLUX_TASK_RANK $(flux getattr rank) $(wc -l <"$JPSI_NODEFILE")" >>"$2"; {Gate.WAIT}; exit 5'
    )
    spread = ResourceSpecV1(node_count=2, processes_per_node=1)
    job = running_job(wide, shell(text, gate.path, output, resources=spread))
    others = [running_job(wide, gate.job(6)) for _ in range(2)]
    info = wide.info(job)
    # a failed process ends the others
    assert eventually(lambda: output.exists() and output.read_text().count("\n") == 2, PATIENCE)
    gate.open()

    assert [final_status(it).exit_code for it in (job, *others)] == [5, 6, 6]
    assert sorted(output.read_text().splitlines()) == ["0 0 2", "1 1 2"]
    assert info is not None
    assert len(info.nodes) == 2


def test_a_job_of_several_nodes_is_cancelled_on_all_of_them(wide: JobExecutor, tmp_path: Path) -> None:
    signs = [Sign(tmp_path / f"sign {rank}") for rank in range(2)]
    text = 'echo $$ >"$1/pid $FLUX_TASK_RANK"; echo >"$1/sign $FLUX_TASK_RANK"; exec sleep 1000'
    spread = ResourceSpecV1(node_count=2, processes_per_node=1)
    job = running_job(wide, shell(text, tmp_path, resources=spread))
    assert all(sign.wait(PATIENCE) for sign in signs)

    job.cancel()

    assert final_status(job).state is JobState.CANCELED
    assert not [rank for rank in range(2) if is_alive(int((tmp_path / f"pid {rank}").read_text()))]
