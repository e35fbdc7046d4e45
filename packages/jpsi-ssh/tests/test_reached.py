"""The sentences of `jpsi doctor` about a remote host that cannot be used."""

from __future__ import annotations

import os

import pytest

import jpsi
from fake_ssh import FakeSsh
from jpsi import JobExecutor
from jpsi.plugin import TransportError
from jpsi_cli.doctor.system_checks import remote_host_name

_LOCKED = "This account is currently not available."


def _reached() -> str:
    with JobExecutor("local", url="ssh://far") as executor:
        assert executor.system.is_remote
        return remote_host_name(executor.system)


def test_doctor_names_the_host(ssh: FakeSsh) -> None:
    assert _reached() == os.uname().nodename


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("Host key verification failed.", "the host key of far is not known yet; connect once by `ssh far`"),
        ("WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!", "far has another host key than the known one"),
        ("me@far: Permission denied (publickey).", "far refuses your login; check whether `ssh far` works"),
        ("ssh: connect to host far port 22: Connection refused", "far cannot be reached"),
        ("ssh: connect to host far port 22: No route to host", "far cannot be reached"),
        ("ssh: Could not resolve hostname far: Name or service not known", "there is no host far"),
    ],
)
def test_a_failed_connection_is_explained(ssh: FakeSsh, words: str, sentence: str) -> None:
    ssh.says(words)

    with pytest.raises(TransportError, match=sentence):
        _reached()


@pytest.mark.parametrize("login", [f"echo '{_LOCKED}'; exit 1", "exit 1"], ids=["nologin", "false"])
def test_an_account_without_a_shell_is_reported(ssh: FakeSsh, login: str) -> None:
    ssh.login(login)

    with pytest.raises(TransportError, match="far accepts your login, but runs no /bin/sh for you"):
        _reached()


def test_a_full_disk_is_reported(ssh: FakeSsh) -> None:
    """No file of the size that nothing has can be written."""
    ssh.login("export HOME=/dev/full")

    with pytest.raises(jpsi.SubmitException, match=r"your home directory cannot be written: .*jpsi-"):
        _reached()


def test_an_unwritable_temporary_directory_is_reported(ssh: FakeSsh) -> None:
    ssh.login("export TMPDIR=/nowhere")

    with pytest.raises(TransportError, match="far has no disk space for the input of /bin/sh"):
        _reached()
