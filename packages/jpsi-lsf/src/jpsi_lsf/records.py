"""Jobs as `bjobs -o … -json` prints them: LSF 10.1.0.2 and later."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jpsi.plugin import Observation

from .observing import End, nodes, observed

#: `bjobs -o`: what is asked for. A field that LSF does not know costs the whole answer.
FIELDS = "jobid jobindex stat exit_code exit_reason pend_reason exec_host job_description"

#: One job: its fields by their names in capital letters.
Record = Mapping[str, str]

_OBJECT = re.compile(r"\{")
# A field of a record, whatever stands in its value
_FIELD = re.compile(r'"([A-Z_]+)"\s*:\s*"(.*?)"\s*(?=,\s*"[A-Z_]+"\s*:|\}\s*[,\]])', re.DOTALL)
_FRAME = re.compile(r'"RECORDS"\s*:\s*\[(.*)\]\s*\}', re.DOTALL)
_NOTHING = frozenset({"", "-"})


def records(output: str) -> list[Record] | None:
    """The jobs in an answer, whatever stands before it; None if there is none.

    One that LSF does not know has the field ERROR and no STAT.
    """
    decoder = json.JSONDecoder(strict=False)
    for start in _OBJECT.finditer(output):
        try:
            found, _ = decoder.raw_decode(output, start.start())
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("RECORDS"), list):
            return list(_sound(found["RECORDS"]))
    frame = _FRAME.search(output)
    return None if frame is None else _unsound(f"{frame[1]}]")


def _unsound(text: str) -> list[Record]:
    """The jobs in what is no JSON, since a value, perhaps of one job alone, is written as it is."""
    found: list[dict[str, str]] = []
    for field, value in _FIELD.findall(text):
        if field == "JOBID":
            found.append({})
        if found:
            found[-1][field] = value.replace("\\/", "/")
    return list[Record](found)


def _sound(found: list[Any]) -> Iterator[Record]:
    for record in found:
        if isinstance(record, dict) and isinstance(record.get("JOBID"), str):
            yield {name: value for name, value in record.items() if isinstance(value, str)}


def name(record: Record) -> str:
    """The native id of a job; an element of an array tells its index in a field of its own.

    >>> [name({"JOBID": "7", "JOBINDEX": index}) for index in "03"], name({"JOBID": "7[3]", "JOBINDEX": "3"})
    (['7', '7[3]'], '7[3]')
    """
    name, index = record["JOBID"], record.get("JOBINDEX", "")
    return f"{name}[{index}]" if index.isdecimal() and index != "0" and "[" not in name else name


class Said(NamedTuple):
    """What a record says of a job, and what it may say of many."""

    word: str
    code: str
    why: str
    pending: str
    nodes: str


def said(record: Record) -> Said | None:
    """What a record says; None for a job that LSF does not know."""
    if "STAT" not in record:
        return None
    fields = ("STAT", "EXIT_CODE", "EXIT_REASON", "PEND_REASON", "EXEC_HOST")
    return Said(*(record.get(field, "") for field in fields))


def observation(said: Said) -> Observation:
    """What that means."""
    # DONE has no code: it is 0, or one that the site takes for a success.
    exit_code = int(said.code) if said.code.isdecimal() else 0 if said.word == "DONE" else None
    return observed(
        said.word,
        pending=_text(said.pending),
        end=End(exit_code, "" if said.why in _NOTHING else said.why),
        ran_on=nodes(said.nodes),
    )


def _text(text: str) -> str:
    return "" if text in _NOTHING else " ".join(text.rstrip("; \n").split())
