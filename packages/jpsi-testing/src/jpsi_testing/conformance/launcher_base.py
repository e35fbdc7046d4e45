"""What the parts of `LauncherConformance` share: what a subclass says, and how a launcher's lines are run."""

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
from jpsi_testing.conformance.asking import Hooks
from jpsi_testing.waiting import eventually

GROUP = "jpsi.launchers"
SHELLS = [found for name in ("dash", "bash", "sh") if (found := shutil.which(name))]

_PROC = Path("/proc")


class LaunchKit:
    """What a subclass says about its launcher."""

    #: The name that the launcher is asked for by.
    launcher_name: ClassVar[str]
    #: The program that it needs; tests that run it are skipped where it is missing.
    program: ClassVar[str | None] = None
    #: The module or object that implements the hooks; None is what the entry point of the name leads to.
    plugin: Any = None
    #: How many processes it is tried with, on this machine.
    max_processes: ClassVar[int] = 1
    #: Custom attributes of every job: what the launcher cannot do without.
    custom_attributes: ClassVar[Mapping[str, Any]] = {}
    #: Whether TERM ends all processes where it only reaches the launcher's own shell.
    ends_on_term: ClassVar[bool] = True
    #: How long a job may take, in seconds, however busy the machine is.
    patience: ClassVar[float] = 60.0

    @pytest.fixture
    def hooks(self) -> Hooks:
        """The plugin's hooks."""
        plugin = self.plugin
        if plugin is None:
            plugin = load_plugin(installed().find(GROUP, self.launcher_name))
        return Hooks(plugin, ExecutorConfig())

    def resources(self, count: int) -> ResourceSpecV1:
        """What a job of so many processes asks for."""
        return ResourceSpecV1(process_count=count)

    def asking(self, spec: JobSpec) -> JobSpec:
        """A spec with the custom attributes."""
        attributes = spec.attributes
        custom = {**(attributes.custom_attributes or {}), **self.custom_attributes}
        return attrs.evolve(spec, attributes=attrs.evolve(attributes, custom_attributes=custom))

    @pytest.fixture
    def lines(self, hooks: Hooks, tmp_path: Path) -> Lines:
        """The launcher's lines for one process, to be run."""
        self.need_program()
        return self.new_lines(hooks, tmp_path, 1)

    def new_lines(self, hooks: Hooks, folder: Path, count: int) -> Lines:
        """The launcher's lines for so many processes."""
        spec = self.asking(JobSpec("/bin/true", resources=self.resources(count), launcher=self.launcher_name))
        text = "\n".join(hooks("launch", spec=spec))
        (folder / "nodes").write_text(f"{os.uname().nodename}\n" * count)
        return Lines(folder=folder, text=text, patience=self.patience)

    def need_program(self) -> None:
        """Skip the test where the launcher cannot be run."""
        if self.program is not None and shutil.which(self.program) is None:
            pytest.skip(f"{self.program} is not installed")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until something is so."""
        assert eventually(condition, self.patience), f"{what}: not so in {self.patience:g} s"


@attrs.frozen(slots=True, kw_only=True)
class Lines:
    """A launcher's lines among what the runner has around them."""

    folder: Path
    text: str
    #: How many seconds they may take.
    patience: float

    @property
    def log(self) -> Path:
        """What the launcher says itself."""
        return self.folder / "log"

    def script(self) -> Path:
        """A file with the lines, which launches its arguments."""
        variables = {
            "folder": self.folder,
            "log": self.log,
            "pre_launch": "",
            "post_launch": "",
            "stdin": self.folder / "stdin",
            "stdout": self.folder / "stdout",
            "stderr": self.folder / "stderr",
        }
        told = "".join(f"_jpsi_{name}='{value}'\n" for name, value in variables.items())
        path = self.folder / "launch"
        path.write_text(f"#!/bin/sh\n{told}{self.text}\n")
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
        """Have a shell run the lines, in a session of its own."""
        (self.folder / "stdin").write_bytes(stdin)
        nodes = str(self.folder / "nodes")
        told = {"JPSI_JOB_ID": job_id, "JPSI_NODEFILE": nodes, "PSIJ_NODEFILE": nodes}
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
                env={**(os.environ if environment is None else environment), **told},
                start_new_session=True,
            )

    def run(
        self,
        shell: str,
        *words: str,
        stdin: bytes = b"",
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Have a shell run the lines to their end."""
        process = self.start(shell, words, stdin=stdin, environment=environment)
        code = process.wait(self.patience)
        stdout, stderr = ((self.folder / name).read_bytes() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(words, code, stdout, stderr)


def processes_of(job_id: str) -> list[int]:
    """The processes of this machine that belong to a job: their environment says so."""
    mark = f"JPSI_JOB_ID={job_id}".encode()
    return [pid for pid, variables in _environments() if mark in variables]


def _environments() -> Sequence[tuple[int, list[bytes]]]:
    if not (_PROC / "self" / "environ").exists():
        pytest.skip("there is no /proc that tells what runs")
    found = []
    for folder in _PROC.iterdir():
        # of others, and of those that have just ended, nothing is to be read
        with contextlib.suppress(OSError, ValueError):
            found.append((int(folder.name), (folder / "environ").read_bytes().split(b"\0")))
    return found


def unheeded_signals(status: str) -> set[tuple[str, int]]:
    """The signals of POSIX that a process ignores or blocks, by what /proc says of it."""
    masks = [line.split() for line in status.splitlines() if line.startswith(("SigIgn:", "SigBlk:"))]
    return {(name, it) for name, mask in masks for it in range(1, 32) if int(mask, 16) >> (it - 1) & 1}
