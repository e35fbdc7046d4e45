"""The identity of processes: the system reuses pids."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import attrs
import pytest

from jpsi_engine.host import procfs
from jpsi_engine.host.procfs import (
    UNKNOWN_START,
    ProcessId,
    belongs_to_user,
    boot_id,
    command_line,
    identify,
    identify_started,
    parse_native_id,
    session,
    start_tick,
)
from jpsi_testing.waiting import eventually

linux = pytest.mark.skipif(not procfs._HAS_PROC, reason="reads /proc")


@attrs.define
class Child:
    """A process that waits for its input to end."""

    pid: int
    input: int

    def end(self) -> None:
        """Let it end, and wait until it is a zombie."""
        if self.input >= 0:
            os.close(self.input)
            self.input = -1
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def reap(self) -> None:
        if self.pid:
            self.end()
            os.waitpid(self.pid, 0)
            self.pid = 0


def start(*command: str, **options: object) -> Child:
    reader, writer = os.pipe()
    pid = os.posix_spawnp(
        command[0],
        command,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)],
        **options,  # type: ignore[arg-type]
    )
    os.close(reader)
    return Child(pid, writer)


@pytest.fixture
def child() -> Iterator[Child]:
    made = start("cat", setsid=True)
    yield made
    made.reap()


def dead() -> ProcessId:
    """Return a process that ended a moment ago."""
    made = start("cat")
    process = identify(made.pid)
    made.reap()
    assert process is not None
    return process


def test_process_is_identified_by_pid_and_start(child: Child) -> None:
    process = identify(child.pid)

    assert process is not None
    assert process.pid == child.pid
    assert process.start != UNKNOWN_START
    assert process == identify(child.pid)
    assert process.is_alive()


def test_own_process_is_alive() -> None:
    process = identify(os.getpid())

    assert process is not None
    assert process.is_alive()


def test_zombie_is_not_alive_but_can_still_be_identified(child: Child) -> None:
    process = identify(child.pid)
    assert process is not None

    child.end()

    assert not process.is_alive()
    assert identify(child.pid) == process
    assert process.parent() == os.getpid()


def test_pid_of_an_ended_process_identifies_no_process() -> None:
    process = dead()

    assert not process.is_alive()
    assert process.parent() is None
    assert identify(process.pid) is None


def test_process_with_the_pid_of_another_is_not_that_one() -> None:
    process = identify(os.getpid())
    assert process is not None

    for start_time in (process.start - 1, process.start + 1, UNKNOWN_START, -1):
        assert not ProcessId(os.getpid(), start_time).is_alive()
        assert ProcessId(os.getpid(), start_time).parent() is None


def test_native_id_names_pid_start_and_boot(child: Child) -> None:
    process = identify(child.pid)
    assert process is not None

    assert process.native_id == f"{child.pid}.{process.start}.{boot_id()}"
    assert parse_native_id(process.native_id) == process


def test_plain_pid_means_the_process_that_has_it_now(child: Child) -> None:
    assert parse_native_id(str(child.pid)) == identify(child.pid)


def test_native_id_without_boot_is_of_this_one() -> None:
    assert parse_native_id("12.34") == ProcessId(12, 34)


@pytest.mark.parametrize(
    "native_id",
    [
        *(
            "",
            "x",
            "-1",
            "1.",
            "1.2.",
            "1.2.x",
            "1.2.3.4",
            " 1",
            "1 ",
            "1\n",
            "1.-2",
            "0",
            "99999999999999999",
        ),
        "1.2.00000000",
    ],
)
def test_a_native_id_of_another_boot_is_no_process(native_id: str) -> None:
    assert parse_native_id(native_id) is None


def test_start_time_is_not_read_if_the_clock_has_not_advanced(
    monkeypatch: pytest.MonkeyPatch, child: Child
) -> None:
    process = identify(child.pid)
    assert process is not None
    monkeypatch.setattr(procfs, "start_tick", lambda: process.start)

    assert identify_started(child.pid, process.start) == process
    assert identify_started(child.pid, process.start - 1) == process


@linux
def test_process_started_now_has_the_start_time_of_now() -> None:
    for _ in range(20):
        before = start_tick()
        made = start("cat")
        process, after = identify(made.pid), start_tick()
        made.reap()
        assert process is not None
        assert before <= process.start <= after


def test_command_line_has_the_arguments_of_the_process(child: Child) -> None:
    # empty while the program is being loaded
    _until(lambda: command_line(child.pid) != "")

    assert command_line(child.pid) == "cat\0"


def test_command_line_of_an_ended_process_is_empty() -> None:
    assert command_line(dead().pid) == ""


def test_process_of_this_user_belongs_to_the_user(child: Child) -> None:
    assert belongs_to_user(child.pid)
    assert belongs_to_user(os.getpid())


def test_an_ended_process_does_not_belong_to_the_user() -> None:
    assert not belongs_to_user(dead().pid)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may signal every process")
def test_process_of_another_user_does_not_belong_to_the_user() -> None:
    assert not belongs_to_user(1)


def test_session_is_the_leader_and_its_descendants() -> None:
    leader = start("sh", "-c", "cat & exec cat", setsid=True)
    process = identify(leader.pid)
    assert process is not None
    try:
        # the background process is there once `exec` has been carried out
        _until(lambda: command_line(leader.pid).startswith("cat"))

        members = session(process)

        assert leader.pid in members
        assert os.getpid() not in members
        assert all(os.getsid(pid) == leader.pid for pid in members)
    finally:
        leader.reap()


def test_session_outlives_its_leader() -> None:
    """The leftover processes of a job are found by the pid of its runner that is gone."""
    leader = start("sh", "-c", "exec 3<&0; cat <&3 & ", setsid=True)
    process = identify(leader.pid)
    assert process is not None
    os.waitpid(leader.pid, 0)

    members = session(process)

    assert len(members) == 1
    assert os.getsid(members[0]) == leader.pid
    os.close(leader.input)


def test_session_of_another_process_with_the_same_pid_is_not_meant(child: Child) -> None:
    process = identify(child.pid)
    assert process is not None

    assert session(process) == [child.pid]
    assert session(attrs.evolve(process, start=process.start - 1)) == []
    assert session(ProcessId(child.pid, UNKNOWN_START)) == []


def test_zombies_are_no_members_of_a_session(child: Child) -> None:
    process = identify(child.pid)
    assert process is not None

    child.end()

    assert session(process) == []


@linux
def test_name_of_a_process_may_hold_anything() -> None:
    """The name is in parentheses in the middle of /proc/PID/stat."""
    rename = "open('/proc/self/comm', 'w').write(') Z 1 (x\\n) R')"
    code = f"input(); {rename}; print(flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        before = identify(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()

        assert before is not None
        assert before == identify(process.pid)
        assert before.is_alive()
        process.communicate(b"\n")


@pytest.mark.skipif(not os.access("/bin/ps", os.X_OK), reason="no ps(1)")
def test_ps_gives_the_same_results_as_proc(monkeypatch: pytest.MonkeyPatch, child: Child) -> None:
    monkeypatch.setattr(procfs, "_HAS_PROC", False)

    process = identify(child.pid)

    assert process is not None
    assert process.is_alive()
    assert process.start != UNKNOWN_START
    assert process.parent() == os.getpid()
    assert session(process) == [child.pid]
    assert command_line(child.pid) == "cat"
    child.reap()
    assert not process.is_alive()
    assert session(process) == []


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


@linux
def test_the_leader_of_a_session_is_found_by_its_variable() -> None:
    name = f"JPSI_TEST_{os.urandom(8).hex()}"
    leader = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 100 & read x"],
        stdin=subprocess.PIPE,
        env={name: "a"},
        start_new_session=True,
    )

    found: list[ProcessId | None] = []

    def is_found() -> bool:
        # while a process executes a program, the kernel shows no variables
        found.append(procfs.find_leader(f"{name}=a"))
        return found[-1] is not None

    assert eventually(is_found)
    os.killpg(leader.pid, signal.SIGKILL)
    leader.communicate()
    assert found[-1] is not None
    assert found[-1].pid == leader.pid
    assert procfs.find_leader(f"{name}=a") is None
    assert procfs.find_leader(f"{name}=") is None
