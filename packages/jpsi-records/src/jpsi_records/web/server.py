"""Serves the web pages over HTTP, on the loopback interface of this machine (`jpsi request serve`).

It only passes requests on to `responses`, and limits how many are answered at the same time and how long one
may take to arrive.
"""

from __future__ import annotations

import logging
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jpsi import JpsiError

from ..errors import store_errors
from ..records import Records
from .access import Key
from .responses import Answer, answer, refusal

log = logging.getLogger(__name__)

# The seconds that a client may take to send its request.
_TIMEOUT_SECONDS = 20
# The number of concurrent requests; others wait.
_MAX_CONNECTIONS = 16


class Server(ThreadingHTTPServer):
    """A server of the records' pages for users who have the link, on this machine only.

    Args:
        records: the records to show.
        port: the TCP port; 0 is any free one.
        key: the secrets of the server; None creates new ones.

    Raises:
        StoreError: the server cannot listen on the port.
    """

    daemon_threads = True

    def __init__(self, records: Records, port: int = 0, key: Key | None = None) -> None:
        self.records = records
        self.key = Key() if key is None else key
        self.places = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        with store_errors(f"the server cannot listen on port {port}"):
            super().__init__(("127.0.0.1", port), _Handler)

    @property
    def link(self) -> str:
        """The URL that gives a browser access."""
        return self.key.link(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002  the library's
        """Log an error of a connection, such as a browser that disconnects early."""
        log.debug("connection of %s", client_address, exc_info=True)  # noqa: LOG014  in an exception handler


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _TIMEOUT_SECONDS
    server_version, sys_version = "jpsi", ""

    def _do(self) -> None:
        with self.server.places:
            self._send(self._build_answer())

    # All methods come here; `answer` refuses those that are not allowed.
    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _do  # noqa: N815

    def _build_answer(self) -> Answer:
        headers = {name.lower(): it for name, it in self.headers.items()}
        try:
            return answer(self.server.records, self.server.key, self.command, self.path, headers)
        except JpsiError as e:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(e))

    def _send(self, found: Answer) -> None:
        self.send_response(found.status)
        for name, value in found.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401  of the standard library
        # Request lines contain the token, so they are not logged.
        pass
