"""The remaining time of a process, which does not depend on a clock that users can set."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from jpsi_engine.host.procfs import UNKNOWN_START, ProcessId, identify
from jpsi_engine.local import exits
from jpsi_engine.local.supervision import SupervisedProcess, Supervisor, seconds_left
from jpsi_engine.spool import Spool
from jpsi_engine.verdict import CANCEL, TIMEOUT, Stop

HOUR = timedelta(hours=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def followed(started: datetime, process: ProcessId | None) -> SupervisedProcess:
    """Return a job with a duration of a minute whose claim has this time."""
    return SupervisedProcess(
        "a1", "a1", 1, process, is_child=False, started=started, duration=timedelta(minutes=1)
    )


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="ps(1) has only the time of the wall clock")
@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_clock_that_jumped_by_an_hour_since_the_start_changes_no_duration(jump: timedelta) -> None:
    process = identify(os.getpid())
    assert process is not None
    usual = seconds_left(followed(NOW, process), NOW)

    left = seconds_left(followed(NOW, process), NOW + jump)

    assert left == pytest.approx(usual, abs=30)


@pytest.mark.parametrize(
    ("passed", "left"),
    [(timedelta(seconds=20), 40.0), (HOUR, 0.0), (-HOUR, 60.0)],
    ids=["a while", "forward", "back"],
)
def test_a_job_never_gets_more_than_its_duration_if_only_the_wall_clock_is_known(
    passed: timedelta, left: float
) -> None:
    assert seconds_left(followed(NOW, ProcessId(1, UNKNOWN_START)), NOW + passed) == left


@pytest.mark.parametrize(
    ("recorded", "signals"),
    [(None, [signal.SIGTERM]), (CANCEL, [signal.SIGTERM]), (TIMEOUT, [])],
    ids=["nothing", "cancel", "timeout"],
)
def test_a_client_that_is_late_at_the_limit_sends_no_second_term(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str | None, signals: list[signal.Signals]
) -> None:
    spool, sent, later = Spool(tmp_path), list[signal.Signals](), list[float]()
    spool.open()
    Path(spool.folder("a1")).mkdir()
    if recorded is not None:
        spool.stop("a1", 1, Stop(recorded, NOW))
    monkeypatch.setattr(Supervisor, "_signal", staticmethod(lambda _, number: sent.append(number)))
    monkeypatch.setattr(
        exits, "shared_watch", lambda: SimpleNamespace(call_later=lambda delay, *_: later.append(delay))
    )

    Supervisor(spool, timedelta(seconds=30), lambda *_: None, lambda: None).stop(followed(NOW, None), TIMEOUT)

    assert (sent, later) == (signals, [30.0])


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["this client", "another client"])
def test_a_job_that_is_cancelled_after_its_limit_is_not_submitted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_elsewhere: bool
) -> None:
    spool = Spool(tmp_path)
    spool.open()
    intent = {"spec": {"attributes": {"retry": {"timeout": 1}}}}
    os.close(spool.prepare("a1", 1, intent, script=None))
    monkeypatch.setattr(exits, "shared_watch", lambda: SimpleNamespace(call_later=lambda *_: None))
    supervisor = Supervisor(spool, timedelta(seconds=30), lambda *_: None, lambda: None)
    job = followed(NOW, None)
    supervisor.stop(job, TIMEOUT)
    assert not spool.is_retry_cancelled("a1", 1)

    supervisor.stop(followed(NOW, None) if is_elsewhere else job, CANCEL)

    assert spool.is_retry_cancelled("a1", 1)
