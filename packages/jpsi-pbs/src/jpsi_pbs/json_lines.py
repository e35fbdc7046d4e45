r"""Reading `qstat -f -F json` line by line, since not all that is printed there is JSON.

The printer of OpenPBS up to 23.06.06 leaves out backslashes and quotes that JSON wants, writes `nan`, and
mangles what is not ASCII; one such value, anybody's, spoils the whole text. But every attribute stands in a
line of its own, at its own depth, and no value can break a line: both printers write `\\n` for a line break,
and quotes as `\\"`. In the plain form of `qstat -f`, values break lines as they like.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from .listed import Listed
from .names import TAG

# One step of depth is four blanks, or a tab since the printer is cJSON.
_STEP = re.compile(r"\t| {4}")
_LINE = re.compile(r'((?:\t| {4})+)"((?:[^"\\]|\\.)*)":\s*(.*?),?\Z', re.DOTALL)
_SECTION, _JOB, _ATTRIBUTE, _PART = 1, 2, 3, 4
_VARIABLES = "Variable_List"
# Most of an answer are the variables of jobs, of which hardly any matters.
_DEEP = tuple(step * _PART for step in ("\t", "    "))


def jobs(output: str) -> list[Listed] | None:
    """The jobs in an answer; None if it is not whole."""
    lines = [line.rstrip("\r") for line in output.split("\n")]
    if "{" not in lines or "}" not in lines[lines.index("{") :]:
        return None
    start = lines.index("{")
    return list(_jobs(lines[start : lines.index("}", start)]))


def _jobs(lines: list[str]) -> Iterator[Listed]:
    native_id, attributes, variables = "", dict[str, str](), list[str]()
    section = group = ""
    for line in lines:
        match = None if line.startswith(_DEEP) and TAG not in line else _LINE.match(line)
        if match is None:
            continue
        depth, key, value = len(_STEP.findall(match[1])), match[2], match[3]
        if depth == _SECTION:
            section = key
        if section != "Jobs":
            continue
        if depth == _JOB:
            if native_id:
                yield Listed(native_id, attributes, "\n".join(variables))
            native_id, attributes, variables = key, {}, []
        elif depth == _ATTRIBUTE:
            group = key
            attributes[key] = _text(value)
        elif depth == _PART and group == _VARIABLES:
            variables.append(f"{key}={_text(value)}")
    if native_id:
        yield Listed(native_id, attributes, "\n".join(variables))


def _text(value: str) -> str:
    """A value as text, whatever the printer took it for."""
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value.strip('"')
