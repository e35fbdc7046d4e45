"""Flux's event stream: the process that follows the journal, over recorded and synthetic journals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from flux_support import SITE, recordings
from jpsi.plugin import NOT_OFFERED, Command, Site
from jpsi_flux import hooks
from jpsi_flux.config import FluxConfig

# The part of Flux's bindings that the process uses, as flux-python-helper does; each poll takes a second.
_FLUX = """
import time

class Flux:
    pass

_now = 0.0
time.monotonic = lambda: _now

class _Event:
    def __init__(self, jobid, name):
        self.jobid, self.name = jobid, name

class JournalConsumer:
    def __init__(self, handle, full):
        assert isinstance(handle, Flux) and not full
        self._events = []

    def start(self):
        if DENIED:
            raise PermissionError("Request requires owner credentials")
        self._events = [TimeoutError() if it is None else _Event(*it) for it in EVENTS] + [None]

    def poll(self, timeout):
        global _now
        event = self._events.pop(0)
        if isinstance(event, TimeoutError):
            _now += timeout
            raise event
        return event
"""


#: A job and its event; None is a second without events.
Events = list[tuple[int, str] | None]
EVENTS: Events = [
    *((17, name) for name in ("submit", "validate", "depend", "priority", "alloc", "start")),
    (18, "exception"),
    *([None] * 60),
    *((17, name) for name in ("finish", "clean")),
    None,
]


def run_watcher(
    root: Path, events: Events = EVENTS, *, denied: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the process on a journal of these events."""
    package = root / "flux"
    package.mkdir()
    flux = _FLUX.replace("DENIED", str(denied)).replace("EVENTS", repr(events))
    (package / "__init__.py").write_text(flux)
    (package / "job.py").write_text("from flux import JournalConsumer\n")
    command = hooks.watch(SITE)
    assert isinstance(command, Command)
    assert command.argv == ("flux", "python", "-")
    return subprocess.run(
        [sys.executable, "-"],
        input=command.stdin,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_starts_and_ends_are_reported_after_a_second_with_heartbeats(tmp_path: Path) -> None:
    lines = run_watcher(tmp_path).stdout.splitlines()

    assert lines == ["jpsi-flux 17 18", "jpsi-flux", "jpsi-flux 17"]
    assert [hooks.parse_event(line) for line in lines] == [["17", "18"], [], ["17"]]


def test_a_recorded_journal_is_reported(tmp_path: Path) -> None:
    """Two jobs, from their submission to their end."""
    (step,) = (it for it in recordings("flux-python-helper") if "JournalConsumer" in (it.stdin or ""))
    journal = [json.loads(line) for line in step.result.stdout.splitlines()]

    lines = run_watcher(
        tmp_path, [*((int(it["id"]), it["name"]) for it in journal), None]
    ).stdout.splitlines()

    ids = list(dict.fromkeys(it["id"] for it in journal))
    assert len(ids) == 2
    assert [hooks.parse_event(line) for line in lines] == [ids]


def test_without_permission_the_journal_reports_nothing(tmp_path: Path) -> None:
    done = run_watcher(tmp_path, denied=True)

    assert (done.returncode, done.stdout) == (1, "")


def test_the_event_stream_can_be_switched_off() -> None:
    assert hooks.watch(Site(config=FluxConfig(events=False))) is NOT_OFFERED


def test_other_lines_report_no_job() -> None:
    assert [hooks.parse_event(line) for line in ("", "Welcome 17", "jpsi-flux x -1")] == [[], [], []]
