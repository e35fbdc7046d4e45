"""Kernels on this machine and on a fake Slurm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

import jpsi
from fake_ssh import FakeSsh
from jpsi.plugin import line
from jpsi_engine import job_store
from jpsi_jupyter import JpsiProvisioner
from jpsi_testing.fake import on_path

_PATIENCE = 120
_KERNEL = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]


def _describe_kernel(argv: list[str], **config: Any) -> None:
    """Write the description of a kernel `here`."""
    folder = Path.home() / "jupyter/kernels/here"
    folder.mkdir(parents=True)
    provisioner = {"provisioner_name": "jpsi", "config": config}
    described = {"argv": argv, "display_name": "here", "language": "python"}
    (folder / "kernel.json").write_text(
        json.dumps(
            {**described, "env": {"ANSWER": "4${X}2"}, "metadata": {"kernel_provisioner": provisioner}}
        )
    )


@pytest.fixture(autouse=True)
def _slurm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(Path.home() / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(Path.home() / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(Path.home() / "ipython"))
    with on_path("slurm"):
        yield


@pytest.fixture(params=["local", "slurm"])
def manager(request: pytest.FixtureRequest) -> Iterator[KernelManager]:
    """A manager whose kernel runs on this machine, then on a fake Slurm."""
    _describe_kernel(_KERNEL, executor=request.param)
    manager = KernelManager(kernel_name="here")
    manager.start_kernel()
    yield manager
    manager.shutdown_kernel(now=True)


def _evaluate(manager: KernelManager, expression: str) -> str:
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=_PATIENCE)
        reply = client.execute_interactive(
            "", user_expressions={"it": expression}, timeout=_PATIENCE, allow_stdin=False
        )
        return str(reply["content"]["user_expressions"]["it"]["data"]["text/plain"])
    finally:
        client.stop_channels()


def _last_job() -> jpsi.Job:
    stored = max(job_store.jobs(), key=lambda it: it.submitted)
    (job,) = jpsi.JobExecutor(stored.origin.name).recall([stored.id])
    return job


def test_a_kernel_is_a_job_that_runs_restarts_and_shuts_down(manager: KernelManager) -> None:
    first = _last_job()
    mode = "oct(__import__('os').stat(__import__('ipykernel').get_connection_file()).st_mode & 0o777)"

    assert _evaluate(manager, "__import__('os').environ['ANSWER']") == "'4${X}2'"
    assert _evaluate(manager, mode) == "'0o600'"
    assert _evaluate(manager, "'JPSI_KERNEL_KEY' in __import__('os').environ") == "False"

    manager.restart_kernel()

    assert first.wait().final
    assert _evaluate(manager, "6 * 7") == "42"
    second = _last_job()
    assert second.id != first.id

    manager.shutdown_kernel()

    assert second.wait().state is jpsi.JobState.COMPLETED
    assert not manager.is_alive()


def test_an_interrupt_reaches_the_kernel(manager: KernelManager) -> None:
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=_PATIENCE)
    request = client.execute("print('started', flush=True); import time; time.sleep(1000)")
    while client.get_iopub_msg(timeout=_PATIENCE)["msg_type"] != "stream":
        pass

    manager.interrupt_kernel()

    while (reply := client.get_shell_msg(timeout=_PATIENCE))["parent_header"]["msg_id"] != request:
        pass
    client.stop_channels()
    assert reply["content"]["ename"] == "KeyboardInterrupt"


def test_a_kernel_that_is_killed_is_the_end_of_its_job(manager: KernelManager) -> None:
    job = _last_job()

    manager.shutdown_kernel(now=True)

    # Jupyter interrupts it before, which may end it first
    assert job.wait().state is not jpsi.JobState.COMPLETED
    assert not manager.is_alive()


_CLIENT = """
import sys, time
from jupyter_client.manager import KernelManager
manager = KernelManager(kernel_name="here")
manager.start_kernel()
print("started", flush=True)
time.sleep(1000)
"""


def test_a_kernel_ends_when_its_client_was_killed() -> None:
    _describe_kernel(_KERNEL, executor="local", cull_timeout=1)
    client = subprocess.Popen([sys.executable, "-c", _CLIENT], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "started\n"
    job = _last_job()

    os.kill(client.pid, signal.SIGKILL)
    client.communicate()

    assert job.wait().final
    output = job.output("stderr")
    assert output is not None
    part = output.read()
    assert part is not None
    assert b"no client for 1 s: the kernel ends" in part.data


# Forwards ports as `ssh -N -L` does.
_FORWARDS = """
import asyncio, re, sys

async def copy(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()

async def forward(here, host, there):
    async def relay(reader, writer):
        node_reader, node_writer = await asyncio.open_connection(host, there)
        await asyncio.gather(copy(reader, node_writer), copy(node_reader, writer))
    return await asyncio.start_server(relay, "127.0.0.1", here)

async def main():
    ways = re.findall(r"127.0.0.1:(\\d+):\\[(.+?)\\]:(\\d+)", " ".join(sys.argv))
    servers = [await forward(int(here), host, int(there)) for here, host, there in ways]
    await servers[0].serve_forever()

asyncio.run(main())
"""


@pytest.fixture
def _ssh(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host behind `ssh://cluster`, which has the fake Slurm."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("jpsi_ssh.transport._connections", weakref.WeakValueDictionary())
    ssh = FakeSsh(tmp_path_factory.mktemp("ssh"))
    monkeypatch.setenv("PATH", str(ssh.folder), prepend=":")
    home = tmp_path / "there"
    home.mkdir()
    ssh.login(f"cd {line(str(home))}; HOME=$PWD; unset XDG_STATE_HOME; umask 002\n")
    program = ssh.folder / "ssh"
    commands = program.rename(ssh.folder / "ssh-commands")
    forwards = ssh.folder / "forwards.py"
    forwards.write_text(_FORWARDS)
    program.write_text(
        f'#!/bin/sh\ncase " $* " in *" -L "*) exec {line(sys.executable, str(forwards))} "$@" ;; esac\n'
        f'exec {line(str(commands))} "$@"\n'
    )
    program.chmod(0o755)


@pytest.mark.usefixtures("_ssh")
def test_a_kernel_behind_ssh_is_reached_through_a_tunnel_that_ends_with_it() -> None:
    _describe_kernel(_KERNEL, executor="slurm", url="ssh://cluster", python=sys.executable)
    manager = KernelManager(kernel_name="here")
    manager.start_kernel()
    provisioner = manager.provisioner
    assert isinstance(provisioner, JpsiProvisioner)
    assert provisioner._connection is not None
    tunnel = provisioner._connection._tunnel
    assert tunnel is not None
    assert tunnel.poll() is None

    assert _evaluate(manager, "6 * 7") == "42"
    assert manager.get_connection_info()["ip"] == "127.0.0.1"
    manager.shutdown_kernel()

    assert tunnel.poll() is not None
    assert not manager.is_alive()


def test_a_kernel_that_cannot_start_is_an_error_with_its_own_words() -> None:
    _describe_kernel(["/no/such/program"], executor="local", python="/bin/false")

    with pytest.raises(RuntimeError, match=r"the executable returned exit code 1\. More: jpsi explain"):
        KernelManager(kernel_name="here").start_kernel()


def test_a_job_that_does_not_start_in_time_is_cancelled() -> None:
    _describe_kernel(_KERNEL, executor="local", launch_timeout=0)

    with pytest.raises(RuntimeError, match="did not start in 0 s"):
        KernelManager(kernel_name="here").start_kernel()

    assert _last_job().wait().state is jpsi.JobState.CANCELED


def test_what_a_kernel_requests_is_what_jpsi_calls_it() -> None:
    provisioner = JpsiProvisioner(
        executor="local",
        kernel_spec=KernelSpec(argv=[], resource_dir="/kernels/x"),
        python="/opt/python",
        attributes={"queue_name": "long"},
        duration="2h",
        cores=4,
        memory=2,
        gpus=1,
    )
    environment = {**os.environ, "NEW": "${HOME}"}

    spec = provisioner._make_spec(["python", "{resource_dir}/x", "{connection_file}"], environment, "k")

    assert spec.executable == "/opt/python"
    assert (spec.arguments or [])[2:] == [
        *("127.0.0.1", "60.0", "/opt/python", "/kernels/x/x", "{connection_file}")
    ]
    assert spec.environment == {"NEW": "$${HOME}", "JPSI_KERNEL_KEY": "k"}
    assert spec.resources == jpsi.ResourceSpecV1(
        cpu_cores_per_process=4, gpu_cores_per_process=1, memory=2 * 2**30
    )
    assert spec.attributes.queue_name == "long"
