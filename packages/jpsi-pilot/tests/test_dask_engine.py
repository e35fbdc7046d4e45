"""The engine `dask`, with two workers in place of two nodes of a pilot that is a job of Slurm."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from fake_processes import FIRST, add_process
from jpsi_pilot.dask.engine import DaskEngine
from jpsi_pilot.protocol.engine import NodeLost
from jpsi_pilot.protocol.values import End, Task
from test_scheduling_loop import SETTINGS

PATIENCE = 60.0
#: The variables that Slurm sets for the worker of a pilot, which is a step.
OF_SLURM = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_JOB_NODELIST": "n[0-1]"}
#: Prints its variables, and waits.
SCRIPT = """\
for it in "$JPSI_PILOT_NODES" "$SLURM_JOB_ID $SLURM_STEP_ID $SLURM_JOB_NODELIST" "$JPSI_PILOT_DEVICES"; do
  echo "$it"
done >{path}.draft
mv {path}.draft {path}
until [ -e {path}.go ]; do sleep 0.05; done
exit 3
"""
#: A worker that ends orphans among fake processes.
WORKER = """\
import functools, pathlib, shutil, sys
from runpy import run_module
import jpsi_pilot.node.runs
import jpsi_pilot.node.sessions

def kill(proc, process):
    shutil.rmtree(proc / str(process.pid), ignore_errors=True)
    return True

proc = pathlib.Path(sys.argv.pop(1))
jpsi_pilot.node.sessions._kill = kill
jpsi_pilot.node.runs.end_marked = functools.partial(jpsi_pilot.node.sessions.end_marked, proc=proc)
run_module("jpsi_pilot.dask.worker", run_name="__main__", alter_sys=True)
"""


def task(folder: Path, native_id: str, script: str, gpus: int | None = 1) -> Task:
    (folder / "environment").write_text("{}")
    return Task(
        native_id=native_id,
        restarts=0,
        script=script,
        environment="environment",
        umask=0o077,
        variables={"JPSI_PILOT_JOB": native_id},
        seconds=300,
        kill_delay=0.2,
        gpus=gpus,
    )


class Pilot:
    """A pilot's two workers, with an engine in the test's own event loop."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self.proc = folder / "proc"
        self._stack = stack
        self.changed = asyncio.Event()
        self.engine = DaskEngine(self.changed.set, SETTINGS)
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    async def start(self) -> None:
        await self.engine.start()
        pilot = self.folder / "pilots" / "1"
        pilot.mkdir(parents=True)
        self.engine.equip(pilot, SETTINGS)
        for name in ("n0", "n1"):
            self._start_worker(pilot, name)
        await self.until(lambda: len(self.engine.nodes()) == 2)

    def _start_worker(self, pilot: Path, name: str) -> None:
        words = ["-c", WORKER, str(self.proc), str(pilot), "2", f"1/{name}.1"]
        environment = {**os.environ, **OF_SLURM, "SLURMD_NODENAME": name, "CUDA_VISIBLE_DEVICES": "4,5"}
        worker = subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, env=environment)
        self.workers[f"1/{name}.1"] = self._stack.enter_context(worker)
        self._stack.callback(worker.kill)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not is_so():
                self.changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.changed.wait(), 0.05)

    async def run(self, native_id: str, script: str, *nodes: str, gpus: int | None = 1) -> End:
        async with asyncio.timeout(PATIENCE):
            return await self.engine.run(nodes, task(self.folder, native_id, script, gpus))


@pytest.fixture
def pilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that runs a test's coroutine with a pilot."""
    monkeypatch.chdir(tmp_path)
    with contextlib.ExitStack() as stack:

        def begin(test: Callable[[Pilot], Awaitable[None]]) -> None:
            async def whole() -> None:
                it = Pilot(tmp_path, stack)
                await it.start()
                try:
                    await test(it)
                finally:
                    await it.engine.close()

            asyncio.run(whole())

        yield begin


BOTH = ("1/n1.1", "1/n0.1")


def test_a_job_of_two_nodes_has_their_names_and_its_gpus_on_each(
    pilot: Callable[..., None], tmp_path: Path
) -> None:
    async def test(it: Pilot) -> None:
        lines = tmp_path / "variables"
        several = asyncio.ensure_future(it.run("a-1", SCRIPT.format(path=lines), *BOTH))
        await it.until(lines.exists)
        beside = [
            await it.run(f"a-{n}", f'echo "$CUDA_VISIBLE_DEVICES" >{tmp_path}/{n}', node)
            for n, node in enumerate(BOTH, 2)
        ]
        (tmp_path / "variables.go").touch()
        end = await several
        again = await it.run("a-4", "true", *BOTH, gpus=2)

        assert [end.code, *(it.code for it in beside), again.code] == [3, 0, 0, 0]
        assert lines.read_text().splitlines() == [
            "n1 n0",
            "7 0 n[0-1]",
            "n1 CUDA_VISIBLE_DEVICES=4",
            "n0 CUDA_VISIBLE_DEVICES=4",
        ]
        assert [(tmp_path / n).read_text() for n in "23"] == ["5\n", "5\n"]

    pilot(test)


def test_a_job_for_which_one_of_its_nodes_has_too_few_gpus_does_not_begin(
    pilot: Callable[..., None], tmp_path: Path
) -> None:
    async def test(it: Pilot) -> None:
        alone = asyncio.ensure_future(it.run("a-1", SCRIPT.format(path=tmp_path / "variables"), BOTH[1]))
        await it.until((tmp_path / "variables").exists)
        end = await it.run("a-2", f"touch {tmp_path}/ran", *BOTH, gpus=2)
        (tmp_path / "variables.go").touch()
        await alone
        again = await it.run("a-3", "true", *BOTH, gpus=2)

        assert (end.code, end.why) == (None, "unable")
        assert "it needs 2 GPUs" in end.message
        assert not (tmp_path / "ran").exists()
        assert again.code == 0

    pilot(test)


def test_a_job_that_loses_a_node_before_it_begins_is_lost_and_holds_no_gpus(
    pilot: Callable[..., None], tmp_path: Path
) -> None:
    async def test(it: Pilot) -> None:
        it.workers[BOTH[1]].kill()
        # whether the engine has detected the loss or not
        with pytest.raises(NodeLost):
            await it.run("a-1", "true", *BOTH, gpus=2)
        again = await it.run("a-2", "true", BOTH[0], gpus=2)

        assert again.code == 0

    pilot(test)


def test_processes_of_a_job_on_its_other_nodes_are_ended(pilot: Callable[..., None], tmp_path: Path) -> None:
    """Such processes remain when a launcher is killed."""

    async def test(it: Pilot) -> None:
        lines = tmp_path / "variables"
        several = asyncio.ensure_future(it.run("a-1", SCRIPT.format(path=lines), *BOTH))
        await it.until(lines.exists)
        remaining = add_process(it.proc, FIRST, {"JPSI_PILOT_JOB": "a-1", "SLURM_JOB_ID": "7"})
        others = add_process(it.proc, FIRST + 1, {"JPSI_PILOT_JOB": "a-2", "SLURM_JOB_ID": "7"})
        await it.engine.stop(BOTH[0], "a-1")
        end = await several

        assert end.why == "cancel"
        await it.until(lambda: not remaining.exists())
        assert others.exists()

    pilot(test)
