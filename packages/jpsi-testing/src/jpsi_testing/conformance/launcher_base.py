"""The base of `LauncherConformance`: the class attributes of a launcher, and a runner for its lines."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from jpsi import JobSpec
from jpsi.plugin import ExecutorConfig, ResourceSpecV1
from jpsi.plugin.engine import installed, load_plugin
from jpsi_testing.conformance.hook_caller import Hooks
from jpsi_testing.waiting import eventually

GROUP = "jpsi.launchers"
SHELLS = [found for name in ("dash", "bash", "sh") if (found := shutil.which(name))]

_PROC = Path("/proc")


class LauncherTestBase:
    """The class attributes that describe a launcher, and the fixtures and methods that tests use."""

    #: The name of the launcher.
    launcher_name: ClassVar[str]
    #: The program that it runs; tests that need it are skipped if it is missing.
    program: ClassVar[str | None] = None
    #: The module or object that implements the hooks; None is the plugin that the entry point names.
    plugin: Any = None
    #: The number of processes that tests start, on this machine.
    max_processes: ClassVar[int] = 1
    #: Custom attributes of every job: those that the launcher requires.
    custom_attributes: ClassVar[Mapping[str, Any]] = {}
    #: True if TERM to the launcher's own shell alone ends all processes.
    ends_on_term: ClassVar[bool] = True
    #: The longest time that a job may take, in seconds, on a busy machine too.
    timeout_seconds: ClassVar[float] = 60.0

    @pytest.fixture
    def hooks(self) -> Hooks:
        """Return the plugin's hooks."""
        plugin = self.plugin
        if plugin is None:
            plugin = load_plugin(installed().find(GROUP, self.launcher_name))
        return Hooks(plugin, ExecutorConfig())

    def resources(self, count: int) -> ResourceSpecV1:
        """Return the resources of a job of so many processes."""
        return ResourceSpecV1(process_count=count)

    def with_launcher_attributes(self, spec: JobSpec) -> JobSpec:
        """Return a copy of a spec with the launcher's custom attributes."""
        attributes = spec.attributes
        custom = {**(attributes.custom_attributes or {}), **self.custom_attributes}
        return attrs.evolve(spec, attributes=attrs.evolve(attributes, custom_attributes=custom))

    @pytest.fixture
    def lines(self, hooks: Hooks, tmp_path: Path) -> Lines:
        """Return the launcher's lines for one process, ready to run."""
        self.need_program()
        return self.new_lines(hooks, tmp_path, 1)

    def new_lines(self, hooks: Hooks, folder: Path, count: int) -> Lines:
        """Return the launcher's lines for so many processes."""
        spec = self.with_launcher_attributes(
            JobSpec("/bin/true", resources=self.resources(count), launcher=self.launcher_name)
        )
        text = "\n".join(hooks("launch", spec=spec))
        (folder / "nodes").write_text(f"{os.uname().nodename}\n" * count)
        return Lines(folder=folder, text=text, timeout_seconds=self.timeout_seconds)

    def need_program(self) -> None:
        """Skip the test if the launcher's program is not installed."""
        if self.program is not None and shutil.which(self.program) is None:
            pytest.skip(f"{self.program} is not installed")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition is true; fail the test if it is not so in `timeout_seconds`."""
        seconds = self.timeout_seconds
        assert eventually(condition, seconds), f"{what}: this was not so within {seconds:g} s"


@attrs.frozen(slots=True, kw_only=True)
class Lines:
    """A launcher's lines, with the variables that the runner sets around them."""

    folder: Path
    text: str
    #: The longest time that they may take, in seconds.
    timeout_seconds: float

    @property
    def log(self) -> Path:
        """The file for the launcher's own output."""
        return self.folder / "log"

    def script(self) -> Path:
        """Write a script with the lines, which launches its arguments; return its path."""
        variables = {
            "folder": self.folder,
            "log": self.log,
            "pre_launch": "",
            "post_launch": "",
            "stdin": self.folder / "stdin",
            "stdout": self.folder / "stdout",
            "stderr": self.folder / "stderr",
        }
        settings = "".join(f"_jpsi_{name}='{value}'\n" for name, value in variables.items())
        path = self.folder / "launch"
        path.write_text(f"#!/bin/sh\n{settings}{self.text}\n")
        return path

    def start(
        self,
        shell: str,
        words: Sequence[str],
        *,
        stdin: bytes = b"",
        job_id: str = "1",
        environment: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a shell that runs the lines, in a session of its own."""
        (self.folder / "stdin").write_bytes(stdin)
        nodes = str(self.folder / "nodes")
        settings = {"JPSI_JOB_ID": job_id, "JPSI_NODEFILE": nodes, "PSIJ_NODEFILE": nodes}
        with contextlib.ExitStack() as stack:
            files = [
                stack.enter_context((self.folder / name).open(mode))
                for name, mode in (("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb"))
            ]
            return subprocess.Popen(
                [shell, self.script(), *words],
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                env={**(os.environ if environment is None else environment), **settings},
                start_new_session=True,
            )

    def run(
        self,
        shell: str,
        *words: str,
        stdin: bytes = b"",
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the lines in a shell to their end."""
        process = self.start(shell, words, stdin=stdin, environment=environment)
        code = process.wait(self.timeout_seconds)
        stdout, stderr = ((self.folder / name).read_bytes() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(words, code, stdout, stderr)


def processes_of(job_id: str) -> list[int]:
    """Return the pids of a job's processes on this machine, by their environment."""
    mark = f"JPSI_JOB_ID={job_id}".encode()
    return [pid for pid, variables in _environments() if mark in variables]


def started_processes(job_id: str) -> set[int]:
    """Return the pids of a job's processes on this machine that started none themselves.

    A process that waits by a child such as `sleep` counts in place of that child.
    """
    pids = set(processes_of(job_id)) if _PROC.exists() else set()
    parents: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            # the name before the last parenthesis may contain anything
            parents[pid] = int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    leaves = parents.keys() - parents.values()
    return {parents[pid] if _is_sleep(pid) else pid for pid in leaves}


def _is_sleep(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / "comm").read_text() == "sleep\n"
    return False


def _environments() -> Sequence[tuple[int, list[bytes]]]:
    if not (_PROC / "self" / "environ").exists():
        pytest.skip("this machine has no /proc, which lists the processes")
    found = []
    for folder in _PROC.iterdir():
        # /proc shows nothing of other users' processes, and of those that have just ended
        with contextlib.suppress(OSError, ValueError):
            found.append((int(folder.name), (folder / "environ").read_bytes().split(b"\0")))
    return found


def ignored_signals(status: str) -> set[tuple[str, int]]:
    """Return the POSIX signals that a process ignores or blocks, by its status in /proc."""
    masks = [line.split() for line in status.splitlines() if line.startswith(("SigIgn:", "SigBlk:"))]
    return {(name, it) for name, mask in masks for it in range(1, 32) if int(mask, 16) >> (it - 1) & 1}
