from __future__ import annotations

import pytest

from jpsi.plugin import ConfigError
from jpsi_ssh.address import Address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("ssh://login.example", Address("login.example")),
        ("ssh://login.example/", Address("login.example")),
        ("ssh://me@login.example:2222", Address("login.example", "me", 2222)),
        ("ssh://Big", Address("Big")),
        ("ssh://me%2bproject@big", Address("big", "me+project")),
        ("ssh://me@[2001:db8::1]:22", Address("2001:db8::1", "me", 22)),
    ],
)
def test_a_url_is_parsed(url: str, address: Address) -> None:
    assert Address.from_url(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "ssh://",
        "ssh://-oProxyCommand=x",
        "ssh://me@-J",
        "ssh://-l@big",
        "ssh://me;reboot@big",
        "ssh://big`reboot`",
        "ssh://big%20other",
        "ssh://me%0aroot@big",
        "ssh://me:secret@big",
        "ssh://big:port",
        "ssh://big:0",
        "ssh://big:70000",
        "ssh://big/home/me",
        "ssh://big?ProxyCommand=x",
        "ssh://big#fragment",
        "ssh://[::1",
    ],
)
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        Address.from_url(url)


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as raised:
        Address.from_url("ssh://me:secret@big")

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("url", ["big", "me@big", "big:22", "me@big:22", "me@[::1]:22"])
def test_an_address_reads_as_in_its_url(url: str) -> None:
    assert str(Address.from_url(f"ssh://{url}")) == url


def test_a_message_shows_a_hostile_url_on_one_line() -> None:
    with pytest.raises(ConfigError) as caught:
        Address.from_url("ssh://\n\x1b[31m")

    assert str(caught.value).isprintable()
