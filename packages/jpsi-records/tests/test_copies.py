"""What can be made again when the database is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jpsi_records.copies import keep_copy, reindex
from jpsi_records.model import RequestState
from jpsi_records.records import Records
from playing import finish, start, wish

# Each time in a process of its own, which kills itself before or after the nth thing that it writes.
ASKING = """\
import contextlib, os, signal, sys

from jpsi_records import copies
from jpsi_records.records import Records
from jpsi_records.store.database import Database
from jpsi_records.wish import read_wish

directory, url, instants = sys.argv[1:]
write_whole, writing = copies.write_whole, Database.writing


def killed(instant):
    count = 0

    def tick():
        nonlocal count
        count += 1
        if count == instant:
            os.kill(os.getpid(), signal.SIGKILL)

    def written_whole(*arguments):
        tick()
        write_whole(*arguments)
        tick()

    @contextlib.contextmanager
    def written(self):
        with writing(self) as connection:
            yield connection
            tick()
        tick()

    copies.write_whole, Database.writing = written_whole, written
    Records(directory, url=url, user="ca").submit(read_wish({"command": ["true"]}))


for instant in range(1, int(instants) + 2):
    if (pid := os.fork()) == 0:
        killed(instant)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
INSTANTS = 4


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_no_request_is_in_the_records_without_its_copy(records: Records, url: str, tmp_path: Path) -> None:
    """Whenever who makes it is killed; a copy without its request says nothing that is to be done."""
    execution = records.submit(wish("true")).execution or ""
    start(records, execution)
    finish(records, execution)
    keep_copy(records, execution)
    command = [sys.executable, "-c", ASKING, str(records.directory), url, str(INSTANTS)]

    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)

    assert done.stdout.split() == [*(["-9"] * INSTANTS), "0"]
    with Records(records.directory, url=f"sqlite:///{tmp_path}/new.sqlite", user="ca") as new:
        reindex(new)
        there, again = ({it.id: it for it in one.requests()} for one in (records, new))
    # the first, the one that was killed after all was done, and the last
    assert len(there) == 3
    assert {name: again[name] for name in there} == there
    assert {it.state for it in again.values()} == {RequestState.FINAL}
    assert len(again) == 5


def test_copies_are_private(records: Records) -> None:
    """They say who has asked for what, in a directory that other users may enter."""
    execution = records.submit(wish("true")).execution or ""
    start(records, execution)
    finish(records, execution)
    keep_copy(records, execution)
    records.submit(wish("true"))

    copies = list(records.directory.glob("executions/*/**/*.json"))

    assert len(copies) == 2
    assert {it.stat().st_mode & 0o777 for it in copies} == {0o600}
