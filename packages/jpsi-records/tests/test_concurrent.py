"""Requests that several processes commit at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fake_dispatcher import Client, spec
from jpsi_records.records.records import Records

#: `./dev e2e_postgres` makes a thousand tries.
TRIES = int(os.environ.get("JPSI_CI_TRIES", "100"))
COMMITTING = """\
import sys
from jpsi_records.records.records import Records
from jpsi_records.model.request_spec import read_request_spec

directory, url, user, tries = sys.argv[1:]
with Records(directory, url=url, user=user) as records:
    sys.stdin.readline()
    for number in range(int(tries)):
        records.submit(read_request_spec({"command": ["compute", str(number)]}))
"""


def _committed(script: str, tmp_path: Path, url: str, users: Sequence[str], *, tries: int) -> list[int]:
    """Commit requests from several processes at the same time; return their exit codes."""
    others = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "records"), url, user, str(tries)],
            stdin=subprocess.PIPE,
        )
        for user in users
    ]
    for other in others:
        assert other.stdin is not None
        other.stdin.write(b"\n")
        other.stdin.close()
    return [other.wait(timeout=900) for other in others]


def test_two_processes_with_the_same_request_get_the_same_execution(
    client: Client, url: str, tmp_path: Path
) -> None:
    records = client("reader")
    assert _committed(COMMITTING, tmp_path, url, ["ca", "cb"], tries=TRIES) == [0, 0]

    executions = Counter(it.execution for it in records.requests())
    assert len(executions) == TRIES
    assert set(executions.values()) == {2}


WITHOUT_LOCKS = """\
import sqlite3
import sqlalchemy
from jpsi_records.store import database

def create_engine(url, **more):
    place = f"file:{url.database}?vfs=unix-none"
    return sqlalchemy.create_engine(url, creator=lambda: sqlite3.connect(place, uri=True), **more)

database.create_engine = create_engine
database.is_on_network = lambda path: True
"""


def test_without_working_locks_one_process_writes_at_a_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/records.sqlite"
    script = WITHOUT_LOCKS + COMMITTING
    assert _committed(script, tmp_path, url, ["ca", "cb", "cc"], tries=30) == [0, 0, 0]

    with Records(tmp_path / "records", url=url) as records:
        executions = Counter(it.execution for it in records.requests())
    assert sorted(executions.values()) == [3] * 30


def test_records_that_several_processes_open_first_are_created_once(tmp_path: Path, url: str) -> None:
    opening = (
        "import sys; from jpsi_records.records.records import Records; Records(sys.argv[1], url=sys.argv[2])"
    )
    command = [sys.executable, "-c", opening, str(tmp_path / "records"), url]

    others = [subprocess.Popen(command) for _ in range(4)]

    assert [other.wait(timeout=100) for other in others] == [0] * 4


DISPATCHING = """\
import sys
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.records.records import Records

directory, url = sys.argv[1:]
with Records(directory, url=url) as records:
    Dispatcher(records).run(until_idle=True)
"""


def test_of_several_dispatchers_one_runs_each_execution(url: str, tmp_path: Path) -> None:
    with Records(tmp_path / "records", url=url) as records:
        for number in range(10):
            script = f"echo {number} >>{tmp_path}/runs"
            records.submit(spec("sh", "-c", script))
        command = [sys.executable, "-c", DISPATCHING, str(tmp_path / "records"), url]

        others = [subprocess.Popen(command) for _ in range(3)]

        assert [other.wait(timeout=300) for other in others] == [0] * 3
        assert sorted((tmp_path / "runs").read_text().split()) == [str(it) for it in range(10)]
        assert {it.outcome for it in records.requests()} == {"complete"}
