"""The native ids of jobs: with the name of their server or without it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from jpsi.plugin import IdForm, Site, hookimpl

# A job, an array, an element of an array; then the server, and where the job is to be looked for. Any other
# text would be taken for a queue.
_ID = re.compile(r"([0-9]{1,18}(?:\[[0-9]{0,9}\])?)(?:\.([A-Za-z0-9._-]+))?(?:@[A-Za-z0-9._:-]+)?")
IDS = IdForm("PBS", _ID.pattern)


@hookimpl
def canonical_id(native_id: str, site: Site) -> str:
    """The id with the name of its server, if that is known: people leave out that of the default server."""
    whole, server = IDS.canonical(native_id), site.offers.get("server")
    return whole if server is None or "." in whole or "@" in whole else f"{whole}.{server}"


def is_one_server(native_ids: Iterable[str]) -> bool:
    """Whether these ids can be of one server.

    >>> is_one_server(["17", "18.a", "19[].a.org"]), is_one_server(["18.a", "18.b"])
    (True, False)
    """
    servers = {_parts(native_id)[1] for native_id in native_ids}
    longest = max(servers, key=len, default="")
    return bool(servers) and all(_agree(server, longest) for server in servers)


def kinds_of_arrays(native_ids: Iterable[str]) -> tuple[bool, bool]:
    """Whether there are whole arrays among these ids, and whether there are elements of one.

    >>> kinds_of_arrays(["17", "18[].a", "19[3]"]), kinds_of_arrays(["17"])
    ((True, True), (False, False))
    """
    arrays = [native_id for native_id in native_ids if "[" in native_id]
    wholes = [native_id for native_id in arrays if "[]" in native_id]
    return bool(wholes), len(wholes) < len(arrays)


class Asked:
    """The ids that were asked for, to be found again in an answer, which may spell them otherwise.

    >>> Asked(["17", "18.pbs.example.org"]).names("18.pbs")
    ['18.pbs.example.org']
    """

    def __init__(self, native_ids: Iterable[str] | None) -> None:
        self._by_number: dict[str, list[str]] | None = None
        if native_ids is not None:
            self._by_number = {}
            for native_id in native_ids:
                self._by_number.setdefault(_parts(native_id)[0], []).append(native_id)

    def names(self, shown: str) -> list[str]:
        """The ids that were asked for that mean the job with the id `shown`."""
        if not IDS.has(shown):
            return []
        if self._by_number is None:
            return [shown]
        number, server = _parts(shown)
        return [it for it in self._by_number.get(number, ()) if _agree(server, _parts(it)[1])]


def by_asked(answers: Mapping[str, str], native_ids: Iterable[str]) -> dict[str, str]:
    """What was said of jobs, by the ids that were asked for."""
    asked = Asked(native_ids)
    return {name: answer for shown, answer in answers.items() for name in asked.names(shown)}


def _parts(native_id: str) -> tuple[str, str]:
    match = _ID.fullmatch(native_id)
    return ("", "") if match is None else (match[1], match[2] or "")


def _agree(server: str, other: str) -> bool:
    """Whether two names mean one server: one may be left out, or lack its domain."""
    if not server or not other:
        return True
    return f"{server}.".startswith(f"{other}.") or f"{other}.".startswith(f"{server}.")
