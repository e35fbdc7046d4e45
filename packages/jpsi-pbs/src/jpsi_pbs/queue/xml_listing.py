"""Parses Torque's `qstat -f -x`, whose output is invalid XML if a value contains a control character.

Only the executor `torque` uses it; the executor `pbs` has `json_listing`.
"""

from __future__ import annotations

import html
import re

from jpsi.plugin import SubmitException

from ..native_ids import IDS
from .listing import ListedJob

# Torque escapes XML's special characters as entities, so that no value can look like an element.
_VALUE = re.compile(r"<([^<>\s/]+)>([^<]*)</\1>")
_BEGIN = re.compile(r"<([^<>\s/]+)>")
_DATA, _JOB, _JOB_ID, _USED = "Data", "Job", "Job_Id", "resources_used"
# Remains of a listing whose beginning or end is missing
_REMAINS = re.compile(rf"</?(?:{_JOB}|{_DATA})>")
_TEXT = re.compile(r"^Job Id: \d", re.MULTILINE)
# The deepest nesting of groups in a job; the usage of nodes has groups within groups.
_MAX_DEPTH = 8
# Torque's attribute names that differ from those of OpenPBS
_NAMES = {
    "comp_time": "obittime",
    "exit_status": "Exit_status",
    "job_array_id": "array_index",
    "start_count": "run_count",
    "start_time": "stime",
}


def parse_xml_jobs(output: str) -> list[ListedJob] | None:
    """Return the jobs in qstat's output, which has one listing per named job; None if it is incomplete.

    Raises:
        SubmitException: the output is plain text, which PBS's qstat prints for the same options.
    """
    if _TEXT.search(output) and f"<{_DATA}>" not in output:
        raise SubmitException("this qstat is not Torque's but that of PBS: use the executor pbs")
    jobs: list[ListedJob] = []
    text, tag, rest = output.partition(f"<{_DATA}>")
    while tag:
        try:
            parsed, end = _parse_listing(rest)
        except ValueError:
            return None
        jobs += parsed
        text_between, tag, rest = rest[end:].partition(f"<{_DATA}>")
        text += text_between
    return None if _REMAINS.search(text) else jobs


def _parse_listing(text: str) -> tuple[list[ListedJob], int]:
    """Return the jobs up to the end of a listing, and the position of that end.

    Raises:
        ValueError: the listing is malformed or has no end.
    """
    jobs, position, end = [], 0, f"</{_DATA}>"
    while not text.startswith(end, position):
        begin = _BEGIN.match(text, position)
        if begin is None or begin[1] != _JOB:
            raise ValueError(f"no job begins with {text[position : position + 80]!r}")
        values, position = _parse_values(text, begin.end(), _JOB)
        jobs.append(_parse_job(values))
    return jobs, position + len(end)


def _parse_values(text: str, position: int, name: str, depth: int = 0) -> tuple[dict[str, str], int]:
    """Return the values in an open element and the position of its end; of groups, the used resources alone.

    Raises:
        ValueError: the element is malformed or has no end.
    """
    values, end = dict[str, str](), f"</{name}>"
    while not text.startswith(end, position):
        if value := _VALUE.match(text, position):
            values[value[1]] = value[2]
            position = value.end()
        elif (group := _BEGIN.match(text, position)) and depth < _MAX_DEPTH:
            inner, position = _parse_values(text, group.end(), group[1], depth + 1)
            values |= {f"{_USED}.{it}": inner[it] for it in inner if group[1] == _USED}
        else:
            raise ValueError(f"no value is {text[position : position + 80]!r}")
    return values, position + len(end)


def _parse_job(values: dict[str, str]) -> ListedJob:
    native_id, attributes = values.get(_JOB_ID, ""), dict[str, str]()
    if not IDS.is_id(native_id) or "job_state" not in values:
        raise ValueError(f"no job is {values!r}")
    attributes = {_NAMES.get(name, name): html.unescape(value) for name, value in values.items()}
    variables = attributes.get("Variable_List")
    # commas separate the variables, and Torque prints a line break in a value as a comma too
    text = (variables or "").replace("\n", " ")
    return ListedJob(native_id, attributes, text, has_variables=variables is not None)
