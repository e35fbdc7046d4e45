"""The program of the remote shell, run by real shells as on the remote host."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_ssh import lives
from jpsi.plugin import Command
from jpsi_ssh.protocol.remote_shell import program
from jpsi_ssh.protocol.requests import Mode, Request, request
from jpsi_ssh.protocol.responses import Response
from jpsi_testing.waiting import eventually

_FOUND = {
    name: path for name in ("dash", "bash", "ksh", "mksh", "yash", "sh") if (path := shutil.which(name))
}
# each shell once, whatever its names on this host
_SHELLS = list({os.path.realpath(path): name for name, path in _FOUND.items()}.values())
_NONCE = "0123abcd"
# A head(1) that reads whole blocks, as some do for any requested size.
_POOR_HEAD = """#!/bin/sh
exec dd bs=4096 count=1 2>/dev/null | dd bs=1 count="$2" 2>/dev/null
"""


Start = Callable[..., "Shell"]


class Shell:
    """A shell with the program, in its own process group."""

    def __init__(self, shell: str, folder: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [shell],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder), **environment},
            start_new_session=True,
        )
        self.send(program(_NONCE))
        while self.process.stdout.readline() != f"{_NONCE} ready\n".encode():
            pass

    def send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send_request(self, requests: Request) -> Response:
        self.send(requests.sent)
        response = Response.for_nonce(requests.nonce)
        # only the first request of a test prints much
        while not response.is_complete:
            for stream, framed in ((self.process.stdout, response.out), (self.process.stderr, response.err)):
                while framed.verdict is None:
                    line = stream.readline()
                    assert line, (response.out, response.err)
                    framed.feed(line)
        return response

    def rest(self) -> bytes:
        """Return the output until the shell has ended."""
        self.process.stdin.close()
        return self.process.stdout.read()


@pytest.fixture(params=_SHELLS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def start(name: str, tmp_path: Path) -> Iterator[Callable[..., Shell]]:
    """Yield a function that starts shells, which end with the test."""
    shells: list[Shell] = []

    def started(folder: Path = tmp_path, **environment: str) -> Shell:
        shells.append(Shell(name, folder, **environment))
        return shells[-1]

    yield started
    for process in (shell.process for shell in shells):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()


@pytest.fixture
def shell(start: Start) -> Shell:
    return start()


def _run(shell: Shell, *argv: str, **fields: Any) -> Response:
    return shell.send_request(request(Command(argv, **fields), os.urandom(8).hex()))


def test_words_and_input_arrive_unchanged(shell: Shell) -> None:
    script = 'printf "%s|" "$@"; cat'

    response = _run(shell, "sh", "-c", script, "sh", "a b", "$HOME", "", "é'\n*", stdin="#!\n\n")

    assert response.out.text.decode() == "a b|$HOME||é'\n*|#!\n\n"


def test_every_byte_survives_a_round_trip(shell: Shell) -> None:
    data = bytes(range(256)) * 300
    requests = Request("n1", "cat", data)

    assert shell.send_request(requests).out.text == data


def test_requests_run_one_after_the_other(shell: Shell) -> None:
    assert [_run(shell, "sh", "-c", f"exit {code}").out.verdict for code in (0, 7, 0)] == [b"0", b"7", b"0"]


def test_stdout_and_stderr_are_separate(shell: Shell) -> None:
    response = _run(shell, "sh", "-c", "echo out; echo err >&2")

    assert (response.out.text, response.err.text) == (b"out\n", b"err\n")


def test_without_input_there_is_none_to_read(shell: Shell) -> None:
    assert _run(shell, "cat").out.text == b""


def test_a_missing_command_differs_from_a_failed_one(shell: Shell) -> None:
    assert _run(shell, "no-such-command").out.text.endswith(b" not found")
    assert _run(shell, "sh", "-c", "exit 127").out.text == b""


def test_the_remote_shell_sets_and_unsets_variables(start: Start) -> None:
    shell = start(OLD="1", SBATCH_X="1", SBATCH_Y="a\nb", KEPT="1", text="mine")

    command = Command(["env"], unset=["OLD", "SBATCH_*"], environment={"NEW": "a 'b'"})
    lines = shell.send_request(request(command, "n1")).out.text.decode().splitlines()

    assert {"NEW=a 'b'", "KEPT=1", "text=mine"} <= set(lines)
    assert not [line for line in lines if line.startswith(("OLD=", "SBATCH_", "jpsi_"))]


def test_signals_are_unchanged_and_only_the_streams_are_open(shell: Shell) -> None:
    status = _run(shell, "sh", "-c", "kill -INT $$; echo alive").out
    files = _run(shell, "ls", "/dev/fd/").out.text.split()

    assert b"alive" not in status.text
    assert set(files) <= {b"0", b"1", b"2", b"3"}  # one is that of the listing itself


@pytest.mark.parametrize("missing", [1, 2, 5, 8, 12, 20])
def test_a_truncated_request_is_not_run(shell: Shell, tmp_path: Path, missing: int) -> None:
    requests = request(Command(["sh", "-c", f"cat >{tmp_path}/ran"], stdin="script"), _NONCE)

    shell.send(requests.sent[:-missing])
    shell.rest()

    assert not (tmp_path / "ran").exists()


def test_any_line_kills_the_running_process_group(shell: Shell) -> None:
    text = "sleep 1000 & echo begun >&2; sleep 1000; :"
    shell.send(Request("n1", text).sent)
    while shell.process.stderr.readline() != b"begun\n":
        pass

    shell.send(b"end\n")

    assert shell.process.wait(10) == -9
    assert eventually(lambda: not lives(shell.process.pid))


def test_a_plain_command_outlives_the_connection(shell: Shell, tmp_path: Path) -> None:
    shell.send(
        Request(
            "n1", f"echo begun; while ! [ -e {tmp_path}/go ]; do sleep 0.01; done; true >{tmp_path}/ran"
        ).sent
    )
    while shell.process.stdout.readline() != b"begun\n":
        pass
    shell.process.stdin.close()
    shell.process.stdout.close()

    (tmp_path / "go").touch()

    assert eventually((tmp_path / "ran").exists)


def test_a_streamed_command_ends_with_the_connection(shell: Shell) -> None:
    shell.send(Request("n1", "echo begun; sleep 1000; :", mode=Mode.FOLLOW).sent)
    while shell.process.stdout.readline() != b"begun\n":
        pass

    shell.process.stdin.close()

    assert shell.process.wait(10) == -9
    assert eventually(lambda: not lives(shell.process.pid))


def test_the_shell_leaves_no_temporary_files(shell: Shell, tmp_path: Path) -> None:
    _run(shell, "cat", stdin="secret")
    (folder,) = tmp_path.iterdir()

    mode = folder.stat().st_mode & 0o777
    shell.rest()

    assert mode == 0o700
    assert eventually(lambda: not list(tmp_path.iterdir()))


def test_input_that_does_not_fit_is_refused_and_nothing_runs(start: Start, tmp_path: Path) -> None:
    shell = start(tmp_path / "missing")

    response = _run(shell, "touch", str(tmp_path / "ran"), stdin="script")

    assert response.is_refused
    assert b"missing" in response.err.text
    assert not (tmp_path / "ran").exists()


def test_a_head_that_reads_too_much_is_not_used(start: Start, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    head = tmp_path / "bin" / "head"
    head.write_text(_POOR_HEAD)
    head.chmod(0o755)
    shell = start(PATH=f"{head.parent}:{os.environ['PATH']}")

    assert [_run(shell, "cat", stdin="x" * size).out.text for size in (3, 5000)] == [b"xxx", b"x" * 5000]


@pytest.mark.parametrize("command", [["sh", "-n"], ["dash", "-n"], ["bash", "--posix", "-n"]])
def test_the_program_is_posix_shell(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")

    assert subprocess.run(command, input=program(_NONCE), capture_output=True, check=True).stderr == b""
