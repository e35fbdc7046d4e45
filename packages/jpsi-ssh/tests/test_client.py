from __future__ import annotations

import pytest

from jpsi_ssh.address import Address
from jpsi_ssh.openssh import client

_ADDRESS = Address("big", "me", 2222)
_ALL = [
    client.connect_command(_ADDRESS, "/run/x", may_prompt=True),
    client.connect_command(_ADDRESS, "/run/x", may_prompt=False),
    client.check_command(_ADDRESS, "/run/x"),
    client.shell_command(_ADDRESS, "/run/x"),
]


def _options(command: list[str]) -> dict[str, str]:
    pairs = (command[index + 1] for index, word in enumerate(command) if word == "-o")
    return dict(pair.split("=", 1) for pair in pairs)


@pytest.mark.parametrize("command", _ALL)
def test_user_and_port_are_separate_options_and_the_host_is_an_argument(command: list[str]) -> None:
    assert command[command.index("-l") + 1] == "me"
    assert command[command.index("-p") + 1] == "2222"
    assert command[command.index("--") + 1] == "big"


@pytest.mark.parametrize("command", _ALL)
def test_missing_parts_of_the_url_come_from_the_ssh_configuration(command: list[str]) -> None:
    plain = client.shell_command(Address("big"), "/run/x")

    assert "-l" not in plain
    assert "-p" not in plain
    assert "StrictHostKeyChecking" not in _options(command)


def test_ssh_prompts_only_on_a_terminal() -> None:
    prompting, silent, *_ = _ALL

    assert "BatchMode" not in _options(prompting)
    assert _options(silent)["BatchMode"] == "yes"


def test_the_login_shell_gets_one_command() -> None:
    *_, host, first, second = client.shell_command(_ADDRESS, "/run/x")

    assert (host, first, second) == ("big", "exec", "/bin/sh")


def test_a_shell_never_makes_its_own_connection() -> None:
    assert _options(client.shell_command(_ADDRESS, "/run/x"))["ProxyCommand"] == "false"


def test_a_percent_sign_in_a_path_means_itself() -> None:
    command = client.check_command(_ADDRESS, "/run/%h")

    assert command[command.index("-S") + 1] == "/run/%%h"
