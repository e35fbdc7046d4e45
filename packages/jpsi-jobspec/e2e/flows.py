"""Documents that several test files run by commands, and their results."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conftest import TARGET
from jpsi_testing.waiting import eventually

HEAD = """\
version: 1
resources:
  all: {{type: node, count: 2, with: [{{type: core, count: 2}}]}}
  one: {{type: core, count: 1}}
groups:
- name: {name}
  resources: all
  attributes: {{duration: {duration}, cwd: {cwd}}}
  tasks:
  - {{name: begin, local: true, command: [sh, -c, 'echo begin $(hostname) >>ran']}}
"""
END = "  - {name: end, local: true, command: [sh, -c, 'echo end $(hostname) >>ran']}\n"


class Flow:
    """A document in a directory, and the output of its tasks."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        (folder / "flow.yaml").write_text(text)
        (folder / "ran").touch()

    @classmethod
    def of_group(cls, folder: Path, tasks: str, name: str = "g", duration: str = "20m") -> Flow:
        """Return a group of two nodes with these tasks, between two local ones."""
        head = HEAD.format(name=name, duration=duration, cwd=folder)
        return cls(folder, f"{head}{tasks}{END}")

    @property
    def ran(self) -> list[str]:
        return (self.folder / "ran").read_text().splitlines()

    def command(self, command: str, *options: str, names: Sequence[str] = ()) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "jpsi_cli", "workflow", command, *options, "flow.yaml", *names]
        return subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, text=True)

    @contextlib.contextmanager
    def run(self) -> Iterator[subprocess.Popen[str]]:
        """Run the document; enter the context once its tasks run on both nodes."""
        with self.command("run", "-x", TARGET) as process:
            try:
                assert eventually(lambda: len(self.ran) > 4)
                yield process
            except BaseException:
                # end the run, as no test waits for it
                process.terminate()
                (self.folder / "go").write_text("1")
                raise

    @property
    def runner(self) -> int:
        """The process that runs the inside of the group."""
        words = {b"jpsi_jobspec.group_run", b"g"}
        for it in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                line = it.read_bytes()
                if words <= set(line.split(b"\0")) and os.fsencode(self.folder) in line:
                    return int(it.parent.name)
        raise LookupError

    def states(self) -> dict[str, set[tuple[str, str | None]]]:
        """Return the states and reasons of the inner tasks, by name."""
        with self.command("status", "--json") as process:
            records: list[dict[str, Any]] = json.loads(process.communicate()[0])
        found: dict[str, set[tuple[str, str | None]]] = {}
        for it in records:
            found.setdefault(it["id"].rpartition("/")[2], set()).add((it["state"], it["reason"]))
        return found
