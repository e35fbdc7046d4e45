"""Reads values of a document as the types they must have; notes problems, and goes on.

After a problem a function returns a harmless value, so that the rest of the document is checked as well.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import Any, TypeVar

import attrs

from jpsi import parse_duration
from jpsi_engine import JOB_FIELDS

from .problems import Findings, Position, closest_name, describe_value, suggest_name

T = TypeVar("T")

#: The form of a name; characters that join names are not allowed.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
#: The attributes of jobs, besides options of batch systems.
ATTRIBUTES = ("duration", "environment", "cwd", "watch", *JOB_FIELDS)
#: Other spellings of keys, accepted with a warning.
KEY_ALIASES = {
    "scheduled": "schedule",
    "dependson": "depends_on",
    "depends-on": "depends_on",
    "dependsOn": "depends_on",
    "resource": "resources",
    "env": "environment",
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
# A smaller number without a unit was meant in another one.
_LEAST_BYTES = 1 << 20
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([kKMGTPE]?i?)[bB]?")
_POWERS = {letter: power for power, letter in enumerate(("", "K", "M", "G", "T", "P", "E"))}


Scalar = str | int | float | bool | None


@attrs.frozen(slots=True)
class Value:
    """A scalar, list or mapping of a document, with its position."""

    content: Scalar | list[Value] | dict[str, Value]
    at: Position
    #: Get the problems with the value.
    findings: Findings = attrs.field(eq=False, repr=False)
    #: The text of a scalar in the document.
    text: str = ""
    #: True if YAML 1.1 reads a word as something unexpected, such as `no` and `1:30`.
    is_ambiguous: bool = False
    #: True if it is that of a parameter, which has a text as well as a type.
    is_of_parameter: bool = False

    def error(self, code: str, message: str, hint: str) -> None:
        """Note an error at this position."""
        self.findings.add_error(code, self.at, message, hint)

    def warn(self, code: str, message: str, hint: str) -> None:
        """Note a warning at this position."""
        self.findings.add_warning(code, self.at, message, hint)

    def must_be(self, expected: str, code: str, hint: str) -> None:
        """Note that the value is something else than it must be."""
        self.error(code, f"must be {expected}, not {self.describe()}", hint)

    def describe(self) -> str:
        """Return a short description, for a message."""
        if isinstance(self.content, list | dict):
            return describe_value(self.content) + ("" if self.content else " of nothing")
        return describe_value(self.content) if isinstance(self.content, str) else self.text or "nothing"

    def is_number(self) -> bool:
        """Return True if the value is a number."""
        return isinstance(self.content, int | float) and not isinstance(self.content, bool)

    def as_mapping(self, code: str, known: Collection[str]) -> Entries:
        """Return a mapping with these keys, or with aliases of them; `code` is for what is no mapping."""
        if not isinstance(self.content, dict):
            self.must_be("a mapping", code, "write `key: value`")
            return Entries()
        found = Entries()
        for key, item in self.content.items():
            name = KEY_ALIASES.get(key, key)
            if name not in known:
                hint = _suggest_attributes(key, known) or suggest_name(key, known)
                at = attrs.evolve(item.at, path=(*self.at.path, key))
                self.findings.add_unknown("JS003", at, "is an unknown key", hint)
                continue
            if name != key:
                item.warn("JS003", f"is another word for {name!r}", f"write {name!r}")
            if name in found:
                item.error("JS004", f"is given twice, as {name!r}, too", "remove one")
            found[name] = item
        return found

    def as_text(self, code: str) -> str:
        """Return a text; note a word that YAML takes for something else."""
        if self.is_ambiguous:
            message = f"is {self.text} without quotes, which YAML takes for something else"
            self.error("JS005", message, f"put it in quotes: {self.text!r}")
        elif not isinstance(self.content, str) and not self.is_of_parameter:
            self.must_be("text", code, f"put it in quotes: {self.text!r}" if self.text else "write a text")
        return self.content if isinstance(self.content, str) else self.text

    def as_name(self) -> str:
        """Return a name; note one that is not valid."""
        return self.check_name(self.as_text("JS010"))

    def check_name(self, name: str) -> str:
        """Return the name of a value; note one that is not valid, as one with characters that join names."""
        if not NAME.fullmatch(name):
            hint = "begin with a letter or a digit; then letters, digits, and _ . - may follow"
            self.error("JS010", f"cannot be called {describe_value(name)}", hint)
        return name

    def as_flag(self, code: str) -> bool:
        """Return True or False; False, with a note, if the value is neither."""
        if not isinstance(self.content, bool):
            self.must_be("true or false", code, "write true or false")
            return False
        if self.is_ambiguous:
            self.warn("JS005", f"is {self.text}", "write true or false")
        return self.content

    def as_count(self, code: str) -> int:
        """Return a whole number, at least 1; 1, with a note, if the value is none."""
        if type(self.content) is int and self.content >= 1 and not self.is_ambiguous:
            return self.content
        self.must_be("a whole number from 1 on", code, "write a number such as 4")
        return 1

    def as_items(self, code: str) -> list[Value]:
        """Return the items of a list; none, with a note, if the value is no list."""
        if isinstance(self.content, list):
            return self.content
        self.must_be("a list", code, "write its items in [ ], or each on a line after -")
        return []

    def as_duration(self) -> timedelta | None:
        """Return a duration from a number of seconds or a text such as 1h30m; zero means no limit."""
        if isinstance(self.content, str) or self.is_number():
            with contextlib.suppress(ValueError, OverflowError):
                if (iso := _ISO.fullmatch(self.text)) and any(iso.groups()):
                    days, hours, minutes, seconds = (int(part or 0) for part in iso.groups())
                    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
                return parse_duration(self.text)
        self.must_be("a time", "JS060", "write seconds, 300s, 1h30m, 1:30:00 or PT5M; 0 is no limit")
        return None

    def as_size(self, unit: str) -> int | None:
        """Return a size in bytes from a number with a unit, in powers of 1024; less than 1 MiB needs one."""
        match = _SIZE.fullmatch(f"{self.text} {unit}".strip()) if self.text else None
        if match is not None and not self.is_ambiguous:
            with contextlib.suppress(OverflowError):
                size = int(float(match[1]) * 1024.0 ** _POWERS[match[2].removesuffix("i").upper()])
                if size >= _LEAST_BYTES or not match[0][-1].isdigit():
                    return size
                message = f"{match[0]} is a number of bytes, too few for any job"
                self.error("JS027", message, f"add a unit: {match[0]}GB")
                return None
        self.must_be("a size", "JS027", "write a number and a unit: 16GB")
        return None

    def as_environment(self) -> dict[str, str | None]:
        """Return environment variables, spelled as in the document; null unsets a variable."""
        if not isinstance(self.content, dict):
            self.must_be("a mapping", "JS062", "write `NAME: value`")
            return {}
        for name, item in self.content.items():
            if not _VARIABLE.fullmatch(name):
                hint = "use letters, digits and _, with no digit first"
                item.error("JS062", f"is no name of a variable: {describe_value(name)}", hint)
        return {name: it.as_variable() for name, it in self.content.items()}

    def as_variable(self) -> str | None:
        """Return the value of an environment variable; None unsets it."""
        if self.is_ambiguous:
            return self.as_text("JS062")
        if self.content is None:
            return None
        return self.text if self.is_number() else self.as_text("JS062")

    def find(self, steps: Iterable[str | int]) -> Value:
        """Return the value that keys and indexes lead to, or the innermost one around it."""
        value = self
        for step in steps:
            content = value.content
            inner = dict(enumerate(content)) if isinstance(content, list) else content
            if not isinstance(inner, dict):
                break
            value = {str(key): it for key, it in inner.items()}.get(str(step), value)
        return value

    def to_plain(self) -> Any:  # noqa: ANN401  any value of YAML
        """Return a value without positions."""
        if isinstance(self.content, dict):
            return {key: item.to_plain() for key, item in self.content.items()}
        if isinstance(self.content, list):
            return [item.to_plain() for item in self.content]
        return self.content


class Entries(dict[str, Value]):
    """The values of a mapping by the keys that a document may have."""

    def find(self, key: str) -> Value | None:
        """Return the value of a key; None if the key is missing or empty."""
        value = self.get(key)
        return None if value is None or value.content is None else value

    def read(self, key: str, convert: Callable[..., T | None], *arguments: object) -> T | None:
        """Return the value of a key as `convert` reads it; None if the key is missing or empty."""
        value = self.find(key)
        return None if value is None else convert(value, *arguments)


def _suggest_attributes(key: str, known: Collection[str]) -> str | None:
    """Return what to do about a key that belongs into the attributes beside it."""
    if "attributes" not in known or closest_name(key, known) is not None:
        return None
    if key in ATTRIBUTES:
        return "move it into `attributes:`"
    closest = closest_name(key, ATTRIBUTES)
    return None if closest is None else f"did you mean {closest!r}, in `attributes:`?"
