r"""Parses `qstat -f -F json` line by line, as its output is not always valid JSON.

Only the executor `pbs` uses it; the executor `torque` has `xml_listing`.

OpenPBS up to 23.06.06 omits backslashes and quotes that JSON requires, prints `nan`, and mangles text that is
not ASCII; one such value of any user's job makes the whole text invalid. But every attribute has a line of
its own, indented by its depth, and no value contains a line break: both printers write `\\n` for a line
break, and quotes as `\\"`. In the plain form of `qstat -f`, values may contain line breaks.

The output is complete if each line has the right depth, and a comma if another line of that depth follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import pairwise

from ..job_names import TAG
from ..native_ids import IDS
from .listing import ListedJob

# The first line after the brace; one level of depth is four blanks, or a tab in versions that use cJSON.
_FIRST = re.compile(r'(\t| {4})"timestamp":')
# A quote within text follows a backslash, unless it comes first or after another backslash; the last
# backslash may be an unescaped one.
_TEXT = r'""?(?:[^"\\\t]|\\.|(?<=\\)")*\\?"'
_LINE = re.compile(
    rf'"(?P<key>(?:[^"\\]|\\.)*)":\s*'
    rf"(?:(?P<value>{_TEXT}|[A-Za-z0-9+. ()_-]+|\{{\}}|\[.*\])|(?P<open>(?:\[.*)?\{{))(?P<comma>,?)",
    re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_DOCUMENT, _SECTION, _JOB, _ATTRIBUTE, _PART = range(5)
_VARIABLES, _USED = "Variable_List", "resources_used"
# Variables of jobs are most of the output; only those that may be a tag are kept.
_POSSIBLE_TAGS = (TAG, '"jpsi-')


def parse_json_jobs(output: str) -> list[ListedJob] | None:
    """Return the jobs in qstat's output, skipping what a site prints before it; None if it is incomplete."""
    lines = [line.rstrip("\r") for line in output.split("\n")]
    for index, (line, next_line) in enumerate(pairwise(lines)):
        first = _FIRST.match(next_line)
        if line == "{" and first is not None:
            try:
                return _DocumentParser(first[1]).parse(lines[index + 1 :])
            except ValueError:
                return None
    return None


class _DocumentParser:
    """A line-by-line parser for the text between the outermost braces."""

    def __init__(self, indent: str) -> None:
        self._margins = [indent * depth for depth in range(_PART + 1)]
        self._depth = _SECTION
        # True if the last line ends with a comma, so that another must follow; None after an opening line.
        self._is_followed: bool | None = None
        self._is_list = self._has_variables = False
        self._native_id, self._attributes = "", dict[str, str]()
        self._variables: list[str] | None = None
        # True among the resources that the job has used
        self._is_usage = False
        # the line before, if it is a variable that may be the tag
        self._last_tag = ""
        self._found: list[ListedJob] = []

    def parse(self, lines: Iterable[str]) -> list[ListedJob]:
        """Parse the lines and return the jobs.

        Raises:
            ValueError: the closing brace is missing, or a line has the wrong depth.
        """
        for line in lines:
            if self._depth == _PART and self._skip_value_line(line):
                continue
            if not self._close(line):
                self._open(line)
            elif self._depth == _DOCUMENT:
                return self._found
        raise ValueError("the end is missing")

    def _skip_value_line(self, line: str) -> bool:
        """Return True if a line is part of an attribute's value; collect variables that may be tags."""
        if line.startswith(self._margins[_PART]):
            if self._is_list and line.lstrip().startswith("}]"):
                self._depth, self._is_followed = _ATTRIBUTE, line.endswith(",")
                return True
            self._last_tag = ""
            if self._is_usage and (used := _LINE.fullmatch(line.strip())) and used["value"] is not None:
                self._attributes[f"{_USED}.{used['key']}"] = _decode_text(used["value"])
            if self._variables is not None and any(text in line for text in _POSSIBLE_TAGS):
                self._last_tag = line.strip()
                self._variables.append(self._parse_variable(line))
            return True
        # the name of a variable may contain a line break
        is_odd = not line.startswith((" ", "\t", "{", "}", "]"))
        if is_odd:
            self._has_variables = False
            if self._last_tag and self._variables:
                # the tag itself may be cut: it is found, but proves nothing
                self._variables[-1], self._last_tag = self._last_tag, ""
        return is_odd

    def _parse_variable(self, line: str) -> str:
        match = _LINE.fullmatch(line.strip())
        if match is None or match["value"] is None:
            self._has_variables = False
            return line.strip()
        # the result has one line per variable, whatever its value
        return f"{match['key']}={_decode_text(match['value'])}".replace("\n", " ")

    def _close(self, line: str) -> bool:
        brace, comma, rest = line.removeprefix(self._margins[self._depth - 1]).partition(",")
        if brace != "}" or rest or not line.startswith(self._margins[self._depth - 1]):
            return False
        if self._is_followed and self._depth < _PART:
            raise ValueError(f"nothing follows a comma before {line!r}")
        if self._depth == _ATTRIBUTE:
            self._end_job()
        self._depth -= 1
        self._is_followed = bool(comma)
        return True

    def _end_job(self) -> None:
        if "job_state" not in self._attributes:
            raise ValueError(f"{self._native_id} has no state")
        variables = "\n".join(self._variables or ())
        self._found.append(ListedJob(self._native_id, self._attributes, variables, self._has_variables))

    def _open(self, line: str) -> None:
        margin = self._margins[self._depth]
        match = _LINE.fullmatch(line, len(margin))
        if match is None or not line.startswith(margin) or self._is_followed is False:
            raise ValueError(f"{line!r} is not where it belongs")
        key, value = match["key"], match["value"]
        if self._depth == _ATTRIBUTE:
            self._add_attribute(key, value, match["open"])
        elif self._depth == _JOB:
            self._begin_job(key, value)
        elif (key == "Jobs") == (value is not None):
            raise ValueError(f"there is no section {key!r}")
        self._depth += value is None
        self._is_followed = None if value is None else bool(match["comma"])

    def _begin_job(self, key: str, value: str | None) -> None:
        if value is not None or not IDS.is_id(key):
            raise ValueError(f"{key!r} is no job")
        self._native_id, self._attributes, self._variables, self._has_variables = key, {}, None, False

    def _add_attribute(self, key: str, value: str | None, opened: str | None) -> None:
        if not _NAME.fullmatch(key):
            raise ValueError(f"{key!r} is no attribute")
        if value is not None:
            self._attributes[key] = _decode_text(value)
        self._is_list = opened not in {None, "{"}
        self._is_usage = key == _USED and value is None
        if key == _VARIABLES:
            self._variables, self._has_variables = [], True


def _decode_text(value: str) -> str:
    """Return a value as text, even if the printer wrote it as a number or as invalid JSON."""
    if not value.startswith('"'):
        return value.strip()
    try:
        return str(json.loads(value))
    except ValueError:
        return value[1:-1]
