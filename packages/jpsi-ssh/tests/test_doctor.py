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


def _probe() -> str:
    with JobExecutor("local", url="ssh://cluster") as executor:
        assert executor.system.is_remote
        return remote_host_name(executor.system)


def test_doctor_names_the_host(ssh: FakeSsh) -> None:
    assert _probe() == os.uname().nodename


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "Host key verification failed.",
            "the host key of cluster is not known yet; connect once by `ssh cluster`",
        ),
        (
            "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!",
            "cluster has another host key than the known one",
        ),
        (
            "me@cluster: Permission denied (publickey).",
            "cluster refuses your login; check whether `ssh cluster` works",
        ),
        ("ssh: connect to host cluster port 22: Connection refused", "cluster cannot be reached"),
        ("ssh: connect to host cluster port 22: No route to host", "cluster cannot be reached"),
        ("ssh: Could not resolve hostname cluster: Name or service not known", "there is no host cluster"),
    ],
)
def test_a_failed_connection_is_explained(ssh: FakeSsh, words: str, sentence: str) -> None:
    ssh.says(words)

    with pytest.raises(TransportError, match=sentence):
        _probe()


@pytest.mark.parametrize("login", [f"echo '{_LOCKED}'; exit 1", "exit 1"], ids=["nologin", "false"])
def test_an_account_without_a_shell_is_reported(ssh: FakeSsh, login: str) -> None:
    ssh.login(login)

    with pytest.raises(TransportError, match="cluster accepts your login, but runs no /bin/sh for you"):
        _probe()


def test_a_full_disk_is_reported(ssh: FakeSsh) -> None:
    """Allow no file of more than zero bytes."""
    ssh.login("export HOME=/dev/full")

    with pytest.raises(jpsi.SubmitException, match=r"your home directory cannot be written: .*jpsi-"):
        _probe()


def test_an_unwritable_temporary_directory_is_reported(ssh: FakeSsh) -> None:
    ssh.login("export TMPDIR=/nowhere")

    with pytest.raises(TransportError, match="cluster has no disk space for the input of /bin/sh"):
        _probe()
