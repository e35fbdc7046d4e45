"""The transport with a real sshd and the OpenSSH client."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from conftest import servers
from jpsi.plugin import Command, TransportError
from jpsi_ssh.address import Address
from jpsi_ssh.transport import SshTransport
from jpsi_testing.waiting import eventually

# They count the connections of the user.
pytestmark = pytest.mark.alone


def _sh(text: str, seconds: float | None = None) -> Command:
    return Command(["sh", "-c", text], timeout=None if seconds is None else timedelta(seconds=seconds))


@pytest.fixture
def frozen(cluster: SshTransport) -> Iterator[list[int]]:
    """Yield the stopped servers of the connection to `cluster`, as after a network failure."""
    before = servers()
    cluster.run(Command(["true"]))
    own = [pid for pid in servers() if pid not in before]
    for pid in own:
        os.kill(pid, signal.SIGSTOP)
    yield own
    for pid in set(own) & set(servers()):
        os.kill(pid, signal.SIGCONT)


def test_words_input_and_codes_arrive_with_any_login_shell(transport: SshTransport) -> None:
    argv = ["sh", "-c", 'printf "%s|" "$@"; cat; echo err >&2; exit 3', "sh", "a b", "$HOME", "!x", "é'\n"]

    result = transport.run(Command(argv, stdin="input\n"))

    assert (result.returncode, result.stdout) == (3, "a b|$HOME|!x|é'\n|input\n")
    assert result.stderr == "err\n"


def test_large_input_and_output_arrive_whole(transport: SshTransport) -> None:
    text = "0123456789abcde\n" * 200_000

    assert transport.run(Command(["cat"], stdin=text)).stdout == text


def test_two_hundred_commands_at_once_share_one_connection_of_three_sessions(cluster: SshTransport) -> None:
    before = servers()
    lines = iter(cluster.open(_sh("echo 1; sleep 1000; :")))
    assert next(lines) == "1"

    with ThreadPoolExecutor(200) as pool:
        results = list(pool.map(lambda number: cluster.run(_sh(f"echo {number}")).stdout, range(200)))

    assert results == [f"{number}\n" for number in range(200)]
    assert len(servers()) - len(before) == 1
    lines.close()


def test_a_timed_out_command_is_killed_remotely_and_frees_its_session(
    transport: SshTransport, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    tmp_path.chmod(0o777)
    for parent in list(tmp_path.parents)[:2]:
        parent.chmod(parent.stat().st_mode | 0o011)

    for _ in range(5):
        assert transport.run(_sh(f"sleep 2; touch {proof}; :", 0.2)).timed_out

    assert transport.run(Command(["echo", "x"])).stdout == "x\n"
    time.sleep(2.5)
    assert not proof.exists()


def test_a_lost_connection_is_reconnected(cluster: SshTransport, tmp_path: Path) -> None:
    before = servers()
    begun = tmp_path / "begun"

    def cut() -> None:
        assert eventually(begun.exists)
        for pid in set(servers()) - set(before):
            os.kill(pid, signal.SIGKILL)

    cutting = threading.Thread(target=cut)
    cutting.start()
    with pytest.raises(TransportError, match="the connection to cluster broke") as raised:
        cluster.run(_sh(f"touch {begun}; sleep 5; :"))
    cutting.join()

    assert raised.value.transient
    assert raised.value.may_have_run
    assert cluster.run(Command(["echo", "x"])).stdout == "x\n"


def test_a_silent_connection_respects_the_timeout(cluster: SshTransport, frozen: list[int]) -> None:
    begun = time.monotonic()

    result = cluster.run(Command(["true"], timeout=timedelta(seconds=1)))

    assert result.timed_out
    assert time.monotonic() - begun < 10


@pytest.mark.long
def test_a_silent_connection_is_dropped_and_reconnected(cluster: SshTransport, frozen: list[int]) -> None:
    assert cluster.run(Command(["true"], timeout=timedelta(seconds=1))).timed_out

    assert eventually(lambda: _responses(cluster))


def _responses(transport: SshTransport) -> bool:
    try:
        return transport.run(Command(["true"], timeout=timedelta(seconds=1))).returncode == 0
    except TransportError as e:
        if not e.transient:
            raise
        return False


@pytest.mark.parametrize(
    ("host", "meaning"),
    [
        ("cluster-unknown", "the host key of cluster-unknown is not known yet"),
        ("cluster-changed", "cluster-changed has another host key than the known one"),
        ("cluster-locked", "cluster-locked refuses your login"),
        ("cluster-silent", "cluster-silent cannot be reached"),
        ("nowhere.invalid", "there is no host nowhere.invalid"),
    ],
)
def test_login_failures_are_explained_in_a_sentence(runtime: Path, host: str, meaning: str) -> None:
    with pytest.raises(TransportError, match=meaning) as raised:
        SshTransport(Address(host)).run(Command(["true"]))

    assert not raised.value.may_have_run


def test_later_programs_reuse_the_connection(cluster: SshTransport) -> None:
    before = servers()
    cluster.run(Command(["true"]))
    connected = servers()

    cluster.close()
    cluster.run(Command(["true"]))

    assert len(connected) - len(before) == 1
    assert servers() == connected


_PROMPT_SCRIPT = """
from jpsi.plugin import Command, TransportError
from jpsi_ssh.address import Address
from jpsi_ssh.transport import SshTransport
try:
    SshTransport(Address("cluster-unknown")).run(Command(["true"]))
except TransportError as e:
    print("error:", e, flush=True)
"""


def test_passwords_are_prompted_on_the_terminal(runtime: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", _PROMPT_SCRIPT])

    shown = _read(terminal, "(yes/no/[fingerprint])? ")
    os.write(terminal, b"no\n")
    shown += _read(terminal, "Host key verification failed.")
    os.close(terminal)
    os.waitpid(pid, 0)

    assert "SHA256:" in shown
    assert "error: the host key of cluster-unknown is not known yet" in shown


def _read(terminal: int, end: str) -> str:
    """Return the output on a terminal up to this text."""
    shown = ""
    while end not in shown:
        assert select.select([terminal], [], [], 30)[0], shown
        try:
            shown += os.read(terminal, 4096).decode()
        except OSError as e:
            # the process on the terminal has ended
            raise AssertionError(shown) from e
    return shown
