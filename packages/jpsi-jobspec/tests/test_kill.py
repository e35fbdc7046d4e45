"""A client that is killed at any instant: no task is lost, and the next client continues the run."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from forked_jpsi import run_as_text, start_jpsi

# The instants of the kill, in hundredths of a second after the run is on disk; it is not over at early ones.
INSTANTS = [0, 3, 7, 12, 20, 35]
EARLY = 12
DOCUMENT = """\
version: 1
resources: {r: {type: core, count: 1}}
tasks:
- {name: a, command: [sh, -c, 'echo a >>"$LOG"'], resources: r}
- {name: b, command: [sh, -c, 'echo b$JPSI_REPLICA >>"$LOG"'], resources: r, replicas: 4, depends_on: [a]}
- {name: c, command: [sh, -c, 'echo c >>"$LOG"'], resources: r, depends_on: [b]}
- {name: d, command: [sh, -c, 'echo d >>"$LOG"'], resources: r, depends_on: [a]}
"""


@pytest.mark.parametrize("instant", INSTANTS)
def test_a_killed_client_loses_and_repeats_no_task(instant: int, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(DOCUMENT)
    (tmp_path / "log").touch()
    directories = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("STATE", "CONFIG", "CACHE")}
    environment = {**os.environ, **directories, "LOG": str(tmp_path / "log"), "HOME": str(tmp_path)}
    command = ("workflow", "run", "flow.yaml")

    with start_jpsi(*command, cwd=tmp_path, env=environment) as first:
        runs = tmp_path / "state/jpsi/workflows"
        while first.poll() is None and not list(runs.glob("*/1/run.json")):
            time.sleep(0.002)
        # no wait for a condition: the kill must hit any step
        time.sleep(instant / 100)
        first.kill()
    if instant <= EARLY:
        assert first.returncode == -signal.SIGKILL
    again = run_as_text(*command, cwd=tmp_path, env=environment, timeout=60)

    assert (again.returncode, again.stdout) == (0, "")
    ran = (tmp_path / "log").read_text().split()
    assert sorted(ran) == ["a", "b1", "b2", "b3", "b4", "c", "d"]
    assert ran[0] == "a"
    assert ran.index("c") > max(ran.index(f"b{n}") for n in (1, 2, 3, 4))
