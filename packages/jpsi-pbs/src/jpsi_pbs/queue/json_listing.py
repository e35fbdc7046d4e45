r"""Reading `qstat -f -F json` line by line, since not all that is printed there is JSON.

The printer of OpenPBS up to 23.06.06 leaves out backslashes and quotes that JSON wants, writes `nan`, and
mangles what is not ASCII; one such value, anybody's, spoils the whole text. But every attribute stands in a
line of its own, at its own depth, and no value can break a line: both printers write `\\n` for a line break,
and quotes as `\\"`. In the plain form of `qstat -f`, values break lines as they like.

So an answer is whole if each line stands at the depth where it belongs and has a comma if another follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import pairwise

from ..job_names import TAG
from ..native_ids import IDS
from .listing import Listed

# The first line after the brace; one step of depth is four blanks, or a tab since the printer is cJSON.
_FIRST = re.compile(r'(\t| {4})"timestamp":')
# A quote within text has a backslash before it, unless it comes first or after another backslash; the last
# backslash may be one that should have been two.
_TEXT = r'""?(?:[^"\\\t]|\\.|(?<=\\)")*\\?"'
_LINE = re.compile(
    rf'"(?P<key>(?:[^"\\]|\\.)*)":\s*'
    rf"(?:(?P<value>{_TEXT}|[A-Za-z0-9+. ()_-]+|\{{\}}|\[.*\])|(?P<open>(?:\[.*)?\{{))(?P<comma>,?)",
    re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_FRAME, _SECTION, _JOB, _ATTRIBUTE, _PART = range(5)
_VARIABLES = "Variable_List"
# Most of an answer are the variables of jobs, of which only those matter that may be a tag.
_OF_INTEREST = (TAG, '"jpsi-')


def parse_json_jobs(output: str) -> list[Listed] | None:
    """The jobs in an answer, after whatever a site has printed before it; None if it is not whole."""
    lines = [line.rstrip("\r") for line in output.split("\n")]
    for at, (line, following) in enumerate(pairwise(lines)):
        first = _FIRST.match(following)
        if line == "{" and first is not None:
            try:
                return _Frame(first[1]).read(lines[at + 1 :])
            except ValueError:
                return None
    return None


class _Frame:
    """What is between the outermost braces, line by line."""

    def __init__(self, step: str) -> None:
        self._margins = [step * depth for depth in range(_PART + 1)]
        self._depth = _SECTION
        # Whether the last line says that another follows; None if either may be.
        self._is_followed: bool | None = None
        self._is_list = self._has_variables = False
        self._native_id, self._attributes = "", dict[str, str]()
        self._variables: list[str] | None = None
        self._found: list[Listed] = []

    def read(self, lines: Iterable[str]) -> list[Listed]:
        """The jobs.

        Raises:
            ValueError: the lines end before the braces do, or one of them is not where it belongs.
        """
        for line in lines:
            if self._depth == _PART and self._has_part(line):
                continue
            if not self._has_closed(line):
                self._open(line)
            elif self._depth == _FRAME:
                return self._found
        msg = "the end is missing"
        raise ValueError(msg)

    def _has_part(self, line: str) -> bool:
        """Whether a line is a part of the value of an attribute."""
        if line.startswith(self._margins[_PART]):
            if self._is_list and line.lstrip().startswith("}]"):
                self._depth, self._is_followed = _ATTRIBUTE, line.endswith(",")
            elif self._variables is not None and any(text in line for text in _OF_INTEREST):
                self._variables.append(self._variable(line))
            return True
        # the name of a variable may break a line
        is_odd = not line.startswith((" ", "\t", "{", "}", "]"))
        if is_odd:
            self._has_variables = False
        return is_odd

    def _variable(self, line: str) -> str:
        match = _LINE.fullmatch(line.strip())
        if match is None or match["value"] is None:
            self._has_variables = False
            return line.strip()
        # a line for each variable, whatever its value
        return f"{match['key']}={_text(match['value'])}".replace("\n", " ")

    def _has_closed(self, line: str) -> bool:
        brace, comma, rest = line.removeprefix(self._margins[self._depth - 1]).partition(",")
        if brace != "}" or rest or not line.startswith(self._margins[self._depth - 1]):
            return False
        if self._is_followed and self._depth < _PART:
            msg = f"nothing follows a comma before {line!r}"
            raise ValueError(msg)
        if self._depth == _ATTRIBUTE:
            self._end_job()
        self._depth -= 1
        self._is_followed = bool(comma)
        return True

    def _end_job(self) -> None:
        if "job_state" not in self._attributes:
            msg = f"{self._native_id} has no state"
            raise ValueError(msg)
        variables = "\n".join(self._variables or ())
        self._found.append(Listed(self._native_id, self._attributes, variables, self._has_variables))

    def _open(self, line: str) -> None:
        margin = self._margins[self._depth]
        match = _LINE.fullmatch(line, len(margin))
        if match is None or not line.startswith(margin) or self._is_followed is False:
            msg = f"{line!r} is not where it belongs"
            raise ValueError(msg)
        key, value = match["key"], match["value"]
        if self._depth == _ATTRIBUTE:
            self._attribute(key, value, match["open"])
        elif self._depth == _JOB:
            self._begin_job(key, value)
        elif (key == "Jobs") == (value is not None):
            msg = f"there is no section {key!r}"
            raise ValueError(msg)
        self._depth += value is None
        self._is_followed = None if value is None else bool(match["comma"])

    def _begin_job(self, key: str, value: str | None) -> None:
        if value is not None or not IDS.has(key):
            msg = f"{key!r} is no job"
            raise ValueError(msg)
        self._native_id, self._attributes, self._variables, self._has_variables = key, {}, None, False

    def _attribute(self, key: str, value: str | None, opened: str | None) -> None:
        if not _NAME.fullmatch(key):
            msg = f"{key!r} is no attribute"
            raise ValueError(msg)
        if value is not None:
            self._attributes[key] = _text(value)
        self._is_list = opened not in {None, "{"}
        if key == _VARIABLES:
            self._variables, self._has_variables = [], True


def _text(value: str) -> str:
    """A value as text, whatever the printer took it for."""
    if not value.startswith('"'):
        return value.strip()
    try:
        return str(json.loads(value))
    except ValueError:
        return value[1:-1]
