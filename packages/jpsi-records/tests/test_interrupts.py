"""Ctrl-C and other signals that arrive where Python or a library loses the exception that they raise."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_dispatcher import spec
from jpsi_records.commands import submission
from jpsi_records.dispatch import dispatcher as dispatcher_module
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.model.entities import About
from jpsi_records.records.records import Records

#: The rounds, or checks of a request, after which a signal is lost for good.
MOST_ROUNDS = 3


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    monkeypatch.setattr(dispatcher_module, "_ROUND_SECONDS", 0)
    with Records(tmp_path / "records", user="ca") as records:
        yield records


class Collected:
    """An object during whose collection a signal arrives, so that Python ignores what the handler raises."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


def lose(number: signal.Signals) -> None:
    """Send a signal to this process where the exception is ignored."""
    Collected(number)


def mask(number: signal.Signals) -> None:
    """Send a signal to this process where another exception takes the place of the first."""
    try:
        signal.raise_signal(number)
    finally:
        assert False, "a library's own check"  # noqa: B011, PT015


def interrupting(send: Callable[[], None]) -> Callable[..., bool]:
    """Return a function that sends a signal when it is called first, and fails after some more calls."""
    calls: list[None] = []

    def call(*_: object) -> bool:
        calls.append(None)
        if len(calls) == 1:
            send()
        assert len(calls) < MOST_ROUNDS, "the signal was lost"
        return False

    return call


def run(records: Records) -> None:
    submission.run(records, spec("true"), About(), priority=1, is_strict=False, is_json=False)


def dispatch(records: Records) -> None:
    submission.dispatch(records, until_idle=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("send", [lose, mask])
@pytest.mark.parametrize("command", [run, dispatch])
def test_one_signal_ends_a_dispatcher_wherever_it_arrives(
    records: Records,
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[[Records], None],
    send: Callable[[signal.Signals], None],
    number: signal.Signals,
) -> None:
    monkeypatch.setattr(Dispatcher, "step", interrupting(lambda: send(number)))

    with pytest.raises(KeyboardInterrupt):
        command(records)


@pytest.mark.parametrize("send", [lose, mask])
def test_a_signal_that_arrives_while_the_request_is_made_is_not_lost(
    records: Records, monkeypatch: pytest.MonkeyPatch, send: Callable[[signal.Signals], None]
) -> None:
    monkeypatch.setattr(Dispatcher, "step", interrupting(lambda: None))
    monkeypatch.setattr(submission, "_warn", lambda *_, **__: send(signal.SIGINT))

    with pytest.raises(KeyboardInterrupt):
        run(records)


def wait(records: Records) -> None:
    submission.wait(records, [records.submit(spec("true")).id], timeout=None)


def run_without_dispatching(records: Records) -> None:
    class Restricted(Records):
        may_dispatch = False

    with Restricted(records.directory, user="ca") as restricted:
        run(restricted)


@pytest.mark.parametrize("send", [lose, mask])
@pytest.mark.parametrize("command", [wait, run_without_dispatching])
def test_one_ctrl_c_ends_a_command_that_waits_wherever_it_arrives(
    records: Records,
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[[Records], None],
    send: Callable[[signal.Signals], None],
) -> None:
    monkeypatch.setattr(submission, "sleep", interrupting(lambda: send(signal.SIGINT)))

    with pytest.raises(KeyboardInterrupt):
        command(records)


def test_the_former_handlers_return_and_an_ignored_signal_stays_ignored(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former: list[Any] = [signal.SIG_IGN, signal.SIG_DFL, signal.SIG_IGN]
    kept = [signal.signal(number, it) for number, it in zip(numbers, former, strict=True)]
    seen: list[Any] = []
    monkeypatch.setattr(
        Dispatcher, "step", lambda _: not seen.append([signal.getsignal(it) for it in numbers])
    )
    try:
        submission.dispatch(records, until_idle=True)
        after = [signal.getsignal(it) for it in numbers]
    finally:
        for number, handler in zip(numbers, kept, strict=True):
            signal.signal(number, handler)

    assert after == former
    assert [it is signal.SIG_IGN for it in seen[0]] == [True, False, True]
    assert seen[0][1] is not signal.SIG_DFL
