"""Commands of a batch system on this machine: what they get, what they say, and that they end."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import jpsi_engine.host.local_transport
from jpsi.contract.command import Command, CommandResult
from jpsi.model.errors import SubmitException, TransportError
from jpsi_engine.host.local_transport import LocalTransport
from jpsi_testing.threads import in_this_thread

transport = LocalTransport()


def sh(script: str, *arguments: str, **fields: object) -> Command:
    return Command(["/bin/sh", "-c", script, "sh", *arguments], **fields)  # type: ignore[arg-type]  # whatever a command has


def test_command_is_no_shell_text() -> None:
    hostile = ["$(touch x)", "a b", "'", '"', "*", "\n", ";", ""]

    result = transport.run(sh('printf "%s|" "$@"', *hostile))

    assert result.stdout == "".join(f"{text}|" for text in hostile)


def test_input_output_and_code_are_passed_on() -> None:
    result = transport.run(sh("cat; echo wrong >&2; exit 7", stdin="né\n"))

    assert result == CommandResult(returncode=7, stdout="né\n", stderr="wrong\n")


def test_without_input_a_command_reads_nothing() -> None:
    assert transport.run(sh("cat")).stdout == ""


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert transport.run(sh(r"printf '\377'")).stdout == "\ufffd"


def test_input_that_is_not_read_is_no_error() -> None:
    assert transport.run(Command(["/bin/true"], stdin="x" * 1_000_000)).returncode == 0


def test_environment_is_inherited_except_for_changes_of_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SBATCH_A", "SBATCH_B", "KEPT"):
        monkeypatch.setenv(name, "1")

    command = sh("env", unset=["SBATCH_*", "KEPTNOT"], environment={"SET": "a\nb", "SBATCH_B": "2"})
    lines = transport.run(command).stdout.splitlines()

    assert {"KEPT=1", "SET=a", "b", "SBATCH_B=2"} <= set(lines)
    assert "SBATCH_A=1" not in lines


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({}, None),
        ({"unset": ["SBATCH_*"]}, None),
        ({"unset": ["KE*"]}, {"PATH": "/bin"}),
        ({"environment": {"SET": "1"}}, {"PATH": "/bin", "KEPT": "1", "SET": "1"}),
    ],
    ids=["no change", "nothing to unset", "a variable to unset", "a variable to set"],
)
@pytest.mark.parametrize("start", [transport.run, transport.open], ids=["run", "open"])
def test_process_inherits_the_environment_unless_the_command_changes_it(
    monkeypatch: pytest.MonkeyPatch,
    start: Callable[[Command], object],
    changes: dict[str, Any],
    passed: dict[str, str] | None,
) -> None:
    """Inheriting the environment takes less time than passing a copy."""
    options: list[Any] = []

    def noted(_kind: object, _command: Command, **others: Any) -> None:
        options.append(others["env"])
        msg = "not started"
        raise TransportError(msg)

    monkeypatch.setattr(jpsi_engine.host.local_transport, "_start", noted)
    monkeypatch.setattr(os, "environ", {"PATH": "/bin", "KEPT": "1"})

    with pytest.raises(TransportError, match="not started"):
        start(sh("env", **changes))

    assert options == [passed]


def test_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    fifo = tmp_path / "held"
    os.mkfifo(fifo)
    script = 'echo begun; (exec 3>"$1"; exec sleep 1000) & exec 3>"$1"; exec sleep 1000'
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)

    # it begins within that, on a busy machine too
    result = transport.run(sh(script, str(fifo), timeout=timedelta(seconds=3)))

    assert result.timed_out
    assert result.stdout == "begun\n"
    assert os.read(reader, 1) == b""  # no process is left that could write
    os.close(reader)


def test_missing_command_is_named_in_the_error() -> None:
    with pytest.raises(TransportError, match="the command no-such-command was not found on PATH") as caught:
        transport.run(Command(["no-such-command"]))

    assert not caught.value.may_have_run
    assert not caught.value.transient


def test_lock_is_held_until_the_command_has_ended(tmp_path: Path) -> None:
    """Whatever becomes of the program that started it."""
    path = tmp_path / "lock"
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)

    script = f"flock -n {path} true && echo free || echo held"
    inherited = transport.run(sh("exec 3>&-; " + script), fd)
    os.close(fd)

    assert inherited.stdout == "held\n"
    assert subprocess.run(["flock", "-n", str(path), "true"], check=False).returncode == 0


def test_unchecked_failure_is_a_clear_error() -> None:
    with pytest.raises(SubmitException, match="no such queue"):
        CommandResult(returncode=1, stderr="no such\n queue\n").checked()
    with pytest.raises(SubmitException, match="no answer in time"):
        CommandResult(returncode=0, timed_out=True).checked()
    with pytest.raises(SubmitException, match="exit code 3 and no message"):
        CommandResult(returncode=3).checked()


def test_a_string_is_no_command_line() -> None:
    with pytest.raises(TypeError, match="list of words"):
        Command("ls -l")


def test_exit_code_that_the_application_took_is_no_success() -> None:
    """The application ignores SIGCHLD, so the kernel keeps no exit codes."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(TransportError, match="ignores SIGCHLD") as caught:
            transport.run(sh("exit 1"))
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert caught.value.may_have_run


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no pidfds")
def test_the_exit_of_a_command_that_closed_its_output_is_not_awaited_by_sleeping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: float) -> None:
        pytest.fail("slept")

    monkeypatch.setattr(jpsi_engine.host.local_transport, "_EXIT_WAIT_MS", 60_000)
    monkeypatch.setattr(time, "sleep", in_this_thread(refuse, time.sleep))
    ends_later = Command(["sh", "-c", "exec >&- 2>&-; exec sleep 0.01"], timeout=timedelta(minutes=1))
    assert transport.run(ends_later).returncode == 0


@pytest.mark.parametrize("start", [transport.run, transport.open], ids=["run", "open"])
def test_input_that_cannot_be_encoded_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, start: Callable[[Command], object]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a process was started")

    monkeypatch.setattr(jpsi_engine.host.local_transport, "_start", refuse)

    with pytest.raises(UnicodeEncodeError):
        start(sh("cat", stdin="\ud800"))


def test_a_command_gets_no_input_before_ready_has_returned(tmp_path: Path) -> None:
    proof = tmp_path / "proof"

    result = transport.run(
        sh('cat >/dev/null; cat "$1"', str(proof), stdin="go"), ready=lambda: proof.write_text("before")
    )

    assert result.stdout == "before"


def test_a_command_without_input_starts_after_ready_has_returned(tmp_path: Path) -> None:
    proof = tmp_path / "proof"

    assert (
        transport.run(sh('cat "$1"', str(proof)), ready=lambda: proof.write_text("before")).stdout == "before"
    )


@pytest.mark.parametrize("stdin", [None, "go"])
def test_a_command_does_not_run_if_ready_raises(tmp_path: Path, stdin: str | None) -> None:
    proof = tmp_path / "proof"

    def full() -> None:
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        transport.run(
            sh('read line; [ -z "$line" ] || echo "$line" >"$1"', str(proof), stdin=stdin), ready=full
        )

    assert not proof.exists()
