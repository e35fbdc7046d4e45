"""A node's part of a Flux instance: its broker, which finds those of the other nodes by the launcher."""

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
# flux-uptime(1): 09:30:51 run 29s,  owner tester,  depth 0,  size 1
_UPTIME = re.compile(r"\S+ +run .*\bsize ([0-9]+)$")
# A command looks for a broker for half a second by itself.
_PAUSE = 0.1
# RFC 23 has no duration of nothing that means so.
_SHORTEST = 0.1


@attrs.frozen(slots=True, kw_only=True)
class Shape:
    """What an instance has."""

    nodes: int
    cores: int
    gpus: int
    #: How long a job has to end when it is told to, in seconds.
    kill_delay: float

    @property
    def resources(self) -> dict[str, Any]:
        """RFC 20: what each broker has, as was asked for, and not as Flux would find it there."""
        numbers = {"core": self.cores, "gpu": self.gpus}
        children = {name: _first(count) for name, count in numbers.items() if count}
        nodes = [{"rank": _first(self.nodes), "children": children}]
        return {"version": 1, "execution": {"R_lite": nodes, "starttime": 0, "expiration": 0}}

    def configuration(self, resources: Path) -> str:
        """flux-config(5): the configuration of a broker, in TOML, whose basic strings are those of JSON."""
        return (
            f"[resource]\npath = {json.dumps(str(resources))}\nnoverify = true\n"
            f'[exec]\nkill-timeout = "{max(self.kill_delay, _SHORTEST)}s"\n'
        )


def _first(count: int) -> str:
    """RFC 22: the first numbers, from 0 on."""
    return "0" if count == 1 else f"0-{count - 1}"


@attrs.frozen(slots=True, kw_only=True)
class Up:
    """An instance that is up, as one of its brokers sees it."""

    rank: int
    size: int

    @classmethod
    def told(cls, uptime: str, rank: str) -> Self | None:
        """What `flux uptime` and `flux getattr rank` print of it; None if it is not up."""
        match = _UPTIME.match(uptime.strip())
        if match is None or not rank.strip().isdecimal():
            return None
        return cls(rank=int(rank), size=int(match[1]))


@attrs.frozen(slots=True, kw_only=True)
class Instance:
    """The broker on this node; the instance ends with its first one."""

    _broker: Process
    #: Where it is submitted to, as in FLUX_URI.
    uri: str

    @classmethod
    async def start(cls, shape: Shape, scratch: Path) -> Self:
        """Start the broker.

        Args:
            shape: what the whole instance has.
            scratch: a private directory on this node.

        Raises:
            OSError: there is no Flux.
        """
        resources, configuration = scratch / "R", scratch / "flux.toml"
        resources.write_text(json.dumps(shape.resources), encoding="utf-8")
        configuration.write_text(shape.configuration(resources), encoding="utf-8")
        uri = f"local://{scratch / _SOCKET}"
        # It has no program of its own: it goes on until it is told to end.
        options = f"-Slocal-uri={uri},-Sbroker.rc2_none=1,--config-path={configuration}"
        # The session has all that Flux starts here. Open files stay as the launcher gave them, as one may be
        # what brokers find each other by.
        broker = await create_subprocess_exec(
            "flux", "start", f"-o,{options}", stdin=DEVNULL, start_new_session=True, close_fds=False
        )
        return cls(broker=broker, uri=uri)

    @property
    def pid(self) -> int:
        """The broker's process, which leads the session of all that Flux starts here."""
        return self._broker.pid

    async def up(self) -> Up:
        """Wait until jobs can be submitted to it; for ever if it does not come to that."""
        while True:
            found = Up.told(await self._asked("uptime"), await self._asked("getattr", "rank"))
            if found is not None:
                return found
            # nobody announces it
            await asyncio.sleep(_PAUSE)

    async def _asked(self, *words: str) -> str:
        """What a command prints."""
        environment = {**os.environ, "FLUX_URI": self.uri}
        asked = await create_subprocess_exec(
            "flux", *words, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        try:
            said, _ = await asked.communicate()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                asked.kill()
            raise
        return said.decode(errors="replace")

    async def ended(self) -> int:
        """Wait for its end; the exit code."""
        return await self._broker.wait()

    def end(self) -> None:
        """Have it end, and all of the instance with the first broker: what still runs is told to end."""
        with contextlib.suppress(ProcessLookupError):
            self._broker.terminate()
