"""Parses YAML into values with their positions; a syntax error is shown with a caret and a hint.

The loader begins with it. Limits keep a document with nested aliases from filling the memory.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping

import yaml

from jpsi.plugin import explain_yaml_error

from .problems import Findings, Path, Position, describe_value
from .values import Scalar, Value

#: The limits of a document: its size, the depth of its values, and how many values aliases may repeat.
MAX_BYTES, MAX_DEPTH, MAX_REPEATED = 32 * 2**20, 60, 10_000


def parse(text: str, findings: Findings) -> Value | None:
    """Return the value of a document; None if it is not YAML, with the problem in `findings`."""
    if len(text) > MAX_BYTES:
        message = f"it has {len(text)} characters, more than {MAX_BYTES}"
        findings.add_error("JS006", Position(1, 1), message, "split it")
        return None
    text = text.removeprefix("\ufeff")
    kind = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        return _Builder(yaml.parse(text, kind), findings).document()
    # PyYAML 6.0 in Python does not expect an escape above \U0010FFFF, nor %YAML with thousands of digits.
    except (yaml.YAMLError, ValueError, OverflowError) as e:
        findings.add_error(*_explain_error(text, e))
    except _TooLargeError as e:
        at, message = e.args
        findings.add_error("JS006", at, message, "write less")
    return None


class _TooLargeError(Exception):
    """A document that is larger than the limits: where, and by what."""


class _Builder:
    """A builder of values from the events of a YAML parser, much faster than by way of YAML nodes."""

    def __init__(self, events: Iterator[yaml.Event], findings: Findings) -> None:
        self._events = events
        self._findings = findings
        self._anchors: dict[str, Value] = {}
        self._repeated = 0

    def document(self) -> Value:
        starts = (it for it in self._events if isinstance(it, yaml.DocumentStartEvent))
        if next(starts, None) is None:
            return Value(None, Position(1, 1), self._findings)
        found = self._value(next(self._events), ())
        if (second := next(starts, None)) is not None:
            at, message = _event_position(second, ()), "there is a second document in it"
            self._findings.add_error("JS001", at, message, "make it a file of its own")
        return found

    def _value(self, event: yaml.Event, path: Path) -> Value:
        at = _event_position(event, path)
        if len(path) > MAX_DEPTH:
            raise _TooLargeError(at, f"is nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, at)
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event, at)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = Value(self._list(path), at, self._findings)
        else:
            value = Value(self._mapping(path), at, self._findings)
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _alias(self, event: yaml.AliasEvent, at: Position) -> Value:
        value = self._anchors.get(event.anchor or "")
        if value is None:
            message = f"names the anchor {event.anchor!r}, which is not complete before it"
            self._findings.add_error("JS006", at, message, "write out what is meant")
            return Value(None, at, self._findings)
        self._repeated += _size(value)
        if self._repeated > MAX_REPEATED:
            raise _TooLargeError(at, f"repeats by aliases more than {MAX_REPEATED} values")
        return value

    def _scalar(self, event: yaml.ScalarEvent, at: Position) -> Value:
        text: str = event.value
        kind = None if event.style else _resolve(text)
        if kind is None:
            return Value(text, at, self._findings, text)
        try:
            content = _CONVERTERS[kind](text)
        except (ValueError, OverflowError):
            return Value(text, at, self._findings, text, is_ambiguous=True)
        is_word = kind == "bool" and text.lower() not in {"true", "false"}
        is_odd = is_word or (kind in {"int", "float"} and ":" in text)
        return Value(content, at, self._findings, text, is_odd)

    def _list(self, path: Path) -> list[Value]:
        found: list[Value] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._value(event, (*path, len(found))))
        return found

    def _mapping(self, path: Path) -> dict[str, Value]:
        content: dict[str, Value] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, path)
            value = self._value(next(self._events), path if key is None else (*path, key))
            if key is None:
                continue
            if key in content:
                message = f"has the key {describe_value(key)} twice"
                self._findings.add_error("JS004", _event_position(event, path), message, "remove one")
            else:
                content[key] = value
        return content

    def _key(self, event: yaml.Event, path: Path) -> str | None:
        at = _event_position(event, path)
        if not isinstance(event, yaml.ScalarEvent):
            self._value(event, path)
            self._findings.add_error("JS003", at, "has a key that is no text", "give it a name")
            return None
        text: str = event.value
        kind = None if event.style else _resolve(text)
        if kind == "merge":
            self._findings.add_error("JS003", at, "has the key <<", "write out what is meant")
            return None
        if kind is not None:
            message = f"has the key {text}, of which YAML makes {_KINDS[kind]}"
            self._findings.add_error("JS005", at, message, f"put it in quotes: {text!r}")
            return None
        return text


def _event_position(event: yaml.Event, path: Path) -> Position:
    mark = event.start_mark
    return Position(0, 0, path) if mark is None else Position(mark.line + 1, mark.column + 1, path)


def _size(value: Value) -> int:
    if isinstance(value.content, list):
        return 1 + sum(map(_size, value.content))
    if isinstance(value.content, dict):
        return 1 + sum(map(_size, value.content.values()))
    return 1


@functools.lru_cache(maxsize=1024)
def _resolve(text: str) -> str | None:
    """Return the type that YAML 1.1 gives a word without quotes; None for text, dates and `=`."""
    for tag, form in yaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], []):
        kind = tag.removeprefix("tag:yaml.org,2002:")
        if form.match(text) and (kind in _CONVERTERS or kind == "merge"):
            return str(kind)
    return None


def _parse_integer(text: str) -> int:
    if _DIGITS.fullmatch(text):
        return int(text)
    # YAML 1.1 has base-60 and octal numbers
    return int(yaml.SafeLoader("").construct_yaml_int(yaml.ScalarNode("", text)))


def _parse_float(text: str) -> float:
    return float(yaml.SafeLoader("").construct_yaml_float(yaml.ScalarNode("", text)))


_DIGITS = re.compile(r"[1-9][0-9]{0,17}|0")
_KINDS = {"bool": "true or false", "null": "nothing", "int": "a number", "float": "a number"}
_CONVERTERS: Mapping[str, Callable[[str], Scalar]] = {
    "null": lambda _: None,
    "bool": lambda text: text.lower() in {"yes", "true", "on"},
    "int": _parse_integer,
    "float": _parse_float,
}


def _explain_error(text: str, error: Exception) -> tuple[str, Position, str, str]:
    """Return YAML's syntax error as a problem: with the line, a caret, and the columns of sibling items."""
    found = explain_yaml_error(text, _error_in_python(text) or error)
    lines = text.splitlines()
    line = lines[found.line - 1] if 0 < found.line <= len(lines) else ""
    caret = f"\n    {line}\n    {' ' * (found.column - 1)}^\n   " if found.line else ""
    hint = found.hint or (_sibling_hint(lines, found.line - 1) if found.line else "correct that")
    return "JS000", Position(found.line, found.column), f"{found.sentence}{caret}", hint


def _error_in_python(text: str) -> yaml.YAMLError | None:
    """Return the error of the parser in Python, which says more than that of libyaml; None if it has none."""
    # as in `parse`
    with contextlib.suppress(ValueError, OverflowError):
        try:
            list(yaml.parse(text, yaml.SafeLoader))
        except yaml.YAMLError as e:
            return e
    return None


def _sibling_hint(lines: list[str], index: int) -> str:
    """Return at which columns the items start that a line's item may belong to."""
    indent = _item_indent(lines[index]) if index < len(lines) else None
    found = {} if indent is None else dict(_siblings(lines, index))
    if indent is None or indent in found:
        return "see whether it, and the lines before it, are indented and quoted as they should be"
    if not found:
        return "indent it as the other items of its list"
    minimum = min(abs(column - indent) for column in found)
    columns = (
        f"sibling item starts at column {column + 1} (line {number + 1})"
        for column, number in found.items()
        if abs(column - indent) == minimum
    )
    return f"this item starts at column {indent + 1}, where no list has its items: {', or '.join(columns)}"


def _siblings(lines: list[str], index: int) -> Iterator[tuple[int, int]]:
    """Yield the column of each list that is open where a line begins, with the line of its last item."""
    minimum: int | None = None
    for number in range(index - 1, -1, -1):
        indent = _item_indent(lines[number])
        if indent is not None and (minimum is None or indent < minimum):
            minimum = indent
            yield indent, number


def _item_indent(line: str) -> int | None:
    match = re.match(r"( *)-(?: |$)", line)
    return None if match is None else len(match[1])
