"""The program that sends a request to the agent."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jpsi_pilot import client


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Yield the socket on which an agent would listen."""
    folder = tmp_path / "pilots"
    folder.mkdir(mode=0o700)
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(client.SOCKET)
        agent.listen()
        yield agent


def run_with_responses(
    agent: socket.socket, responses: Sequence[bytes]
) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run the program with these responses, one per connection; return its result and the connections."""
    requests: list[bytes] = []

    def serve() -> None:
        for response in responses:
            connection, _ = agent.accept()
            with connection:
                # an agent that dies reads nothing, which resets the connection
                if response:
                    requests.append(b"".join(iter(lambda: connection.recv(1 << 16), b"")))  # noqa: B023  at once
                    connection.sendall(response)
                else:
                    requests.append(b"")

    thread = threading.Thread(target=serve)
    thread.start()
    done = subprocess.run(
        [sys.executable, "-I", "-S", client.__file__, str(Path.cwd().parent)],
        input='{"do": "query", "ids": null}\n',
        capture_output=True,
        text=True,
        check=False,
    )
    thread.join()
    return done, len(requests)


def test_a_response_is_printed(agent: socket.socket) -> None:
    done, _ = run_with_responses(agent, [b'0\n{"jobs":{}}\n'])

    assert (done.returncode, done.stdout) == (0, '{"jobs":{}}\n')


def test_a_refusal_of_the_agent_is_printed(agent: socket.socket) -> None:
    done, _ = run_with_responses(agent, [b"4\nno such engine\n"])

    assert (done.returncode, done.stderr) == (client.REFUSED, "no such engine\n")


@pytest.mark.parametrize("cut", [b"", b"0\n{"], ids=["at once", "in the middle"])
def test_the_next_agent_gets_the_request_if_one_ends_before_its_response(
    agent: socket.socket, cut: bytes
) -> None:
    done, count = run_with_responses(agent, [cut, b'0\n{"jobs":{}}\n'])

    assert (done.returncode, done.stdout, count) == (0, '{"jobs":{}}\n', 2)


def test_the_client_fails_if_all_agents_end_before_their_response(agent: socket.socket) -> None:
    done, count = run_with_responses(agent, [b""] * 3)

    assert (done.returncode, done.stderr) == (client.UNCLEAR, "the pilots' agent ended before it answered\n")
    assert count == 3


@pytest.mark.parametrize("answer", [f"{client.NOT_SENT}\nno disk\n", f"{client.REFUSED}\nno such engine\n"])
def test_the_answer_is_unclear_if_an_agent_ended_and_the_next_does_not_take_the_job(
    agent: socket.socket, answer: str
) -> None:
    """The agent that ended may have taken it."""
    done, count = run_with_responses(agent, [b"", answer.encode()])

    assert (done.returncode, count) == (client.UNCLEAR, 2)
    assert done.stderr == answer.partition("\n")[2]


def test_the_answer_is_unclear_if_an_agent_ended_and_then_none_can_be_reached(
    agent: socket.socket, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    connections = [client.connect_agent]

    def connect(folder: str) -> Any:
        if connections:
            return connections.pop()(folder)
        msg = "no agent"
        raise ConnectionRefusedError(msg)

    monkeypatch.setattr(client, "connect_agent", connect)
    monkeypatch.setattr(sys, "argv", ["client.py", str(Path.cwd().parent)])
    monkeypatch.setattr(client, "render_message", lambda request: request)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"do": "submit"}\n')))

    def end_at_once() -> None:
        agent.accept()[0].close()

    thread = threading.Thread(target=end_at_once)
    thread.start()

    code = client.main()

    thread.join()
    assert code == client.UNCLEAR
    assert "cannot be reached: no agent" in capfd.readouterr().err


def test_the_client_uses_no_agent_in_a_directory_of_another_user(agent: socket.socket) -> None:
    Path.cwd().chmod(0o777)

    done = subprocess.run(
        [sys.executable, "-I", "-S", client.__file__, str(Path.cwd().parent)],
        input="{}\n",
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == client.NOT_SENT
    assert "other users have access to it" in done.stderr
