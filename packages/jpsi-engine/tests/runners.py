"""A test bench that runs the runner's script by a real shell, and the outcomes of runs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from jpsi.contract.shell import ShellLine
from jpsi.model.spec import JobSpec
from jpsi_engine.runner.claim_and_markers import Frame, ProcessFrame
from jpsi_engine.runner.script import render_runner
from jpsi_engine.runner.script_input import Run

SINGLE = [ShellLine('exec "$@"')]
PATH = "/usr/bin:/bin"


@attrs.frozen
class Ended:
    """The outcome of a run of the script."""

    code: int
    #: The markers, without the job's id and the attempt.
    markers: list[str]
    stdout: bytes
    stderr: bytes


@attrs.frozen
class RunnerBench:
    """A test bench for the runner: the files of one job, and methods that run its script."""

    root: Path
    shell: str = "/bin/sh"
    frame: Frame = attrs.field(factory=ProcessFrame)
    job_id: str = "a1"

    @property
    def folder(self) -> Path:
        return self.root / "jobs" / self.job_id

    @property
    def events(self) -> Path:
        return self.root / "events"

    @property
    def directory(self) -> Path:
        """The working directory of the job."""
        return self.root / "work"

    @property
    def proof(self) -> Path:
        """A file that a job may write to show that it ran."""
        return self.root / "proof"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def write(self, spec: JobSpec, **fields: Any) -> Path:
        """Write the script of an attempt, as the spool would."""
        for path in (self.folder, self.events, self.directory, self.home):
            path.mkdir(parents=True, exist_ok=True)
        given = {
            "job_id": self.job_id,
            "attempt": 1,
            "folder": str(self.folder),
            "events": str(self.events),
            "directory": str(self.directory),
            "spec": spec,
            "launch": SINGLE,
            "frame": self.frame,
            **fields,
        }
        script = self.folder / f"run.{given['attempt']}"
        script.write_bytes(render_runner(Run(**given)).encode("utf-8", "surrogateescape"))
        return script

    def start(self, script: Path, environment: Mapping[str, str] | None = None) -> Ended:
        """Run a script, and return its outcome."""
        result = subprocess.run(
            [self.shell, str(script)],
            env={"PATH": PATH, "HOME": str(self.home), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return Ended(result.returncode, self.markers(), self.read("stdout"), self.read("stderr"))

    def run(self, spec: JobSpec, environment: Mapping[str, str] | None = None, **fields: Any) -> Ended:
        """Write the script and carry it out."""
        return self.start(self.write(spec, **fields), environment)

    def markers(self) -> list[str]:
        prefix = f"{self.job_id}.1."
        names = [without_usage(path.name.removeprefix(prefix)) for path in self.events.iterdir()]
        return sorted(name for name in names if name != "active")

    def read(self, stream: str) -> bytes:
        path = self.folder / stream
        return path.read_bytes() if path.exists() else b""


def with_control_groups(runner: Path, root: Path, groups: str, files: Mapping[str, str]) -> None:
    """Have a runner's script see other control groups than this host's: its own, and the files of some."""
    script(root / "cgroup", groups)
    for name, text in files.items():
        script(Path(f"{root}/groups/{name}"), text)
    places = {"/proc/self/cgroup": f"'{root}/cgroup'", '"/sys/fs/cgroup': f'"{root}/groups'}
    text = runner.read_text()
    for place, other in places.items():
        text = text.replace(place, other)
    runner.write_text(text)


def without_usage(marker: str) -> str:
    """Return the name of a marker without what the run has used, which depends on the machine."""
    before, end, detail = marker.rpartition("exit.")
    plain = re.sub(r"-\d+(?=[.-])", "", detail)
    return f"{before}{end}{plain}" if end else marker


def shell_job(text: str, *arguments: Path, **fields: Any) -> JobSpec:
    """Return a job that is a line of shell, with its arguments as $1, $2, ..."""
    return JobSpec("/bin/sh", ["-c", text, "-", *map(str, arguments)], **fields)


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path
