"""The calls of fake commands, whose scripts start Python only where they need it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    CommandFunction,
    FakeClock,
    FakeScheduler,
    Invocation,
    Task,
    TaskLaunch,
    on_path,
    receive,
    send,
)
from jpsi_testing.fake.callers import find_call
from jpsi_testing.threads import in_this_thread
from jpsi_testing.waiting import eventually

needs_scripts = pytest.mark.skipif(
    shutil.which("bash") is None or not Path("/proc/self/environ").exists(),
    reason="scripts call the server where there is bash and /proc",
)

_ENDED = "esay: the fake batch system has ended\n"


class Echo:
    """A fake of commands that print what they get, with the number of their calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.commands: Mapping[str, CommandFunction] = {
            "esay": self._say,
            "eread": self._read,
            "erun": self._run,
        }

    def unreachable(self, command: str) -> CommandResult:
        return CommandResult(returncode=3, stderr=f"{command}: no scheduler\n")

    def _say(self, _: FakeScheduler, call: Invocation) -> CommandResult:
        self.calls += 1
        code, *words = call.arguments
        return CommandResult(returncode=int(code), stdout="".join(words).replace("NUL", "\0"), stderr="e\n\n")

    def _read(self, _: FakeScheduler, call: Invocation) -> str:
        self.calls += 1
        return str(len(call.stdin))

    def _run(self, _: FakeScheduler, call: Invocation) -> CommandResult:
        return TaskLaunch(tasks=[Task(argv=call.arguments)])


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(1000)) as scheduler:
        yield scheduler


@pytest.fixture
def path(echo: Echo, scheduler: FakeScheduler) -> Iterator[FakeScheduler]:
    with on_path(echo, scheduler):
        yield scheduler


@pytest.fixture
def without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands that are written from now on have no Python to start."""
    monkeypatch.setattr(sys, "executable", "/no/python")


def run(*argv: str, **options: Any) -> tuple[int, str, str]:
    done = subprocess.run(argv, check=False, capture_output=True, timeout=30, **options)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@needs_scripts
@pytest.mark.usefixtures("without_python")
@pytest.mark.parametrize(
    "text", ["", "a\n\n", "  a\\b\t\r\n", "x" * 20_000], ids=["none", "lines", "blanks", "long"]
)
def test_a_short_answer_needs_no_python(echo: Echo, scheduler: FakeScheduler, text: str) -> None:
    with on_path(echo, scheduler):
        assert run("esay", "7", text) == (7, text, "e\n\n")


@needs_scripts
@pytest.mark.usefixtures("without_python")
def test_standard_input_from_a_pipe_needs_no_python(echo: Echo, scheduler: FakeScheduler) -> None:
    with on_path(echo, scheduler):
        assert run("eread", input="ü".encode() * 100_000) == (0, "100000", "")
        assert run("sh", "-c", "true | eread")[1] == "0"


@pytest.mark.parametrize("source", ["file", "nothing"])
def test_other_standard_input_is_read_too(
    path: FakeScheduler, echo: Echo, tmp_path: Path, source: str
) -> None:
    """A file is read from where the caller has got to, and not again."""
    (tmp_path / "file").write_text("first\nsecond\n")
    file = tmp_path / "file" if source == "file" else os.devnull

    done = run("bash", "-c", f"{{ read -r; eread; cat; }} <{file}")

    assert done[1] == ("7" if source == "file" else "0")
    assert echo.calls == 1


@pytest.mark.parametrize("text", ["ü", "NUL", "x" * 100_000], ids=["not ASCII", "NUL", "too long"])
def test_other_answers_arrive_after_one_call(path: FakeScheduler, echo: Echo, text: str) -> None:
    assert run("esay", "3", text) == (3, text.replace("NUL", "\0"), "e\n\n")
    assert (echo.calls, len(path.log)) == (1, 1)


@pytest.mark.parametrize("code", [256, -signal.SIGTERM])
def test_codes_that_no_shell_exits_with_arrive_after_one_call(
    path: FakeScheduler, echo: Echo, code: int
) -> None:
    assert run("esay", str(code))[0] == min(code, 0)
    assert echo.calls == 1


@needs_scripts
def test_the_environment_of_a_call_is_that_of_the_caller(path: FakeScheduler, tmp_path: Path) -> None:
    """It has what disturbs a shell, and nothing that a shell adds."""
    environment = {
        "A.b": "c\nd",
        "TMOUT": "1",
        "POSIXLY_CORRECT": "1",
        "SHELLOPTS": "xtrace",
        "jpsi": "\udcff",
    }
    command = str(shutil.which("esay"))

    assert run(command, "0", "a b", "", env=environment, cwd=tmp_path) == (0, "a b", "e\n\n")
    call = path.log[-1].invocation
    assert (call.environment, call.argv, call.directory) == (
        environment,
        ("esay", "0", "a b", ""),
        str(tmp_path),
    )


def test_a_caller_waits_however_long_the_answer_takes(path: FakeScheduler) -> None:
    """TMOUT is the timeout of `read` in bash."""
    with subprocess.Popen(
        ["eread"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TMOUT": "0.001"}
    ) as process:
        assert eventually(lambda: path.log.count("eread") == 1)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)

        assert process.communicate(b"four", timeout=30)[0] == b"4"


def test_a_caller_that_is_killed_does_not_keep_the_batch_system_waiting(path: FakeScheduler) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(["eread"], stdin=reader)
    os.close(reader)
    assert eventually(lambda: path.log.count("eread") == 1)
    process.kill()
    process.wait()

    assert run("esay", "0", "a")[1] == "a"
    os.close(writer)


@needs_scripts
def test_a_process_without_the_secret_gets_no_answer(path: FakeScheduler) -> None:
    port = port_of(Path(str(shutil.which("esay"))).read_text())
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(f"{'0' * 64} {os.getpid()} 0 esay\n".encode())

        assert connection.recv(100) == b""
    assert len(path.log) == 0


def port_of(script: str) -> int:
    found = re.search("^jpsi_port=([0-9]+)$", script, re.MULTILINE)
    assert found is not None
    return int(found[1])


@needs_scripts
def test_a_script_that_cannot_reach_the_port_calls_all_the_same(path: FakeScheduler, tmp_path: Path) -> None:
    """A container may have a network of its own."""
    script = Path(str(shutil.which("esay"))).read_text()
    command = tmp_path / "esay"
    command.write_text(re.sub("^jpsi_port=.*$", "jpsi_port=1", script, flags=re.MULTILINE))
    command.chmod(0o700)

    assert run(str(command), "7", "a") == (7, "a", "e\n\n")


def test_a_machine_without_bash_has_the_same_commands(
    echo: Echo, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr(shutil, "which", in_this_thread(lambda _: None, shutil.which))
        stack.enter_context(on_path(echo, scheduler))
        patch.undo()

        assert Path(str(shutil.which("esay"))).read_text().startswith("#!/bin/sh\nexec ")
        assert run("esay", "7", "a") == (7, "a", "e\n\n")
        assert run("eread", input=b"four")[1] == "4"


@pytest.fixture
def orphan(echo: Echo, tmp_path: Path) -> Path:
    """Return the script of a command whose batch system has ended."""
    orphan = tmp_path / "esay"
    with on_path(echo):
        shutil.copy(str(shutil.which("esay")), orphan)
    return orphan


def listening_for(script: Path) -> socket.socket:
    """Return a socket that listens on the port that the script calls from now on."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = f"jpsi_port={listener.getsockname()[1]}"
    script.write_text(re.sub("^jpsi_port=.*$", port, script.read_text(), flags=re.MULTILINE))
    return listener


@pytest.mark.parametrize("variables", [{}, {"POSIXLY_CORRECT": "1"}], ids=["bash", "POSIX mode"])
def test_a_command_fails_once_the_batch_system_has_ended(orphan: Path, variables: dict[str, str]) -> None:
    assert run(str(orphan), env={**os.environ, **variables}) == (255, "", _ENDED)


@needs_scripts
@pytest.mark.parametrize("answer", ["0 6 0\nforged", "client\n", ""], ids=["text", "client", "nothing"])
def test_a_command_believes_no_other_server(orphan: Path, answer: str) -> None:
    """Another user may listen on the port once the batch system has ended."""
    with (
        listening_for(orphan) as listener,
        subprocess.Popen([orphan], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        connection, _ = listener.accept()
        with connection, contextlib.suppress(ConnectionError):
            assert connection.recv(1000).endswith(f" {process.pid} 0 esay\n".encode())
            if answer:
                connection.sendall(f"{'0' * 64} {answer}".encode())
                send(connection, {"returncode": 0, "stdout": "forged", "stderr": ""})
                receive(connection)
        assert process.communicate(timeout=30) == ("", _ENDED)

    assert process.returncode == 255


@needs_scripts
def test_an_answer_that_is_cut_is_none(orphan: Path) -> None:
    secret = re.search("^jpsi_server_secret=([0-9a-f]+)$", orphan.read_text(), re.MULTILINE)
    assert secret is not None
    with (
        listening_for(orphan) as listener,
        subprocess.Popen([orphan], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(f"{secret[1]} 0 6 0\nhal".encode())
        assert process.communicate(timeout=30) == ("", _ENDED)


def test_tasks_get_no_other_open_files(path: FakeScheduler) -> None:
    """The server would not see that the command was killed as long as a task had its connection."""
    names = [sys.executable, "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))"]

    assert run("erun", *names)[1] == run(*names)[1]


def test_a_script_with_another_name_may_be_called(path: FakeScheduler, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(str(shutil.which("esay")))

    assert run(str(tmp_path / "link"), "0", "a")[1] == "a"
    assert path.log[-1].command == "esay"


@needs_scripts
def test_a_call_is_read_from_proc() -> None:
    with subprocess.Popen(
        ["sh", "-c", "echo begun; read -r _", "sh", "a", ""],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        found = find_call(process.pid, 2, "sh")
        others = find_call(process.pid, 2, "squeue"), find_call(process.pid, 9, "squeue")
        process.kill()

    assert found is not None
    assert (found["argv"], found["directory"]) == (["sh", "a", ""], "/")
    assert (*others, find_call(process.pid, 2, "sh")) == (None, None, None)
