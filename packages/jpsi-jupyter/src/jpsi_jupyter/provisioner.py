"""The kernel provisioner `jpsi`: what Jupyter asks of a process, of a job."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import secrets
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import KernelProvisionerBase
from traitlets import Dict, Float, Int, Unicode

import jpsi

from .connection import KernelConnection
from .kernel_launcher import ANNOUNCEMENT, FORM, KEY, PORTS

_INTERVAL = 0.1


class JpsiProvisioner(KernelProvisionerBase):
    """Runs a kernel as a job of an executor; the `config` of a kernel's description has its traits."""

    #: The executor or the configured target; None is the configured default, else `local`.
    executor = Unicode(None, allow_none=True, config=True)
    #: The host of the batch system, such as ssh://login.example.org.
    url = Unicode(None, allow_none=True, config=True)
    #: The interpreter on the nodes; empty is this one, or `python3` behind ssh.
    python = Unicode("", config=True)
    #: The cores of the job.
    cores = Int(1, config=True)
    #: The memory of the job, in GB.
    memory = Float(None, allow_none=True, config=True)
    #: The GPUs of the job.
    gpus = Int(None, allow_none=True, config=True)
    #: The walltime, such as 2h; empty is that of the target.
    duration = Unicode("", config=True)
    #: Further attributes of the job, as `jpsi.JobAttributes` has them, such as `queue_name`.
    attributes = Dict(config=True)
    #: The address that kernels listen on; empty is all of the node.
    ip = Unicode("", config=True)
    #: The seconds that a job may take to start, with its time in the queue.
    launch_timeout = Float(600, config=True)
    #: The seconds that a kernel runs on without its client.
    cull_timeout = Float(60, config=True)

    _job: jpsi.Job | None = None
    _connection: KernelConnection | None = None

    @functools.cached_property
    def _jobs(self) -> jpsi.JobExecutor:
        return jpsi.JobExecutor(self.executor, url=self.url)

    @property
    def has_process(self) -> bool:
        """True from the submission of the job until its end was awaited."""
        return self._job is not None

    async def poll(self) -> int | None:
        """Return the exit code of the kernel, or None while it runs; this queries nothing."""
        if self._job is None:
            return 0
        status = self._job.status
        return (status.exit_code or 0) if status.final else None

    async def wait(self) -> int | None:
        """Wait for the end of the kernel."""
        while (code := await self.poll()) is None:  # noqa: ASYNC110  Jupyter calls from several loops
            await asyncio.sleep(_INTERVAL)
        self._job = None
        return code

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel and its processes, by way of its launcher."""
        if self._connection is not None and await self.poll() is None:
            try:
                self._connection.send_signal(signum)
            except OSError as e:
                self.log.warning("the kernel did not get signal %d: %s", signum, e)

    async def kill(self, restart: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  Jupyter's
        """Cancel the job; the kernel gets SIGTERM first."""
        if self._job is not None:
            # in this thread, as Jupyter also ends kernels at the exit of Python, which starts no more threads
            try:
                self._jobs.cancel(self._job)
            except jpsi.JpsiError as e:
                self.log.warning("the kernel ends %.0f s after its connection: %s", self.cull_timeout, e)

    terminate = kill

    async def cleanup(self, restart: bool = False) -> None:  # noqa: FBT001, FBT002  Jupyter's
        """Close the connection, and cancel the job if it has not ended."""
        await self.kill(restart)
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401  Jupyter's
        """Return the command and the environment of the kernel."""
        command = [*self.kernel_spec.argv, *kwargs.pop("extra_arguments", [])]
        return await super().pre_launch(cmd=command, **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:  # noqa: ANN401  Jupyter's
        """Submit the job, wait until the kernel's launcher has announced its ports, and connect to it.

        Raises:
            JpsiError: the job cannot be submitted.
            RuntimeError: the job ended, or did not start in time, and was cancelled.
        """
        key = secrets.token_hex(32)
        spec = self._make_spec(cmd, kwargs["env"], key)
        is_local = self._jobs.files.are_local
        if is_local:
            spec.directory = Path(kwargs.get("cwd") or Path.cwd())
        elif not self.url:
            raise RuntimeError("the description of a kernel behind ssh needs the url")
        job = jpsi.Job(spec)
        job.set_job_status_callback(self._report_end)
        await asyncio.to_thread(self._jobs.submit, job)
        self._job = job
        try:
            announced = await self._wait_for_announcement(job)
            host = announced.pop("ip")
            way = host, announced, key, None if is_local else self.url
            self._connection = await asyncio.to_thread(KernelConnection, *way)
        except BaseException:
            await self.cleanup()
            self._job = None
            raise
        info = {**{name: self._connection.ports[name] for name in PORTS}, "ip": self._connection.host, **FORM}
        self.connection_info = cast("KernelConnectionInfo", {**info, "key": key.encode()})
        return self.connection_info

    def get_shutdown_wait_time(self, recommended: float = 5.0) -> float:
        """Return the seconds for a shutdown."""
        return max(recommended, 30)  # the job's end is known some seconds after the kernel's

    def _make_spec(self, command: list[str], environment: Mapping[str, str], key: str) -> jpsi.JobSpec:
        python = self.python or (sys.executable if self._jobs.files.are_local else "python3")
        if command[0] in {"python", "python3"}:
            command = [python, *command[1:]]
        command = [it.replace("{resource_dir}", self.kernel_spec.resource_dir) for it in command]
        ip = self.ip or ("127.0.0.1" if self._jobs.name == "local" else "")
        launcher = Path(__file__).with_name("kernel_launcher.py").read_text("utf-8")
        duration = jpsi.parse_duration(self.duration) if self.duration else None
        # the batch system brings the others, or another host has others
        changed = {name: it for name, it in environment.items() if os.environ.get(name) != it}
        return jpsi.JobSpec(
            python,
            [jpsi.escape(it) for it in ("-c", launcher, ip, str(self.cull_timeout), *command)],
            name="kernel",
            environment={KEY: key, **{name: jpsi.escape(it) for name, it in changed.items()}},
            resources=jpsi.ResourceSpecV1(
                cpu_cores_per_process=self.cores,
                gpu_cores_per_process=self.gpus,
                memory=None if self.memory is None else int(self.memory * 2**30),
            ),
            attributes=jpsi.JobAttributes(duration=duration, **self.attributes),
            launcher="single",
        )

    async def _wait_for_announcement(self, job: jpsi.Job) -> dict[str, Any]:
        deadline = time.monotonic() + self.launch_timeout
        while time.monotonic() < deadline:
            # first, as the job may end between the two
            status = job.status
            line, end, _ = (await asyncio.to_thread(_read, job, "stdout")).partition("\n")
            if end and line.startswith(ANNOUNCEMENT):
                announced: dict[str, Any] = json.loads(line.removeprefix(ANNOUNCEMENT))
                return announced
            if status.final:
                raise RuntimeError(f"{_describe(job)}\n{await asyncio.to_thread(_read, job, 'stderr')}")
            await asyncio.sleep(_INTERVAL)
        seconds = f"{self.launch_timeout:.0f} s"
        raise RuntimeError(f"the job of the kernel did not start in {seconds}: {_describe(job)}")

    def _report_end(self, job: jpsi.Job, status: jpsi.JobStatus) -> None:
        if status.state is jpsi.JobState.FAILED:
            self.log.warning("%s", _describe(job))


def _describe(job: jpsi.Job) -> str:
    return f"the job of the kernel is {job.status}. More: jpsi explain {job.id}"


def _read(job: jpsi.Job, stream: Any) -> str:  # noqa: ANN401  a stream of jpsi
    output = job.output(stream)
    part = None if output is None or job.status.state is jpsi.JobState.QUEUED else output.read()
    return "" if part is None else part.data.decode(errors="replace")
