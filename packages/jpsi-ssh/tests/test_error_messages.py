from __future__ import annotations

import pytest

from jpsi_ssh.address import Address
from jpsi_ssh.openssh.error_messages import explain_failure, is_session_refused

_CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Host key for big has changed and you have requested strict checking.
Host key verification failed.
"""
_UNKNOWN = """\
No ED25519 host key is known for big and you have requested strict checking.
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        (_CHANGED, "big has another host key"),
        (_UNKNOWN, "the host key of big is not known yet; connect once by `ssh -p 2222 me@big`"),
        ("me@big: Permission denied (publickey).", "refuses your login"),
        ("ssh: Could not resolve hostname big: Name or service not known", "there is no host"),
        ("ssh: connect to host big port 2222: Connection refused", "cannot be reached"),
        ("ssh: connect to host big port 2222: Connection timed out", "cannot be reached"),
        ("kex_exchange_identification: Connection closed by remote host", "cannot be reached"),
        ("/home/me/.ssh/config: line 3: Bad configuration option: x", "there is no connection to"),
        ("", "ssh ended without a message"),
    ],
)
def test_messages_of_ssh_are_explained_and_quoted(words: str, meaning: str) -> None:
    message = explain_failure(Address("big", "me", 2222), words)

    assert meaning in message.replace("me@big:2222", "big")
    assert " ".join(words.split())[-100:] in message


def test_the_last_words_of_long_messages_are_quoted_whole() -> None:
    words = f"{'warning ' * 100}Connection refused"

    sentence = explain_failure(Address("big"), words)

    assert sentence.startswith("big cannot be reached: ... warning warning")
    assert sentence.endswith("warning Connection refused")


def test_a_refused_session_differs_from_a_lost_connection() -> None:
    assert is_session_refused(
        "mux_client_request_session: session request failed: Session open refused by peer"
    )
    assert not is_session_refused("kex_exchange_identification: Connection closed by remote host")
