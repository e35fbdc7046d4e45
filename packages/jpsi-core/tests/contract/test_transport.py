from __future__ import annotations

import subprocess

import pytest

from jpsi.contract.command import CommandResult
from jpsi.contract.transport import RemoteDirectories, directories_command, read_directories
from jpsi.model.errors import TransportError


def _query_directories(**environment: str) -> RemoteDirectories:
    done = subprocess.run(
        directories_command().argv, env=environment, capture_output=True, text=True, check=False
    )
    return read_directories(CommandResult(returncode=done.returncode, stdout=f"welcome\n{done.stdout}"))


def test_the_directories_are_those_of_the_remote_host() -> None:
    assert _query_directories(HOME="/home/it's me") == RemoteDirectories(
        "/home/it's me", "/home/it's me/.local/state/jpsi/work"
    )
    assert _query_directories(HOME="/h", XDG_STATE_HOME="/scratch") == RemoteDirectories(
        "/h", "/scratch/jpsi/work"
    )
    assert _query_directories(HOME="/h", XDG_STATE_HOME="relative").work == "/h/.local/state/jpsi/work"


@pytest.mark.parametrize(
    "result",
    [
        CommandResult(returncode=0, stdout="welcome\n"),
        CommandResult(returncode=0, stdout="jpsi-directory \njpsi-directory /x\n"),
        CommandResult(returncode=1, stdout="jpsi-directory /h\njpsi-directory /w\n"),
    ],
)
def test_unknown_directories_are_an_error(result: CommandResult) -> None:
    with pytest.raises(TransportError, match="home directory on the remote host"):
        read_directories(result)


@pytest.mark.parametrize(
    ("path", "expanded"),
    [("~", "/h"), ("~/a/b", "/h/a/b"), ("a", "/h/a"), ("/a", "/a"), ("~x/a", "/h/~x/a")],
)
def test_paths_begin_at_home(path: str, expanded: str) -> None:
    assert RemoteDirectories("/h", "/w").expanded(path) == expanded
