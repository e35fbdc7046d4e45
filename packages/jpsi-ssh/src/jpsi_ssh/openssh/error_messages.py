"""Explains failures of the OpenSSH client to the user, in a sentence that says what to do."""

from __future__ import annotations

from ..address import Address
from .client import REMOTE_SHELL

# (texts in ssh's messages, sentence); the first match decides.
_MEANINGS = [
    (
        ("REMOTE HOST IDENTIFICATION HAS CHANGED",),
        "{host} has another host key than the known one; ask its administrators before you trust it",
    ),
    (
        ("Host key verification failed", "No matching host key", "host key is known for"),
        "the host key of {host} is not known yet; connect once by `{ssh}` and compare it",
    ),
    (
        ("Permission denied", "Too many authentication failures", "No more authentication methods"),
        "{host} refuses your login; check whether `{ssh}` works (for passwords and the like, use a terminal)",
    ),
    (("Could not resolve hostname", "Name or service not known"), "there is no host {host}"),
    (
        (
            "Connection refused",
            "Connection timed out",
            "Operation timed out",
            "No route to host",
            "Network is unreachable",
            "Connection reset",
            "Connection closed",
            "Broken pipe",
            "not responding",
        ),
        "{host} cannot be reached",
    ),
]
_NO_SESSION = ("Session open refused", "administratively prohibited", "open failed")
_LENGTH = 500
_SILENT = "ssh ended without a message"


def explain_failure(address: Address, messages: str, *, is_connected: bool = False) -> str:
    """Explain from ssh's messages why there is no connection, or no shell on an existing connection.

    >>> explain_failure(Address("big"), "ssh: connect to host big port 22: Connection refused")
    'big cannot be reached: ssh: connect to host big port 22: Connection refused'
    """
    message = " ".join(messages.split())
    ssh = " ".join(_manual_command(address))
    for marks, meaning in _MEANINGS:
        if any(mark in message for mark in marks):
            sentence = meaning.format(host=address, ssh=ssh)
            return f"{sentence}: {_last_words(message)}"
    reason = _last_words(message) or _SILENT
    if is_connected:
        return f"{address} accepts your login, but runs no {REMOTE_SHELL[-1]} for you: {reason}"
    return f"there is no connection to {address}: {reason}"


def is_session_refused(messages: str) -> bool:
    """Return True if the remote host refused another session on an existing connection (MaxSessions)."""
    return any(mark in messages for mark in _NO_SESSION)


def _last_words(message: str) -> str:
    """Return the end of a message, cut at a word if it is too long."""
    return message if len(message) <= _LENGTH else f"... {message[-_LENGTH:].partition(' ')[2]}"


def _manual_command(address: Address) -> list[str]:
    port = [] if address.port is None else ["-p", str(address.port)]
    return ["ssh", *port, str(Address(address.host, address.user))]
