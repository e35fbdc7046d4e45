"""Reads values of a document as the types they must have; notes problems, and goes on.

After a problem the reader returns a harmless value, so that the rest of the document is checked as well.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

import attrs

from jpsi import parse_duration

from .problems import Findings, Position, closest_name, describe_value, suggest_name
from .yaml_text import Value

#: The form of a name; characters that join names are not allowed.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
#: The attributes of jobs, besides options of batch systems.
ATTRIBUTES = ("duration", "environment", "cwd", "watch")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([kKMGTPE]?i?)[bB]?")
_POWERS = {letter: power for power, letter in enumerate(("", "K", "M", "G", "T", "P", "E"))}


@attrs.frozen(slots=True)
class Reader:
    """A reader of values that notes problems with them."""

    findings: Findings

    def mapping(self, value: Value, code: str, known: Collection[str], aliases: Mapping[str, str]) -> Entries:
        """Return a mapping with these keys, or with others that stand for them.

        Args:
            value: where the mapping should be.
            code: of the problem if it is no mapping.
            known: the keys that it may have.
            aliases: other spellings of some of them.
        """
        if not isinstance(value.content, dict):
            self.findings.add_error(
                code, value.at, f"must be a mapping, not {describe_kind(value)}", "write `key: value`"
            )
            return Entries({})
        found: dict[str, Value] = {}
        for key, item in value.content.items():
            name = aliases.get(key, key)
            if name not in known:
                at = attrs.evolve(item.at, path=(*value.at.path, key))
                hint = _suggest_attributes(key, known) or suggest_name(key, known)
                self.findings.add_warning("JS003", at, "is an unknown key", hint)
                continue
            if name != key:
                self.findings.add_warning(
                    "JS003", item.at, f"is another word for {name!r}", f"write {name!r}"
                )
            if name in found:
                self.findings.add_error("JS004", item.at, f"is given twice, as {name!r}, too", "remove one")
            found[name] = item
        return Entries(found)

    def text(self, value: Value, code: str) -> str:
        """Return a text; note a word that YAML takes for something else."""
        if isinstance(value.content, str) and not value.is_ambiguous:
            return value.content
        if value.is_ambiguous:
            message = f"is {value.text} without quotes, which YAML takes for something else"
            self.findings.add_error("JS005", value.at, message, f"put it in quotes: {value.text!r}")
        else:
            hint = f"put it in quotes: {value.text!r}" if value.text else "write a text"
            self.findings.add_error(code, value.at, f"must be text, not {describe_kind(value)}", hint)
        return value.text

    def name(self, value: Value) -> str:
        """Return a name; note one that is not valid."""
        text = self.text(value, "JS010")
        self.check_name(text, value.at)
        return text

    def check_name(self, name: str, at: Position) -> None:
        """Note a name that is not valid, as one with characters that join names."""
        if not NAME.fullmatch(name):
            message = f"cannot be called {describe_value(name)}"
            hint = "begin with a letter or a digit; then letters, digits, and _ . - may follow"
            self.findings.add_error("JS010", at, message, hint)

    def flag(self, value: Value, code: str) -> bool:
        """Return True or False; False, with a note, if the value is neither."""
        if isinstance(value.content, bool):
            if value.is_ambiguous:
                self.findings.add_warning("JS005", value.at, f"is {value.text}", "write true or false")
            return value.content
        self.findings.add_error(
            code, value.at, f"must be true or false, not {describe_kind(value)}", "write true or false"
        )
        return False

    def count(self, value: Value, code: str) -> int:
        """Return a whole number, at least 1; 1, with a note, if the value is none."""
        content = value.content
        if (
            isinstance(content, int)
            and not isinstance(content, bool)
            and content >= 1
            and not value.is_ambiguous
        ):
            return content
        message = f"must be a whole number from 1 on, not {describe_kind(value)}"
        self.findings.add_error(code, value.at, message, "write a number such as 4")
        return 1

    def items(self, value: Value, code: str) -> list[Value]:
        """Return the items of a list; none, with a note, if the value is no list."""
        if isinstance(value.content, list):
            return value.content
        message = f"must be a list, not {describe_kind(value)}"
        self.findings.add_error(code, value.at, message, "write its items in [ ], or each on a line after -")
        return []

    def duration(self, value: Value) -> timedelta | None:
        """Return a duration from a number of seconds or a text such as 1h30m; zero means no limit."""
        content = value.content
        if not isinstance(content, bool) and isinstance(content, int | float | str):
            if (iso := _ISO.fullmatch(value.text)) and any(iso.groups()):
                days, hours, minutes, seconds = (int(part or 0) for part in iso.groups())
                return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
            with contextlib.suppress(ValueError):
                return parse_duration(value.text)
        message = f"must be a time, not {describe_kind(value)}"
        self.findings.add_error(
            "JS060", value.at, message, "write seconds, 300s, 1h30m, 1:30:00 or PT5M; 0 is no limit"
        )
        return None

    def size(self, value: Value, unit: str) -> int | None:
        """Return a size in bytes from a number with a unit, in powers of 1024."""
        match = _SIZE.fullmatch(f"{value.text} {unit}".strip()) if value.text else None
        if match is not None and not value.is_ambiguous:
            return int(float(match[1]) * 1024.0 ** _POWERS[match[2].removesuffix("i").upper()])
        message = f"must be a size, not {describe_kind(value)}"
        self.findings.add_error("JS027", value.at, message, "write a number and a unit: 16GB")
        return None

    def environment(self, value: Value) -> dict[str, str | None]:
        """Return environment variables, spelled as in the document; null unsets a variable."""
        if not isinstance(value.content, dict):
            message = f"must be a mapping, not {describe_kind(value)}"
            self.findings.add_error("JS062", value.at, message, "write `NAME: value`")
            return {}
        found: dict[str, str | None] = {}
        for name, item in value.content.items():
            if not _VARIABLE.fullmatch(name):
                hint = "use letters, digits and _, with no digit first"
                self.findings.add_error(
                    "JS062", item.at, f"is no name of a variable: {describe_value(name)}", hint
                )
            is_number = isinstance(item.content, int | float) and not isinstance(item.content, bool)
            if item.content is None and not item.is_ambiguous:
                found[name] = None
            elif is_number and not item.is_ambiguous:
                found[name] = item.text
            else:
                found[name] = self.text(item, "JS062")
        return found


@attrs.frozen(slots=True)
class Entries:
    """The values of a mapping by the keys that a document may have."""

    found: Mapping[str, Value]

    def __contains__(self, key: str) -> bool:
        return key in self.found

    def __getitem__(self, key: str) -> Value:
        return self.found[key]

    def get(self, key: str) -> Value | None:
        """Return the value of a key; None if the key is missing or empty."""
        value = self.found.get(key)
        return None if value is None or value.content is None else value


def _suggest_attributes(key: str, known: Collection[str]) -> str | None:
    """Return what to do about a key that belongs into the attributes beside it."""
    if "attributes" not in known or closest_name(key, known) is not None:
        return None
    if key in ATTRIBUTES:
        return "move it into `attributes:`"
    closest = closest_name(key, ATTRIBUTES)
    return None if closest is None else f"did you mean {closest!r}, in `attributes:`?"


def describe_kind(value: Value) -> str:
    """Return a short description of a value, for a message."""
    if isinstance(value.content, list | dict):
        return (
            describe_value(value.content) if value.content else f"{describe_value(value.content)} of nothing"
        )
    return describe_value(value.content) if isinstance(value.content, str) else value.text or "nothing"


def to_plain(value: Value) -> Any:  # noqa: ANN401  any value of YAML
    """Return a value without positions."""
    if isinstance(value.content, dict):
        return {key: to_plain(item) for key, item in value.content.items()}
    if isinstance(value.content, list):
        return [to_plain(item) for item in value.content]
    return value.content
