from __future__ import annotations

import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from fake_dispatcher import spec
from jpsi_records.errors import StoreError
from jpsi_records.records.records import Records
from jpsi_records.web.server import Server


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    with Records(tmp_path / "records") as opened:
        yield opened


@pytest.fixture
def server(records: Records) -> Iterator[Server]:
    with Server(records) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def send(server: Server, method: str = "GET", path: str = "", **headers: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    sent = {"Authorization": f"Bearer {server.key.token}", **headers}
    connection.request(method, f"/{server.key.place}/{path}", headers=sent)
    response = connection.getresponse()
    try:
        return response.status, response.read()
    finally:
        connection.close()


def test_the_server_listens_only_on_loopback(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.link.startswith(f"http://127.0.0.1:{server.server_address[1]}/")


def test_only_the_whole_link_opens_the_pages(server: Server) -> None:
    with urllib.request.urlopen(server.link, timeout=60) as response:
        cookie = response.headers["Set-Cookie"]
    page = urllib.request.Request(server.link.partition("?")[0], headers={"Cookie": cookie.partition(";")[0]})
    with urllib.request.urlopen(page, timeout=60) as response:
        assert b"<h1>Requests</h1>" in response.read()

    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        urllib.request.urlopen(server.link[:-1], timeout=60)
    refused.value.close()


def test_a_head_request_gets_only_headers(server: Server) -> None:
    assert send(server, "HEAD") == (200, b"")
    assert send(server, "POST")[0] == 405
    assert send(server, Host="evil.example")[0] == 421


def test_many_browsers_are_served_concurrently(server: Server, records: Records) -> None:
    records.submit(spec("a"))
    found: list[tuple[int, bytes]] = []
    threads = [threading.Thread(target=lambda: found.append(send(server))) for _ in range(30)]

    for it in threads:
        it.start()
    for it in threads:
        it.join()

    assert len(found) == 30
    assert len(set(found)) == 1
    assert found[0][0] == 200


def test_the_token_is_never_logged(
    server: Server, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    urllib.request.urlopen(server.link, timeout=60).close()

    assert capfd.readouterr() == ("", "")
    assert server.key.token not in caplog.text


def test_unreadable_records_are_reported(server: Server, records: Records) -> None:
    records.draft(spec("a"))
    records.close()
    (records.directory / "records.sqlite").write_bytes(b"no database" * 1000)

    status, body = send(server)

    assert status == 503
    assert b"the records cannot be read" in body
    assert send(server, path="style.css")[0] == 200


def test_a_port_in_use_is_reported(server: Server, records: Records) -> None:
    port = server.server_address[1]

    with pytest.raises(StoreError, match=f"the server cannot listen on port {port}"):
        Server(records, port)
