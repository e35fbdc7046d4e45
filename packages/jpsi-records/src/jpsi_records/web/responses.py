"""The response to an HTTP request: access check, choice of the page, and security headers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from urllib.parse import parse_qs, unquote, urlsplit

import attrs

from ..errors import NotFoundError
from ..records import Records
from . import execution_page, layout, list_pages, request_page, views
from .access import PARAMETER, Key, refused, token_in
from .layout import Site
from .logs import NAMES, log

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
# The largest part of a log that is sent, from its end.
_WHOLE = 64 * 1024 * 1024
_LINK = "Open the link that `jpsi request serve` has printed."


@attrs.frozen(slots=True)
class Answer:
    """An HTTP response."""

    status: HTTPStatus
    body: bytes
    headers: Mapping[str, str]

    @classmethod
    def of(cls, body: str | bytes, kind: str = _HTML, *, status: HTTPStatus = HTTPStatus.OK) -> Answer:
        """Return a response with the headers that all responses have."""
        content = body if isinstance(body, bytes) else body.encode()
        told = {"Content-Type": kind, "Content-Length": str(len(content))}
        return cls(status, content, {**_ALWAYS, **told})

    def with_header(self, name: str, value: str) -> Answer:
        """Return a copy with one more header."""
        return attrs.evolve(self, headers={**self.headers, name: value})


def answer(records: Records, key: Key, method: str, target: str, headers: Mapping[str, str]) -> Answer:
    """Return the response to a request.

    Args:
        records: the records to show.
        key: the secrets of the server.
        method: the HTTP method; all but GET and HEAD are refused.
        target: the path with the query.
        headers: the headers by names in lower case.
    """
    why = _refused(key, method, asked := _ParsedTarget.of(target), headers)
    if why is not None:
        return why
    site = Site(key.place)
    if key.fits(asked.token):
        return Answer.of(layout.welcome(site)).with_header("Set-Cookie", key.cookie)
    try:
        return _page(records, site, asked)
    except NotFoundError as e:
        return refusal(HTTPStatus.NOT_FOUND, str(e))


@attrs.frozen(slots=True)
class _ParsedTarget:
    """The path and the query of a request."""

    place: str
    parts: tuple[str, ...]
    query: Mapping[str, str]

    @classmethod
    def of(cls, target: str) -> _ParsedTarget:
        split = urlsplit(target)
        place, *parts = [unquote(it) for it in split.path.removeprefix("/").split("/")]
        return cls(place, tuple(parts), {name: it[-1] for name, it in parse_qs(split.query).items()})

    @property
    def token(self) -> str:
        return self.query.get(PARAMETER, "")


def _refused(key: Key, method: str, asked: _ParsedTarget, headers: Mapping[str, str]) -> Answer | None:
    why = refused(headers)
    if why is not None:
        return refusal(*why)
    # The same response for a wrong path as for a wrong token, so that paths cannot be probed.
    if asked.place != key.place or not (key.fits(asked.token) or key.fits(token_in(headers))):
        return refusal(HTTPStatus.FORBIDDEN, _LINK)
    if method not in {"GET", "HEAD"}:
        told = refusal(HTTPStatus.METHOD_NOT_ALLOWED, "Nothing is changed by these pages.")
        return told.with_header("Allow", "GET, HEAD")
    return None


def refusal(status: HTTPStatus, why: str) -> Answer:
    """Return a response whose page says why the request failed."""
    return Answer.of(layout.refusal(status, why), status=status)


def _page(records: Records, site: Site, asked: _ParsedTarget) -> Answer:  # noqa: PLR0911  one for each
    before = asked.query.get("before")
    match asked.parts:
        case [] | [""]:
            owner = None if "all" in asked.query else records.user
            return Answer.of(list_pages.requests(site, views.requests_view(records, owner, before)))
        case ["executions"]:
            return Answer.of(list_pages.executions(site, views.executions_view(records, before)))
        case ["accounting"]:
            return Answer.of(list_pages.accounting(site, views.accounting_view(records)))
        case ["request", request_id]:
            return Answer.of(request_page.request(site, views.request_view(records, request_id)))
        case ["execution", execution_id]:
            return Answer.of(execution_page.execution(site, views.execution_view(records, execution_id)))
        case ["log", execution_id, number, name] if name in NAMES:
            return _log(records, execution_id, number, name)
        case [name] if name in _FILES:
            return Answer.of(_file(name), _FILES[name])
    msg = "There is no such page."
    raise NotFoundError(msg)


def _log(records: Records, execution_id: str, number: str, name: str) -> Answer:
    execution = records.execution(execution_id)
    attempt = next((it for it in records.attempts(execution_id) if str(it.number) == number), None)
    if attempt is None:
        msg = f"execution {execution_id} has no attempt {number}"
        raise NotFoundError(msg)
    found = log(records, execution, attempt, name, _WHOLE)
    # The content is the job's: a browser must not run it.
    return Answer.of(found.content, _PLAIN).with_header("Content-Security-Policy", "sandbox")


@cache
def _file(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()
