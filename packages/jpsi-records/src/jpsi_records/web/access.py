"""Who may see the pages: whoever has the token, by a name of this machine, and from no other page."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie

import attrs

#: The name of the cookie, and of the parameter of the link, that hold the token.
COOKIE, PARAMETER = "jpsi-records", "token"

_NAMES = frozenset({"127.0.0.1", "localhost"})
_OWN = frozenset({"same-origin", "none"})


@attrs.frozen(slots=True)
class Key:
    """What opens the pages of one server; it is nowhere but in its memory, and in the link that it prints."""

    #: The first part of every path. Cookies are for all servers of a machine, whatever their port, but not
    #: for all paths: another user's server here is never sent one that is for a path that it cannot know.
    place: str = attrs.field(factory=lambda: secrets.token_urlsafe(12))
    token: str = attrs.field(factory=lambda: secrets.token_urlsafe(32), repr=False)

    def link(self, port: int) -> str:
        """What lets a browser in."""
        return f"http://127.0.0.1:{port}/{self.place}/?{PARAMETER}={self.token}"

    def fits(self, token: str) -> bool:
        """Whether this is the token; how long that takes does not tell how much of it is right."""
        return secrets.compare_digest(token.encode(errors="replace"), self.token.encode())

    @property
    def cookie(self) -> str:
        """What makes a browser come in again: no script reads it, and no other site has it sent."""
        return f"{COOKIE}={self.token}; Path=/{self.place}; HttpOnly; SameSite=Strict"


def refused(headers: Mapping[str, str]) -> tuple[HTTPStatus, str] | None:
    """Why nobody is to see an answer to a request with these headers; None if somebody may.

    Args:
        headers: by names in lower case.
    """
    host = headers.get("host", "")
    # A name that others lead here would let their pages read these. The port may be that of a tunnel.
    if host.rpartition(":")[0] not in _NAMES and host not in _NAMES:
        return HTTPStatus.MISDIRECTED_REQUEST, "These pages are those of http://127.0.0.1 alone."
    is_visit = headers.get("sec-fetch-mode") == "navigate"
    if headers.get("sec-fetch-site", "none") not in _OWN and not is_visit:
        return HTTPStatus.FORBIDDEN, "These pages are not for other pages to use."
    return None


def token_in(headers: Mapping[str, str]) -> str:
    """The token in the cookie of a request, or in `Authorization: Bearer TOKEN`; empty if it has none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
