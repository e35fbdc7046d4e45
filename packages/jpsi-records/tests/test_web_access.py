from __future__ import annotations

from http import HTTPStatus

import pytest

from jpsi_records.web.access import Key, refused, token_in


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "localhost:8080", "localhost"])
def test_a_name_of_this_machine_is_accepted(host: str) -> None:
    assert refused({"host": host}) is None


@pytest.mark.parametrize(
    "host",
    ["evil.example:80", "evil.example", "", "127.0.0.1.evil.example", "127.0.0.1@evil.example"],
)
def test_any_other_host_name_is_refused(host: str) -> None:
    why = refused({"host": host})

    assert why is not None
    assert why[0] is HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize(
    ("site", "mode", "is_seen"),
    [
        ("same-origin", "cors", True),
        ("none", "navigate", True),
        ("cross-site", "navigate", True),
        ("cross-site", "no-cors", False),
        ("same-site", "cors", False),
    ],
)
def test_other_pages_may_only_link_to_the_server(site: str, mode: str, is_seen: bool) -> None:
    headers = {"host": "localhost:1", "sec-fetch-site": site, "sec-fetch-mode": mode}

    assert (refused(headers) is None) == is_seen


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({"cookie": "a=b; jpsi-records=t"}, "t"),
        ({"authorization": "Bearer t"}, "t"),
        ({"authorization": "bearer  t "}, "t"),
        ({"authorization": "Basic t"}, ""),
        ({"cookie": "other=t"}, ""),
        ({}, ""),
    ],
)
def test_the_token_is_in_a_cookie_or_in_a_header(headers: dict[str, str], token: str) -> None:
    assert token_in(headers) == token


def test_each_server_has_its_own_key() -> None:
    one, other = Key(), Key()

    assert one.fits(one.token)
    assert not other.fits(one.token)
    assert not one.fits("")
    assert not one.fits("é\udc80")
    assert one.place != other.place


def test_the_cookie_is_hidden_from_scripts_other_sites_and_other_paths() -> None:
    key = Key(place="there", token="t")

    assert key.cookie == "jpsi-records=t; Path=/there; HttpOnly; SameSite=Strict"
    assert key.link(80) == "http://127.0.0.1:80/there/?token=t"
    assert "t" not in repr(key).partition("place")[2].replace("there", "")
