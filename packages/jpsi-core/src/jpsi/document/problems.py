"""Collects the mistakes in a job document, and names places and values for messages."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable

import attrs

from jpsi.model import DocumentError, InvalidJobException

#: The place of a value in a document: the keys and indexes that lead to it.
Place = tuple[str | int, ...]


@attrs.define(slots=True)
class Problems:
    """All mistakes of one document.

    Values inside a wrong value are not checked: `add` ignores them.
    """

    #: The document's name, usually its file name.
    source: str
    #: The line, from 1, of a value or its key, if it is known.
    lines: dict[Place, int] = attrs.field(factory=dict)
    #: The warnings.
    doubts: list[str] = attrs.field(factory=list)
    _found: list[tuple[int, str]] = attrs.field(factory=list)
    _wrong: set[Place] = attrs.field(factory=set)

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, place: Place, sentence: str) -> None:
        """Note that the value at `place` is wrong."""
        if not any(place[:length] in self._wrong for length in range(len(place) + 1)):
            self._wrong.add(place)
            self.add_beside(place, sentence)

    def add_beside(self, place: Place, sentence: str, line: int | None = None) -> None:
        """Note a mistake at `place`, on `line`, after which the value at that place can still be checked."""
        line = line or self._line(place)
        self._found.append((line, self._located(place, sentence, line)))

    def located(self, place: Place, sentence: str) -> str:
        """Return the sentence with its place in front: `job.yaml:12: tasks[0].command: ...`."""
        return self._located(place, sentence, self._line(place))

    def concern(self, place: Place) -> bool:
        """Return True if the value at `place`, a value in it or a value around it was found wrong."""
        return any(place[: len(wrong)] == wrong[: len(place)] for wrong in self._wrong)

    def error(self) -> InvalidJobException:
        """Return one DocumentError that names every mistake, in the order of their lines."""
        found = sorted(self._found, key=lambda mistake: mistake[0])
        return DocumentError.of(self.source, [sentence for _, sentence in found])

    def _line(self, place: Place) -> int:
        known = (self.lines.get(place[:length]) for length in range(len(place), -1, -1))
        return next((line for line in known if line is not None), 0)

    def _located(self, place: Place, sentence: str, line: int) -> str:
        parts = [f"{self.source}:{line}" if line else self.source, spelled(place), sentence]
        return ": ".join(filter(None, parts))


def spelled(place: Place) -> str:
    """Return a place as a user would write it: `tasks[0].command`."""
    text = "".join(map(_step, place)).removeprefix(".")
    return text if len(text) <= _SPELLED else f"{text[:_SPELLED]}..."


def _step(step: str | int) -> str:
    if isinstance(step, str) and _WORD.fullmatch(step):
        return f".{step}"
    return f"[{shown(step)}]"


def shown(value: object) -> str:
    """Describe a value briefly in the document's own syntax, for a message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return the end of a sentence that suggests a known word; empty if none is close."""
    close = difflib.get_close_matches(word, known, n=1) if isinstance(word, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


_SHOWN = 60
_SPELLED = 200
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
