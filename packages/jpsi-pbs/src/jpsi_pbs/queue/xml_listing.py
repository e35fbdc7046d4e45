"""Parses Torque's `qstat -f -x`, whose output is invalid XML if a value contains a control character."""

from __future__ import annotations

import html
import re

from jpsi.plugin import SubmitException

from ..native_ids import IDS
from .listing import Listed

# Torque escapes XML's special characters as entities, so that no value can look like an element.
_VALUE = re.compile(r"<([^<>\s/]+)>([^<]*)</\1>")
_BEGIN = re.compile(r"<([^<>\s/]+)>")
_DATA, _JOB, _JOB_ID = "Data", "Job", "Job_Id"
# Remains of a listing whose beginning or end is missing
_BROKEN = re.compile(rf"</?(?:{_JOB}|{_DATA})>")
_TEXT = re.compile(r"^Job Id: \d", re.MULTILINE)
# The deepest nesting of groups in a job; the usage of nodes has groups within groups.
_DEEPEST = 8
# Torque's attribute names that differ from those of OpenPBS
_NAMES = {
    "comp_time": "obittime",
    "exit_status": "Exit_status",
    "job_array_id": "array_index",
    "start_count": "run_count",
    "start_time": "stime",
}


def parse_xml_jobs(output: str) -> list[Listed] | None:
    """Return the jobs in qstat's output, which has one listing per named job; None if it is incomplete.

    Raises:
        SubmitException: the output is plain text, which PBS's qstat prints for the same options.
    """
    if _TEXT.search(output) and f"<{_DATA}>" not in output:
        msg = "this qstat is not Torque's but that of PBS: use the executor pbs"
        raise SubmitException(msg)
    found: list[Listed] = []
    text, mark, rest = output.partition(f"<{_DATA}>")
    while mark:
        try:
            listed, end = _listing(rest)
        except ValueError:
            return None
        found += listed
        between, mark, rest = rest[end:].partition(f"<{_DATA}>")
        text += between
    return None if _BROKEN.search(text) else found


def _listing(text: str) -> tuple[list[Listed], int]:
    """Return the jobs up to the end of a listing, and the position of that end.

    Raises:
        ValueError: the listing is malformed or has no end.
    """
    found, at, end = [], 0, f"</{_DATA}>"
    while not text.startswith(end, at):
        begin = _BEGIN.match(text, at)
        if begin is None or begin[1] != _JOB:
            msg = f"no job begins with {text[at : at + 80]!r}"
            raise ValueError(msg)
        values, at = _values(text, begin.end(), _JOB)
        found.append(_job(values))
    return found, at + len(end)


def _values(text: str, at: int, name: str, depth: int = 0) -> tuple[dict[str, str], int]:
    """Return the values in an open element, without those in groups, and the position of its end.

    Raises:
        ValueError: the element is malformed or has no end.
    """
    values, end = dict[str, str](), f"</{name}>"
    while not text.startswith(end, at):
        if value := _VALUE.match(text, at):
            values[value[1]] = value[2]
            at = value.end()
        elif (group := _BEGIN.match(text, at)) and depth < _DEEPEST:
            _, at = _values(text, group.end(), group[1], depth + 1)
        else:
            msg = f"no value is {text[at : at + 80]!r}"
            raise ValueError(msg)
    return values, at + len(end)


def _job(values: dict[str, str]) -> Listed:
    native_id, attributes = values.get(_JOB_ID, ""), dict[str, str]()
    if not IDS.is_id(native_id) or "job_state" not in values:
        msg = f"no job is {values!r}"
        raise ValueError(msg)
    attributes = {_NAMES.get(name, name): html.unescape(value) for name, value in values.items()}
    variables = attributes.get("Variable_List")
    # commas separate the variables, and Torque prints a line break in a value as a comma too
    text = (variables or "").replace("\n", " ")
    return Listed(native_id, attributes, text, has_variables=variables is not None)
