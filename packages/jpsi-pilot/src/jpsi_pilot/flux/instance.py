"""A node's part of a Flux instance: its broker, which finds those of the other nodes through the launcher."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from asyncio.subprocess import DEVNULL, PIPE, Process, create_subprocess_exec
from pathlib import Path
from typing import Any, Self

import attrs

_SOCKET = "flux"
#: The broker's own directory in the scratch directory; by default Flux makes one in TMPDIR.
RUN_DIRECTORY = "run"
# flux-uptime(1): 09:30:51 run 29s,  owner tester,  depth 0,  size 1
_UPTIME = re.compile(r"\S+ +run .*\bsize ([0-9]+)$")
# A flux command itself looks for a broker for half a second.
_POLL_INTERVAL = 0.1
# RFC 23: a duration of 0 does not mean "at once".
_MIN_KILL_DELAY = 0.1


@attrs.frozen(slots=True, kw_only=True)
class Shape:
    """The nodes, cores and GPUs of an instance."""

    nodes: int
    cores: int
    gpus: int
    #: The time between SIGTERM and SIGKILL for a job, in seconds.
    kill_delay: float

    @property
    def resources(self) -> dict[str, Any]:
        """The resources of each broker, by RFC 20: those requested, not those that Flux detects."""
        numbers = {"core": self.cores, "gpu": self.gpus}
        children = {name: _render_idset(count) for name, count in numbers.items() if count}
        nodes = [{"rank": _render_idset(self.nodes), "children": children}]
        return {"version": 1, "execution": {"R_lite": nodes, "starttime": 0, "expiration": 0}}

    def configuration(self, resources: Path) -> str:
        """Return the broker's configuration, flux-config(5), in TOML; its basic strings are those of JSON."""
        return (
            f"[resource]\npath = {json.dumps(str(resources))}\nnoverify = true\n"
            f'[exec]\nkill-timeout = "{max(self.kill_delay, _MIN_KILL_DELAY)}s"\n'
        )


def _render_idset(count: int) -> str:
    """Return the first `count` numbers, from 0 on, in the form of RFC 22."""
    return "0" if count == 1 else f"0-{count - 1}"


@attrs.frozen(slots=True, kw_only=True)
class InstanceStatus:
    """An instance that is up, as one of its brokers sees it."""

    rank: int
    size: int

    @classmethod
    def parse(cls, uptime: str, rank: str) -> Self | None:
        """Parse the output of `flux uptime` and `flux getattr rank`; None if the instance is not up."""
        match = _UPTIME.match(uptime.strip())
        if match is None or not rank.strip().isdecimal():
            return None
        return cls(rank=int(rank), size=int(match[1]))


@attrs.frozen(slots=True, kw_only=True)
class Instance:
    """The broker on this node; the instance ends with its first broker."""

    _broker: Process
    #: The address for submissions, as in FLUX_URI.
    uri: str

    @classmethod
    async def start(cls, shape: Shape, scratch: Path) -> Self:
        """Start the broker.

        Args:
            shape: the resources of the whole instance.
            scratch: a private directory on this node.

        Raises:
            OSError: there is no Flux.
        """
        resources, configuration = scratch / "R", scratch / "flux.toml"
        resources.write_text(json.dumps(shape.resources), encoding="utf-8")
        configuration.write_text(shape.configuration(resources), encoding="utf-8")
        run_directory = scratch / RUN_DIRECTORY
        run_directory.mkdir(mode=0o700)
        uri = f"local://{scratch / _SOCKET}"
        # The instance has no initial program: it runs until `terminate`.
        options = (
            f"-Slocal-uri={uri},-Srundir={run_directory},-Sbroker.rc2_none=1,--config-path={configuration}"
        )
        # The session holds all that Flux starts on this node. Open files stay as the launcher passed them, as
        # brokers may find each other by one of them.
        broker = await create_subprocess_exec(
            "flux", "start", f"-o,{options}", stdin=DEVNULL, start_new_session=True, close_fds=False
        )
        return cls(broker=broker, uri=uri)

    @property
    def pid(self) -> int:
        """The broker's process, which leads the session of all that Flux starts on this node."""
        return self._broker.pid

    async def wait_until_up(self) -> InstanceStatus:
        """Wait until the instance takes jobs; for ever if it never does."""
        while True:
            status = InstanceStatus.parse(
                await self._run_flux("uptime"), await self._run_flux("getattr", "rank")
            )
            if status is not None:
                return status
            # Flux sends no event when an instance comes up
            await asyncio.sleep(_POLL_INTERVAL)

    async def _run_flux(self, *words: str) -> str:
        """Return the output of a flux command."""
        environment = {**os.environ, "FLUX_URI": self.uri}
        process = await create_subprocess_exec(
            "flux", *words, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise
        return output.decode(errors="replace")

    async def wait(self) -> int:
        """Wait for the end of the broker; return its exit code."""
        return await self._broker.wait()

    def terminate(self) -> None:
        """Send SIGTERM to the broker.

        If it is the first one, the whole instance ends, and Flux tells the jobs that still run to end.
        """
        with contextlib.suppress(ProcessLookupError):
            self._broker.terminate()
