"""Controls access to the web pages: only with the token, on this machine, and not from other web sites.

Other users of the machine can connect to the port of `jpsi request serve`, and any web site can make the
user's browser send a request to it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie

import attrs

#: The names of the cookie and of the query parameter that hold the token.
COOKIE, PARAMETER = "jpsi-records", "token"

# The names of the server in the header `Host`.
_NAMES = frozenset({"127.0.0.1", "localhost"})
# The values of `Sec-Fetch-Site` for requests of these pages, and of the user.
_OWN = frozenset({"same-origin", "none"})


@attrs.frozen(slots=True)
class Key:
    """The secrets of one server; they exist only in its memory and in the link that it prints."""

    #: The first part of every path. Browsers send a cookie to all servers of a host, on any port, but only
    #: for matching paths: other users do not know this path, so their servers on this machine never get it.
    place: str = attrs.field(factory=lambda: secrets.token_urlsafe(12))
    token: str = attrs.field(factory=lambda: secrets.token_urlsafe(32), repr=False)

    def link(self, port: int) -> str:
        """Return the URL that gives a browser access."""
        return f"http://127.0.0.1:{port}/{self.place}/?{PARAMETER}={self.token}"

    def fits(self, token: str) -> bool:
        """Return True if a token is right, in constant time."""
        return secrets.compare_digest(token.encode(errors="replace"), self.token.encode())

    @property
    def cookie(self) -> str:
        """The cookie that keeps a browser's access: hidden from scripts, and not sent from other sites."""
        return f"{COOKIE}={self.token}; Path=/{self.place}; HttpOnly; SameSite=Strict"


def refused(headers: Mapping[str, str]) -> tuple[HTTPStatus, str] | None:
    """Return why a request with these headers is refused; None if it is allowed.

    Args:
        headers: the headers by names in lower case.
    """
    host = headers.get("host", "")
    # Another name may be DNS rebinding, by which a foreign page could read these. Tunnels change the port.
    if host.rpartition(":")[0] not in _NAMES and host not in _NAMES:
        return HTTPStatus.MISDIRECTED_REQUEST, "These pages are those of http://127.0.0.1 alone."
    is_visit = headers.get("sec-fetch-mode") == "navigate"
    if headers.get("sec-fetch-site", "none") not in _OWN and not is_visit:
        return HTTPStatus.FORBIDDEN, "These pages are not for other pages to use."
    return None


def token_in(headers: Mapping[str, str]) -> str:
    """Return the token in a request's cookie or in `Authorization: Bearer TOKEN`; empty if there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
