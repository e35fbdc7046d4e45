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
        ("me@big: Permission denied (publickey).", "does not let you in"),
        ("ssh: Could not resolve hostname big: Name or service not known", "there is no host"),
        ("ssh: connect to host big port 2222: Connection refused", "cannot be reached"),
        ("ssh: connect to host big port 2222: Connection timed out", "cannot be reached"),
        ("kex_exchange_identification: Connection closed by remote host", "cannot be reached"),
        ("/home/me/.ssh/config: line 3: Bad configuration option: x", "there is no connection to"),
        ("", "ssh ended without a word"),
    ],
)
def test_the_words_of_ssh_are_explained_and_kept(words: str, meaning: str) -> None:
    said = explain_failure(Address("big", "me", 2222), words)

    assert meaning in said.replace("me@big:2222", "big")
    assert " ".join(words.split())[-100:] in said


def test_of_many_words_the_last_are_told_and_none_is_cut() -> None:
    words = f"{'warning ' * 100}Connection refused"

    sentence = explain_failure(Address("big"), words)

    assert sentence.startswith("big cannot be reached: ... warning warning")
    assert sentence.endswith("warning Connection refused")


def test_a_connection_without_room_is_told_from_one_that_is_lost() -> None:
    assert is_session_refused(
        "mux_client_request_session: session request failed: Session open refused by peer"
    )
    assert not is_session_refused("kex_exchange_identification: Connection closed by remote host")
