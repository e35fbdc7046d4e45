"""Answers an HTTP request: checks access, chooses the web page, and adds security headers.

The server calls `answer`. It is a function of the request and the records, without a network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from urllib.parse import parse_qs, unquote, urlsplit

import attrs

from ..errors import NotFoundError
from ..records import LOG_NAMES, Records, read_log
from . import layout
from .access import PARAMETER, Key, refused, token_in
from .detail_pages import execution_page, request_page
from .layout import Site
from .list_pages import accounting_page, execution_list, request_list

_HTML, _PLAIN = "text/html; charset=utf-8", "text/plain; charset=utf-8"
# The browser loads resources from this server only, and runs nothing that is inline.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ALWAYS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_FILES = {"style.css": "text/css; charset=utf-8", "refresh.js": "text/javascript; charset=utf-8"}
# The most bytes of a log that are sent, from its end.
_MAX_LOG_BYTES = 64 * 1024 * 1024
_LINK = "Open the link that `jpsi request serve` has printed."


@attrs.frozen(slots=True)
class Answer:
    """An HTTP response."""

    status: HTTPStatus
    body: bytes
    headers: Mapping[str, str]

    @classmethod
    def of(
        cls, body: str | bytes, kind: str = _HTML, *, status: HTTPStatus = HTTPStatus.OK, **more: str
    ) -> Answer:
        """Return a response with the headers that all responses have, and more; `_` stands for a dash."""
        content = body if isinstance(body, bytes) else body.encode()
        headers = {"Content-Type": kind, "Content-Length": str(len(content))}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        return cls(status, content, {**_ALWAYS, **headers})


def refusal(status: HTTPStatus, why: str, **headers: str) -> Answer:
    """Return a response whose page says why the request failed."""
    return Answer.of(layout.refusal(status, why), status=status, **headers)


def answer(records: Records, key: Key, method: str, target: str, headers: Mapping[str, str]) -> Answer:
    """Return the response to a request.

    Args:
        records: the records to show.
        key: the secrets of the server.
        method: the HTTP method; all but GET and HEAD are refused.
        target: the path with the query.
        headers: the headers by names in lower case.
    """
    why = refused(headers)
    if why is not None:
        return refusal(*why)
    split = urlsplit(target)
    place, *parts = [unquote(it) for it in split.path.removeprefix("/").split("/")]
    query = {name: values[-1] for name, values in parse_qs(split.query).items()}
    has_token = key.fits(query.get(PARAMETER, ""))
    # The same response for a wrong path as for a wrong token, so that paths cannot be probed.
    if place != key.place or not (has_token or key.fits(token_in(headers))):
        return refusal(HTTPStatus.FORBIDDEN, _LINK)
    if method not in {"GET", "HEAD"}:
        return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "Nothing is changed by these pages.", Allow="GET, HEAD")
    site = Site(key.place)
    if has_token:
        return Answer.of(layout.welcome(site), Set_Cookie=key.cookie)
    try:
        return _resource(records, parts) or Answer.of(_page(records, site, parts, query))
    except NotFoundError as e:
        return refusal(HTTPStatus.NOT_FOUND, str(e))


def _page(records: Records, site: Site, parts: Sequence[str], query: Mapping[str, str]) -> str:
    match parts:
        case [] | [""]:
            return request_list(records, site, None if "all" in query else records.user, query.get("before"))
        case ["executions"]:
            return execution_list(records, site, query.get("before"))
        case ["accounting"]:
            return accounting_page(records, site)
        case ["request", request_id]:
            return request_page(records, site, request_id)
        case ["execution", execution_id]:
            return execution_page(records, site, execution_id)
    raise NotFoundError("There is no such page.")


def _resource(records: Records, parts: Sequence[str]) -> Answer | None:
    """Return a response that is no page: a log, or a file of the pages."""
    match parts:
        case ["log", execution_id, number, name] if name in LOG_NAMES:
            execution = records.execution(execution_id)
            for attempt in records.attempts(execution_id):
                if str(attempt.number) == number:
                    content, _ = read_log(records, execution, attempt, name, _MAX_LOG_BYTES)
                    # The content is the job's: a browser must not run it.
                    return Answer.of(content, _PLAIN, Content_Security_Policy="sandbox")
            raise NotFoundError(f"execution {execution_id} has no attempt {number}")
        case [name] if name in _FILES:
            return Answer.of(_file(name), _FILES[name])
    return None


@cache
def _file(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()
