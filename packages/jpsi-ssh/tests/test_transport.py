"""The transport, with a stand-in for ssh."""

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

from jpsi.plugin import Command, ConfigError, FileTransport, LineTransport, TransportError
from jpsi_ssh import transport as transport_module
from jpsi_ssh.address import Address
from jpsi_ssh.connection import Connection, _Channels
from jpsi_ssh.hooks import open_transport
from jpsi_ssh.protocol import channel
from jpsi_ssh.protocol.channel import Channel
from jpsi_ssh.transport import SshTransport
from jpsi_testing.waiting import eventually
from stand_in import StandIn, lives, sessions


def _sh(text: str, **fields: Any) -> Command:
    return Command(["sh", "-c", text], **fields)


def test_a_url_leads_to_a_transport_that_is_elsewhere() -> None:
    transport = open_transport("ssh://me@big:22")

    assert transport.address == Address("big", "me", 22)
    assert isinstance(transport, LineTransport)
    assert isinstance(transport, FileTransport)
    assert not transport.is_local


def test_directories_are_those_of_a_login_there_and_asked_for_once(
    transport: SshTransport, ssh: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/far me")
    monkeypatch.setenv("XDG_STATE_HOME", "/scratch")

    found = transport.directories()
    ssh.says("Connection refused")

    assert (found.home, found.work) == ("/home/far me", "/scratch/jpsi/work")
    assert transport.directories() == found


def test_a_url_without_a_host_is_refused() -> None:
    with pytest.raises(ConfigError):
        open_transport("ssh://")


def test_words_and_input_arrive_unchanged(transport: SshTransport) -> None:
    command = Command(["sh", "-c", 'printf "%s|" "$@"; cat', "sh", "a b", "$HOME", ""], stdin="é\n")

    assert transport.run(command).stdout == "a b|$HOME||é\n"


def test_variables_are_set_and_unset_on_the_other_side(
    transport: SshTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLD_1", "1")

    variables = transport.run(Command(["env"], unset=["OLD_*"], environment={"NEW": "2"})).stdout.splitlines()

    assert "NEW=2" in variables
    assert "OLD_1=1" not in variables


def test_a_failed_command_is_a_result(transport: SshTransport) -> None:
    result = transport.run(_sh("echo no >&2; exit 1"))

    assert (result.returncode, result.complaint) == (1, "no")


def test_a_command_that_a_signal_has_ended_says_which(transport: SshTransport) -> None:
    assert transport.run(_sh("kill -TERM $$")).returncode == -signal.SIGTERM


def test_a_command_that_is_not_there_is_an_error(transport: SshTransport) -> None:
    with pytest.raises(TransportError, match=r"no-such was not found on PATH at far") as raised:
        transport.run(Command(["no-such"]))

    assert not raised.value.transient
    assert not raised.value.may_have_run


def test_one_connection_carries_all_that_is_asked_one_after_the_other(
    ssh: StandIn, runtime: Path, transport: SshTransport
) -> None:
    for _ in range(3):
        transport.run(Command(["true"]))

    assert ssh.connections == 1
    assert len(sessions(runtime)) == 1


def test_executors_of_a_process_share_a_connection(
    ssh: StandIn, runtime: Path, transport: SshTransport
) -> None:
    other = SshTransport(transport.address)

    transport.run(Command(["true"]))
    other.run(Command(["true"]))

    assert len(sessions(runtime)) == 1


def test_processes_share_a_connection_that_is_there(ssh: StandIn, transport: SshTransport) -> None:
    transport.run(Command(["true"]))

    Connection(transport.address).run(Command(["true"]))

    assert ssh.connections == 1


def test_a_connection_without_anybody_at_its_end_is_made_anew(
    ssh: StandIn, runtime: Path, transport: SshTransport
) -> None:
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


def test_two_channels_and_one_that_is_listened_to_are_all_that_it_takes(
    ssh: StandIn, runtime: Path, transport: SshTransport
) -> None:
    ssh.allow(3)
    lines = iter(transport.open(_sh("echo 1; sleep 1000; :")))

    assert next(lines) == "1"
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: transport.run(_sh("sleep 0.05")).returncode == 0, range(8)))
    assert ssh.connections == 1
    assert len(sessions(runtime)) == 3
    lines.close()


@pytest.mark.parametrize("allowed", [1, 2])
def test_fewer_sessions_than_wanted_are_made_do_with(
    ssh: StandIn, runtime: Path, transport: SshTransport, allowed: int
) -> None:
    ssh.allow(allowed)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: transport.run(_sh("sleep 0.05")).returncode == 0, range(8)))
    assert ssh.connections == 1
    assert len(sessions(runtime)) == allowed


def test_where_others_use_up_a_connection_another_is_made(ssh: StandIn, transport: SshTransport) -> None:
    ssh.allow(1)
    other = Connection(transport.address)
    other.run(Command(["true"]))

    assert transport.run(Command(["echo", "x"])).stdout == "x\n"
    assert ssh.connections == 2


def test_where_others_have_used_up_all_connections_the_first_is_tried_again(ssh: StandIn) -> None:
    now = [0.0]
    connection = Connection(Address("far"), lambda: now[0])
    ssh.allow(0)
    with pytest.raises(TransportError, match="Session open refused"):
        connection.run(Command(["true"]))
    assert ssh.connections == 4

    ssh.allow(1)
    now[0] = 100
    assert connection.run(Command(["echo", "x"])).stdout == "x\n"
    assert ssh.connections == 4
    assert ".0 " in ssh.calls[-1]


def test_what_takes_too_long_is_killed_on_the_other_side(
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


def test_many_that_hang_use_up_nothing(ssh: StandIn, runtime: Path, transport: SshTransport) -> None:
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
        "(sleep 0.1; echo late; echo late >&2) &",
    ],
)
def test_what_a_login_says_disturbs_nothing(ssh: StandIn, transport: SshTransport, noise: str) -> None:
    ssh.login(noise)

    result = transport.run(_sh("echo out; echo err >&2; exit 3"))

    assert (result.stdout, result.stderr, result.returncode) == ("out\n", "err\n", 3)


def test_a_login_shell_need_not_be_one_of_posix(ssh: StandIn, transport: SshTransport) -> None:
    # as csh says to whatever it does not understand; what it does understand, it runs
    ssh.login('[ "$*" = "exec /bin/sh" ] || { echo "Illegal variable name." >&2; exit 1; }')

    assert transport.run(_sh("x='$1 a'; echo \"$x\"")).stdout == "$1 a\n"


def test_a_login_that_gives_nobody_a_shell_is_an_error_with_its_words(
    ssh: StandIn, transport: SshTransport
) -> None:
    ssh.login("echo This account is currently not available.; exit 1")

    with pytest.raises(
        TransportError, match=r"far lets you in, but runs no /bin/sh for you: .*not available"
    ) as raised:
        transport.run(Command(["true"]))

    assert not raised.value.may_have_run


def test_a_login_that_never_answers_is_an_error(
    ssh: StandIn, runtime: Path, transport: SshTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_ssh.connection._GREET_SECONDS", 0.2)
    ssh.login("sleep 1000")

    with pytest.raises(TransportError, match="no answer in 0 seconds") as raised:
        transport.run(Command(["true"]))

    assert raised.value.transient
    for group in sessions(runtime):
        os.killpg(group, signal.SIGKILL)


def test_a_client_that_is_refused_says_why(ssh: StandIn, transport: SshTransport) -> None:
    ssh.says("No ED25519 host key is known for far and you have requested strict checking.")

    with pytest.raises(TransportError, match="host key of far is not known") as raised:
        transport.run(Command(["true"]))

    assert raised.value.transient
    assert not raised.value.may_have_run


def test_without_a_client_there_is_an_error(
    transport: SshTransport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(TransportError, match="OpenSSH client cannot be run"):
        transport.run(Command(["true"]))


def test_without_descriptors_there_is_an_error(
    transport: SshTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("jpsi_ssh.connection.Channel", fails)
    with pytest.raises(TransportError, match=r"cannot be opened from here: .*Too many open files") as raised:
        transport.run(Command(["true"]))

    assert raised.value.transient


def test_a_place_that_cannot_be_reached_is_not_knocked_at_all_the_time(ssh: StandIn) -> None:
    now = [0.0]
    connection = Connection(Address("far"), lambda: now[0])
    ssh.says("ssh: connect to host far port 22: Connection refused")

    for seconds, connections in ((0, 1), (0.9, 1), (1.1, 2), (3.0, 2), (3.2, 3)):
        now[0] = seconds
        with pytest.raises(TransportError, match="Connection refused"):
            connection.run(Command(["true"]))
        assert ssh.connections == connections

    ssh.says("")
    now[0] = 100
    assert connection.run(Command(["echo", "x"])).stdout == "x\n"


def test_a_connection_that_breaks_while_a_command_runs_leaves_open_what_became_of_it(
    runtime: Path, transport: SshTransport, tmp_path: Path
) -> None:
    def cut() -> None:
        eventually((tmp_path / "begun").exists)
        for group in sessions(runtime):
            os.killpg(group, signal.SIGKILL)

    thread = threading.Thread(target=cut)
    thread.start()
    with pytest.raises(TransportError, match="the connection to far broke") as raised:
        transport.run(_sh(f"true >{tmp_path}/begun; sleep 1000; :"))
    thread.join()

    assert raised.value.transient
    assert raised.value.may_have_run
    assert transport.run(Command(["echo", "x"])).stdout == "x\n"


def test_a_connection_that_broke_while_nobody_used_it_is_replaced(
    runtime: Path, transport: SshTransport
) -> None:
    transport.run(Command(["true"]))
    assert transport._connection is not None
    clients = [it._process for it in transport._connection._channels._all]
    for group in sessions(runtime):
        os.killpg(group, signal.SIGKILL)
    assert eventually(lambda: not sessions(runtime) and all(it.poll() is not None for it in clients))

    assert transport.run(Command(["echo", "x"])).stdout == "x\n"


def test_what_must_be_done_before_is_done_before_and_once(transport: SshTransport) -> None:
    done: list[int] = []

    assert transport.run(_sh("cat", stdin="x"), ready=lambda: done.append(1)).stdout == "x"
    assert done == [1]


def test_where_what_must_be_done_before_fails_nothing_is_run(transport: SshTransport, tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(5, "disk")

    with pytest.raises(OSError, match="disk"):
        transport.run(Command(["touch", str(tmp_path / "ran")]), ready=fail)

    assert transport.run(Command(["echo", "x"])).stdout == "x\n"
    assert not (tmp_path / "ran").exists()


def test_input_that_finds_no_place_is_an_error_and_nothing_is_run(
    transport: SshTransport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))

    with pytest.raises(
        TransportError, match=r"far has no room for what touch is to read: .*missing"
    ) as raised:
        transport.run(Command(["touch", str(tmp_path / "ran")], stdin="script"))

    assert raised.value.transient
    assert not raised.value.may_have_run
    assert not (tmp_path / "ran").exists()


def test_lines_come_while_a_command_runs(transport: SshTransport, tmp_path: Path) -> None:
    lines = iter(transport.open(_sh(f"echo 1; while ! [ -e {tmp_path}/go ]; do sleep 0.01; done; echo 2")))

    assert next(lines) == "1"
    (tmp_path / "go").touch()
    assert list(lines) == ["2"]


def test_a_command_that_is_listened_to_may_be_given_much_to_read(transport: SshTransport) -> None:
    much = "x" * 5_000_000

    assert [int(it) for it in transport.open(Command(["wc", "-c"], stdin=much))] == [len(much)]


def test_a_command_that_is_listened_to_ends_when_it_is_closed(runtime: Path, transport: SshTransport) -> None:
    lines = transport.open(_sh("echo 1; sleep 1000; :"))
    assert next(iter(lines)) == "1"

    lines.close()

    assert eventually(lambda: not sessions(runtime))


def test_one_command_is_listened_to_at_a_time(transport: SshTransport) -> None:
    lines = transport.open(_sh("sleep 1000; :"))

    with pytest.raises(TransportError, match="is listened to already"):
        transport.open(Command(["true"]))

    lines.close()
    assert list(transport.open(Command(["echo", "x"]))) == ["x"]


def test_nothing_is_left_of_a_transport_that_nobody_holds(
    runtime: Path, ssh: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Garbage is collected in a thread that is at something else, and must not be held up."""
    transport = SshTransport(Address("far"))
    transport.run(Command(["true"]))
    lines = transport.open(_sh("sleep 1000; :"))

    del transport, lines
    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", lambda _: pytest.fail("it was waited for somebody"))
        gc.collect()

    assert eventually(lambda: not sessions(runtime))
    later = SshTransport(Address("far"))
    later.run(Command(["true"]))
    assert channel._ending == []


def test_channels_that_come_and_go_as_a_program_ends_are_in_nobodys_way() -> None:
    channels, dropped = _Channels(), list[Channel]()

    class Going(Channel):
        def __init__(self) -> None:
            channels.add(self)

        def drop(self) -> None:
            channels._all.discard(self)
            dropped.append(self)

    going = [Going(), Going()]
    channels.drop()

    assert set(dropped) == set(going)


def test_a_forked_child_uses_channels_of_its_own(
    runtime: Path, transport: SshTransport, in_child: Callable[[Callable[[], int]], int]
) -> None:
    transport.run(Command(["true"]))
    (before,) = sessions(runtime)

    code = in_child(lambda: transport.run(_sh("echo x; exit 7")).returncode)

    assert code == 7
    assert lives(before)
    assert transport.run(Command(["echo", "x"])).stdout == "x\n"
    assert sessions(runtime) == [before]


def test_a_child_that_is_forked_while_another_thread_finds_a_link_finds_one_as_well(
    ssh: StandIn, in_child: Callable[[Callable[[], int]], int]
) -> None:
    def work() -> int:
        signal.alarm(10)
        return SshTransport(Address("far")).run(_sh("exit 7")).returncode

    with transport_module._lock:
        code = in_child(work)

    assert code == 7
