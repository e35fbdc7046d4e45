"""The transport with a fake of ssh."""

from __future__ import annotations

import errno
import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fake_ssh import FakeSsh, lives, sessions
from jpsi.plugin import Command, ConfigError, FileTransport, LineTransport, TransportError
from jpsi_ssh import transport as transport_module
from jpsi_ssh.address import Address
from jpsi_ssh.connection import Connection, _drop_all
from jpsi_ssh.hooks import open_transport
from jpsi_ssh.protocol import channel
from jpsi_ssh.protocol.channel import Channel
from jpsi_ssh.transport import SshTransport
from jpsi_testing.threads import in_this_thread
from jpsi_testing.waiting import eventually


def _sh(text: str, **fields: Any) -> Command:
    return Command(["sh", "-c", text], **fields)


def test_an_ssh_url_opens_a_remote_transport() -> None:
    transport = open_transport("ssh://me@big:22")

    assert transport.address == Address("big", "me", 22)
    assert isinstance(transport, LineTransport)
    assert isinstance(transport, FileTransport)
    assert not transport.is_local


def test_remote_directories_are_queried_once(
    transport: SshTransport, ssh: FakeSsh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/it's me")
    monkeypatch.setenv("XDG_STATE_HOME", "/scratch")

    found = transport.directories()
    ssh.says("Connection refused")

    assert (found.home, found.work) == ("/home/it's me", "/scratch/jpsi/work")
    assert transport.directories() == found


def test_a_url_without_a_host_is_refused() -> None:
    with pytest.raises(ConfigError):
        open_transport("ssh://")


def test_words_and_input_arrive_unchanged(transport: SshTransport) -> None:
    command = Command(["sh", "-c", 'printf "%s|" "$@"; cat', "sh", "a b", "$HOME", ""], stdin="é\n")

    assert transport.run(command).stdout == "a b|$HOME||é\n"


def test_variables_are_set_and_unset_on_the_remote_host(
    transport: SshTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLD_1", "1")

    variables = transport.run(Command(["env"], unset=["OLD_*"], environment={"NEW": "2"})).stdout.splitlines()

    assert "NEW=2" in variables
    assert "OLD_1=1" not in variables


def test_a_failed_command_is_a_result(transport: SshTransport) -> None:
    result = transport.run(_sh("echo no >&2; exit 1"))

    assert (result.returncode, result.complaint) == (1, "no")


def test_the_result_of_a_killed_command_has_the_signal(transport: SshTransport) -> None:
    assert transport.run(_sh("kill -TERM $$")).returncode == -signal.SIGTERM


def test_a_missing_command_is_an_error(transport: SshTransport) -> None:
    with pytest.raises(TransportError, match=r"no-such was not found on PATH at cluster") as raised:
        transport.run(Command(["no-such"]))

    assert not raised.value.transient
    assert not raised.value.may_have_run


def test_one_connection_serves_all_requests(ssh: FakeSsh, runtime: Path, transport: SshTransport) -> None:
    for _ in range(3):
        transport.run(Command(["true"]))

    assert ssh.connections == 1
    assert len(sessions(runtime)) == 1


def test_executors_of_a_process_share_a_connection(
    ssh: FakeSsh, runtime: Path, transport: SshTransport
) -> None:
    other = SshTransport(transport.address)

    transport.run(Command(["true"]))
    other.run(Command(["true"]))

    assert len(sessions(runtime)) == 1


def test_processes_share_an_open_connection(ssh: FakeSsh, transport: SshTransport) -> None:
    transport.run(Command(["true"]))

    Connection(transport.address).run(Command(["true"]))

    assert ssh.connections == 1


def test_a_stale_control_socket_is_replaced(ssh: FakeSsh, runtime: Path, transport: SshTransport) -> None:
    transport.run(Command(["true"]))
    transport.close()
    (socket,) = runtime.glob("jpsi-ssh/*.0")
    socket.unlink()

    transport.run(Command(["true"]))

    assert ssh.connections == 2


def test_many_threads_share_two_channels(runtime: Path, transport: SshTransport) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: transport.run(_sh(f"sleep 0.01; echo {n}")).stdout, range(40)))

    assert results == [f"{n}\n" for n in range(40)]
    assert len(sessions(runtime)) == 2


def test_at_most_three_sessions_are_used(ssh: FakeSsh, runtime: Path, transport: SshTransport) -> None:
    ssh.allow(3)
    lines = iter(transport.open(_sh("echo 1; sleep 1000; :")))

    assert next(lines) == "1"
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: transport.run(_sh("sleep 0.05")).returncode == 0, range(8)))
    assert ssh.connections == 1
    assert len(sessions(runtime)) == 3
    lines.close()


@pytest.mark.parametrize("allowed", [1, 2])
def test_a_low_session_limit_is_respected(
    ssh: FakeSsh, runtime: Path, transport: SshTransport, allowed: int
) -> None:
    ssh.allow(allowed)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: transport.run(_sh("sleep 0.05")).returncode == 0, range(8)))
    assert ssh.connections == 1
    assert len(sessions(runtime)) == allowed


def test_a_connection_without_free_sessions_is_supplemented(ssh: FakeSsh, transport: SshTransport) -> None:
    ssh.allow(1)
    other = Connection(transport.address)
    other.run(Command(["true"]))

    assert transport.run(Command(["echo", "x"])).stdout == "x\n"
    assert ssh.connections == 2


def test_without_any_free_session_the_first_connection_is_retried(ssh: FakeSsh) -> None:
    now = [0.0]
    connection = Connection(Address("cluster"), lambda: now[0])
    ssh.allow(0)
    with pytest.raises(TransportError, match="Session open refused"):
        connection.run(Command(["true"]))
    assert ssh.connections == 4

    ssh.allow(1)
    now[0] = 100
    assert connection.run(Command(["echo", "x"])).stdout == "x\n"
    assert ssh.connections == 4
    assert ".0 " in ssh.calls[-1]


def test_a_timed_out_command_is_killed_remotely(
    runtime: Path, transport: SshTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    text = f"echo begun; true >{begun}; echo waits >&2; sleep 1000 & sleep 1000; :"
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600 * begun.exists())

    with monkeypatch.context() as patched:
        patched.setattr(channel, "time", clock)
        result = transport.run(_sh(text, timeout=timedelta(hours=1)))

    assert result.timed_out
    assert result.stdout == "begun\n"
    assert eventually(lambda: not sessions(runtime))
    assert transport.run(Command(["echo", "x"])).stdout == "x\n"


def test_hanging_commands_release_their_channels(
    ssh: FakeSsh, runtime: Path, transport: SshTransport
) -> None:
    ssh.allow(2)
    command = _sh("sleep 1000; :", timeout=timedelta(seconds=0.1))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: transport.run(command).timed_out, range(8)))
    assert transport.run(Command(["echo", "x"])).stdout == "x\n"
    assert ssh.connections == 1


@pytest.mark.parametrize(
    "noise",
    [
        "echo Welcome; echo to big >&2",
        "printf 'no newline'; printf 'here neither' >&2",
        "head -c 300000 /dev/urandom; head -c 300000 /dev/urandom >&2",
        "echo '0123 begin'; echo '0123 end 0'",
    ],
)
def test_login_banners_are_ignored(ssh: FakeSsh, transport: SshTransport, noise: str) -> None:
    ssh.login(noise)

    result = transport.run(_sh("echo out; echo err >&2; exit 3"))

    assert (result.stdout, result.stderr, result.returncode) == ("out\n", "err\n", 3)


def test_late_words_of_a_login_are_ignored_between_two_commands(
    ssh: FakeSsh, transport: SshTransport, tmp_path: Path
) -> None:
    first_ran, printed = tmp_path / "first-ran", tmp_path / "printed"
    ssh.login(f"(until [ -e {first_ran} ]; do sleep 0.01; done; echo late; echo late >&2; true >{printed}) &")
    first, second = _sh("echo out; exit 3"), _sh("echo out 2; echo err >&2; exit 4")

    try:
        results = [transport.run(first)]
    finally:
        first_ran.touch()
    assert eventually(printed.exists)
    results.append(transport.run(second))

    assert [(it.stdout, it.stderr, it.returncode) for it in results] == [
        ("out\n", "", 3),
        ("out 2\n", "err\n", 4),
    ]
    assert ssh.connections == 1


def test_a_login_shell_need_not_be_one_of_posix(ssh: FakeSsh, transport: SshTransport) -> None:
    # the message of csh for a line that it cannot parse; it runs the others
    ssh.login('[ "$*" = "exec /bin/sh" ] || { echo "Illegal variable name." >&2; exit 1; }')

    assert transport.run(_sh("x='$1 a'; echo \"$x\"")).stdout == "$1 a\n"


def test_a_login_without_a_shell_is_an_error_with_its_message(ssh: FakeSsh, transport: SshTransport) -> None:
    ssh.login("echo This account is currently not available.; exit 1")

    with pytest.raises(
        TransportError, match=r"cluster accepts your login, but runs no /bin/sh for you: .*not available"
    ) as raised:
        transport.run(Command(["true"]))

    assert not raised.value.may_have_run


def test_a_login_that_never_answers_is_an_error(
    ssh: FakeSsh, runtime: Path, transport: SshTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_ssh.connection._GREET_SECONDS", 0.2)
    ssh.login("sleep 1000")

    with pytest.raises(TransportError, match="no response in 0 seconds") as raised:
        transport.run(Command(["true"]))

    assert raised.value.transient
    for group in sessions(runtime):
        os.killpg(group, signal.SIGKILL)


def test_a_refused_connection_has_its_reason(ssh: FakeSsh, transport: SshTransport) -> None:
    ssh.says("No ED25519 host key is known for cluster and you have requested strict checking.")

    with pytest.raises(TransportError, match="host key of cluster is not known") as raised:
        transport.run(Command(["true"]))

    assert raised.value.transient
    assert not raised.value.may_have_run


def test_a_missing_client_is_an_error(
    transport: SshTransport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(TransportError, match="OpenSSH client cannot be run"):
        transport.run(Command(["true"]))


def test_a_lack_of_descriptors_is_an_error(transport: SshTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("jpsi_ssh.connection.Channel", fails)
    with pytest.raises(
        TransportError, match=r"cannot open a connection to .*: .*Too many open files"
    ) as raised:
        transport.run(Command(["true"]))

    assert raised.value.transient


def test_an_unreachable_host_is_retried_with_backoff(ssh: FakeSsh) -> None:
    now = [0.0]
    connection = Connection(Address("cluster"), lambda: now[0])
    ssh.says("ssh: connect to host cluster port 22: Connection refused")

    for seconds, connections in ((0, 1), (0.9, 1), (1.1, 2), (3.0, 2), (3.2, 3)):
        now[0] = seconds
        with pytest.raises(TransportError, match="Connection refused"):
            connection.run(Command(["true"]))
        assert ssh.connections == connections

    ssh.says("")
    now[0] = 100
    assert connection.run(Command(["echo", "x"])).stdout == "x\n"


def test_a_connection_lost_during_a_command_makes_its_outcome_ambiguous(
    runtime: Path, transport: SshTransport, tmp_path: Path
) -> None:
    def cut() -> None:
        eventually((tmp_path / "begun").exists)
        for group in sessions(runtime):
            os.killpg(group, signal.SIGKILL)

    thread = threading.Thread(target=cut)
    thread.start()
    with pytest.raises(TransportError, match="the connection to cluster broke") as raised:
        transport.run(_sh(f"true >{tmp_path}/begun; sleep 1000; :"))
    thread.join()

    assert raised.value.transient
    assert raised.value.may_have_run
    assert transport.run(Command(["echo", "x"])).stdout == "x\n"


def test_a_connection_lost_while_idle_is_replaced(runtime: Path, transport: SshTransport) -> None:
    transport.run(Command(["true"]))
    assert transport._connection is not None
    clients = [it._process for it in transport._connection._channels]
    for group in sessions(runtime):
        os.killpg(group, signal.SIGKILL)
    assert eventually(lambda: not sessions(runtime) and all(it.poll() is not None for it in clients))

    assert transport.run(Command(["echo", "x"])).stdout == "x\n"


def test_ready_runs_once_and_before_the_command(transport: SshTransport) -> None:
    done: list[int] = []

    assert transport.run(_sh("cat", stdin="x"), ready=lambda: done.append(1)).stdout == "x"
    assert done == [1]


def test_a_failed_ready_prevents_the_command(transport: SshTransport, tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(5, "disk")

    with pytest.raises(OSError, match="disk"):
        transport.run(Command(["touch", str(tmp_path / "ran")]), ready=fail)

    assert transport.run(Command(["echo", "x"])).stdout == "x\n"
    assert not (tmp_path / "ran").exists()


def test_input_that_does_not_fit_on_the_disk_is_an_error_and_runs_nothing(
    transport: SshTransport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))

    with pytest.raises(
        TransportError, match=r"cluster has no disk space for the input of touch: .*missing"
    ) as raised:
        transport.run(Command(["touch", str(tmp_path / "ran")], stdin="script"))

    assert raised.value.transient
    assert not raised.value.may_have_run
    assert not (tmp_path / "ran").exists()


def test_lines_are_streamed_while_a_command_runs(transport: SshTransport, tmp_path: Path) -> None:
    lines = iter(transport.open(_sh(f"echo 1; while ! [ -e {tmp_path}/go ]; do sleep 0.01; done; echo 2")))

    assert next(lines) == "1"
    (tmp_path / "go").touch()
    assert list(lines) == ["2"]


def test_a_streamed_command_may_get_large_input(transport: SshTransport) -> None:
    much = "x" * 5_000_000

    assert [int(it) for it in transport.open(Command(["wc", "-c"], stdin=much))] == [len(much)]


def test_a_streamed_command_ends_on_close(runtime: Path, transport: SshTransport) -> None:
    lines = transport.open(_sh("echo 1; sleep 1000; :"))
    assert next(iter(lines)) == "1"

    lines.close()

    assert eventually(lambda: not sessions(runtime))


def test_one_command_is_streamed_at_a_time(transport: SshTransport) -> None:
    lines = transport.open(_sh("sleep 1000; :"))

    with pytest.raises(TransportError, match="is streamed already"):
        transport.open(Command(["true"]))

    lines.close()
    assert list(transport.open(Command(["echo", "x"]))) == ["x"]


def test_a_garbage_collected_transport_leaves_no_process(
    runtime: Path, ssh: FakeSsh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Garbage collection runs in any thread, and must not block it."""
    transport = SshTransport(Address("cluster"))
    transport.run(Command(["true"]))
    lines = transport.open(_sh("sleep 1000; :"))

    del transport, lines
    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", in_this_thread(lambda _: pytest.fail("close() waits"), time.sleep))
        gc.collect()

    assert eventually(lambda: not sessions(runtime))
    later = SshTransport(Address("cluster"))
    later.run(Command(["true"]))
    assert channel._ending == []


def test_channels_opened_during_shutdown_do_not_block_it() -> None:
    channels, dropped = set[Channel](), list[Channel]()

    class ClosingChannel(Channel):
        def __init__(self) -> None:
            channels.add(self)

        def drop(self) -> None:
            channels.discard(self)
            dropped.append(self)

    going = [ClosingChannel(), ClosingChannel()]
    _drop_all(channels)

    assert set(dropped) == set(going)


def test_a_forked_child_uses_its_own_channels(
    runtime: Path, transport: SshTransport, in_child: Callable[[Callable[[], int]], int]
) -> None:
    transport.run(Command(["true"]))
    (before,) = sessions(runtime)

    code = in_child(lambda: transport.run(_sh("echo x; exit 7")).returncode)

    assert code == 7
    assert lives(before)
    assert transport.run(Command(["echo", "x"])).stdout == "x\n"
    assert sessions(runtime) == [before]


def test_a_child_forked_during_a_lookup_can_look_up_too(
    ssh: FakeSsh, in_child: Callable[[Callable[[], int]], int]
) -> None:
    def work() -> int:
        signal.alarm(10)
        return SshTransport(Address("cluster")).run(_sh("exit 7")).returncode

    with transport_module._lock:
        code = in_child(work)

    assert code == 7
