"""Problems of a document, each with its code, its position, and what to do about it.

All modules that read a document add to one `Findings`; one error at the end names everything that is wrong.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence

import attrs

from jpsi import InvalidJobException

#: The keys and indexes that lead to a value.
Path = tuple[str | int, ...]


@attrs.frozen(slots=True)
class Position:
    """A position in a document; lines and columns count from 1, and 0 means unknown."""

    line: int = 0
    column: int = 0
    path: Path = ()


NOWHERE = Position()


@attrs.frozen(slots=True)
class Problem:
    """An error or a warning about a document."""

    #: `JS` and three digits; a code keeps its meaning in every release.
    code: str
    at: Position
    #: The problem: the rest of a sentence that begins with the position.
    says: str
    #: What the user can do about it.
    do: str
    #: True if the document cannot be used because of it.
    is_error: bool
    #: The name of the document, usually its file.
    source: str = "<document>"

    def __str__(self) -> str:
        place = ":".join(map(str, filter(None, (self.source, self.at.line, self.at.column))))
        sentence = " ".join(filter(None, (render_path(self.at.path), self.says)))
        return f"{place}: {self.code}: {sentence}; {self.do}"


class WorkflowError(InvalidJobException):
    """A document that cannot be used; the error names all of its problems."""

    def __init__(self, source: str, errors: Sequence[Problem], warnings: Sequence[Problem] = ()) -> None:
        sentences = [str(it) for it in errors]
        text = sentences[0] if len(sentences) == 1 else "".join(f"\n  - {it}" for it in sentences)
        message = text if len(sentences) == 1 else f"{source} is not valid:{text}"
        super().__init__(message, problems=sentences)
        #: The errors, in the order of the document.
        self.errors: tuple[Problem, ...] = tuple(errors)
        #: The warnings.
        self.warnings: tuple[Problem, ...] = tuple(warnings)


@attrs.define(slots=True)
class Findings:
    """All problems of one document, collected while it is read."""

    source: str = "<document>"
    #: True if warnings count as errors.
    is_strict: bool = False
    #: True if unknown keys are warnings, not errors.
    is_lenient: bool = False
    _found: dict[Problem, None] = attrs.field(factory=dict)

    def add_error(self, code: str, at: Position, message: str, hint: str) -> None:
        """Note an error, which makes the document unusable."""
        self._found[Problem(code, at, message, hint, is_error=True, source=self.source)] = None

    def add_warning(self, code: str, at: Position, message: str, hint: str) -> None:
        """Note a warning, which is an error if `is_strict`."""
        self._found[Problem(code, at, message, hint, is_error=self.is_strict, source=self.source)] = None

    def add_unknown(self, code: str, at: Position, message: str, hint: str) -> None:
        """Note a key that has no effect: an error, or a warning if `is_lenient`."""
        if self.is_lenient:
            self.add_warning(code, at, message, hint)
        else:
            self.add_error(code, at, message, f"{hint} (--lenient ignores it)")

    @property
    def errors(self) -> list[Problem]:
        """The errors, in the order of the document."""
        return [it for it in self._sort() if it.is_error]

    @property
    def warnings(self) -> list[Problem]:
        """The warnings, in the order of the document."""
        return [it for it in self._sort() if not it.is_error]

    def check(self) -> None:
        """Raise one WorkflowError for all errors, if there is any."""
        if errors := self.errors:
            raise WorkflowError(self.source, errors, self.warnings)

    def _sort(self) -> list[Problem]:
        return sorted(self._found, key=lambda it: (it.at.line, it.at.column, it.code))


def render_path(path: Path) -> str:
    """Return a path as people write it.

    >>> render_path(("tasks", 0, "command")), render_path(("resources", "my node"))
    ('tasks[0].command', "resources['my node']")
    """
    return "".join(map(_render_step, path)).removeprefix(".")


def _render_step(step: str | int) -> str:
    if isinstance(step, str) and _WORD.fullmatch(step):
        return f".{step}"
    return f"[{step!r}]"


def describe_value(value: object) -> str:
    """Return a value in a few words of YAML, for a message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}..."


def closest_name(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that an unknown one probably means, or None."""
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1)), None)


def suggest_name(word: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown name: the name that was probably meant, else all known ones."""
    names = sorted(known)
    if closest := closest_name(word, names):
        return f"did you mean {closest!r}?"
    if not names:
        return "there is none; define one"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"known are: {', '.join(names[:_MAX_NAMES])}{more}"


_MAX_VALUE_LENGTH = 60
_MAX_NAMES = 12
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
