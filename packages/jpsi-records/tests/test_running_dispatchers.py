"""The dispatchers that run, and what users read if none does."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from fake_dispatcher import Client, Clock, finish, spec
from jpsi_records.commands import messages, submission
from jpsi_records.commands.command import COMMANDS, dispatch_command
from jpsi_records.commands.messages import DispatcherMessage, describe_missing_dispatcher
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.dispatch.leases import Leases
from jpsi_records.model.entities import About, Request
from jpsi_records.records.records import Records
from jpsi_records.store.database import Database
from test_job_messages import Seconds
from test_leases import name_of_ended_process

LEASE = timedelta(seconds=60)
SENTENCE = "no dispatcher runs, without which no request ends; start one by `jpsi request dispatch`"


def test_a_dispatcher_is_known_from_its_first_round_to_its_end(client: Client, clock: Clock) -> None:
    records, other = client("server"), client("ca")
    dispatcher = Dispatcher(records)
    assert other.dispatchers() == []

    for _ in range(3):
        dispatcher.step()
        assert other.dispatchers() == [f"process {os.getpid()} on {socket.gethostname()}"]
        # less than a lease, also while it has nothing to do
        clock.advance(59)
        assert len(other.dispatchers()) == 1
    dispatcher.close()

    assert other.dispatchers() == []
    dispatcher.step()
    assert len(other.dispatchers()) == 1


def test_a_dispatcher_is_registered_before_it_does_anything_that_takes_long(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(Records, "advance", lambda it: seen.append(len(it.dispatchers())))

    Dispatcher(records).step()

    assert seen == [1]


def test_a_killed_dispatcher_does_not_run_and_elsewhere_it_does_for_its_lease(
    records: Records, clock: Clock
) -> None:
    gone = name_of_ended_process()
    elsewhere = " ".join(["host2", *gone.split()[1:]])
    for holder in (gone, elsewhere):
        leases = Leases(records, LEASE)
        leases.holder = holder
        leases.renew([])

    assert records.dispatchers() == [f"process {gone.split()[3]} on host2"]

    clock.advance(60)
    assert records.dispatchers() == []


def test_the_lack_of_a_dispatcher_is_told_once_after_some_seconds(records: Records) -> None:
    clock, dispatcher = Seconds(), Dispatcher(records)
    message = DispatcherMessage(records, clock=clock)
    found = []

    def update(seconds: float) -> None:
        clock.now += seconds
        found.append(list(message.update()))

    update(0)
    update(4)
    dispatcher.step()
    update(4)
    dispatcher.close()
    update(4)
    update(4)
    update(1)
    update(60)

    assert found == [[], [], [], [], [], [SENTENCE], []]


def test_waiting_without_a_dispatcher_names_the_command_that_starts_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "my records"
    with Records(directory) as records:
        request = records.submit(spec("true"))
    checks: list[None] = []

    def sleep(_: float) -> None:
        checks.append(None)
        if len(checks) == 2:
            with Records(directory) as records:
                records.cancel(request.id)

    monkeypatch.setattr(messages, "_PATIENCE_SECONDS", 0)
    monkeypatch.setattr(submission, "sleep", sleep)

    code = COMMANDS["wait"].main(["--records", str(directory), request.id], standalone_mode=False)

    printed = capsys.readouterr()
    command = f"jpsi request dispatch --records '{directory}'"
    assert printed.err == f"jpsi: {SENTENCE.replace('jpsi request dispatch', command)}\n"
    assert (code, printed.out) == (1, f"request {request.id}: cancelled\n")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@server:5433/a", "postgresql+psycopg://me@server:5433/a"),
        ("postgresql://server/a?user=me&password=secret", "postgresql+psycopg://server/a?user=me"),
        ("sqlite:////tmp/a.sqlite", "sqlite:////tmp/a.sqlite"),
    ],
)
def test_the_command_that_starts_a_dispatcher_contains_no_password(url: str, shown: str) -> None:
    records: Any = SimpleNamespace(database=Database(url))

    with click.Context(click.Command("wait")) as context:
        context.params = {"database": url}
        found = dispatch_command(records)

    assert shlex.split(found) == ["jpsi", "request", "dispatch", "--database", shown]


def submit(records: Records, priority: float = 1) -> Request:
    made = submission.submit(records, spec("true"), About(), priority=priority, plan=None, is_strict=False)
    assert isinstance(made, Request)
    return made


def test_on_a_terminal_a_submission_names_the_dispatcher_that_is_missing(
    records: Records, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []

    def note() -> None:
        printed.append(capsys.readouterr().err)

    submit(records)
    note()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    waits = submit(records)
    note()
    submit(records, priority=0)
    note()
    dispatcher = Leases(records, LEASE)
    dispatcher.renew([])
    submit(records)
    note()
    dispatcher.release_all()
    finish(records, waits.execution or "")
    submit(records)
    note()

    assert printed == ["", f"jpsi: {SENTENCE}\n", "", "", ""]


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_user_who_may_not_dispatch_reads_who_may(records: Records, role: Client) -> None:
    user, dispatcher = role("ca"), Dispatcher(records)
    assert user.dispatchers() == []

    found = describe_missing_dispatcher(user)

    assert found == SENTENCE.replace("start one", f"{records.database.owner} starts one")
    dispatcher.step()
    assert len(user.dispatchers()) == 1
    dispatcher.close()
