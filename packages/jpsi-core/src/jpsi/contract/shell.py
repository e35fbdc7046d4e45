"""Shell text: the only place where a value becomes part of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NewType

import attrs

from jpsi.model import Reference, pieces

#: A line of POSIX shell; made by `line` and by constants, never by formatting values in.
ShellLine = NewType("ShellLine", str)

_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./-]+\Z")
# POSIX.1-2017, Shell Command Language 2.4, and what bash adds
_RESERVED = frozenset(
    "case coproc do done elif else esac fi for function if in select then time until while".split()  # noqa: SIM905  read as a line
)


def word(text: str) -> str:
    r"""`text` as exactly one word of POSIX shell that means nothing but itself.

    >>> print(word("it's"))
    'it'\''s'

    Raises:
        ValueError: the text contains NUL, which no shell word can.
    """
    if "\0" in text:
        msg = "a shell word cannot contain NUL"
        raise ValueError(msg)
    if _PLAIN.match(text) and text not in _RESERVED:
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def line(*words: str) -> ShellLine:
    """A command line of these words, each quoted.

    >>> line("cd", "/tmp/a b")
    "cd '/tmp/a b'"
    """
    return ShellLine(" ".join(word(text) for text in words))


def expanding(text: str, *, keep_unset: bool) -> str:
    """`text` as one word in which `${NAME}` is replaced by the variable when the shell gets there.

    An unset name stays as written if `keep_unset` is true, else it is empty.

    >>> print(expanding("a b${C}", keep_unset=False))
    'a b'"${C-}"
    """
    if "${" not in text:
        return word(text)
    return "".join(_piece(piece, keep_unset=keep_unset) for piece in pieces(text)) or "''"


def _piece(piece: str | Reference, *, keep_unset: bool) -> str:
    if isinstance(piece, str):
        return word(piece)
    unset = f"\\${{{piece.name}\\}}" if keep_unset else ""
    return f'"${{{piece.name}-{unset}}}"'


def path_word(path: str, home: str = "HOME") -> str:
    """A path as one word in which a leading `~/` is the directory that the variable `home` holds.

    >>> print(path_word("~/my runs"), path_word("/tmp"), path_word("~user"))
    "$HOME"'/my runs' /tmp '~user'
    """
    if path == "~" or path.startswith("~/"):
        rest = path[1:]
        return f'"${home}"' + (word(rest) if rest else "")
    return word(path)


# Printable ASCII without what any batch system's reader gives a meaning: quotes, backslash, # and $, `
_DIRECTIVE_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./=~^\[\]()*?!|&<>{}-]+\Z")
_DIRECTIVE_QUOTED = re.compile(r"[^\x00-\x1f\x7f'\"\\`$\x80-\x9f\u2028\u2029]*\Z")
# What is refused, by the names that people know; of all but the last, the characters.
_REFUSED = (
    ("line breaks", "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"),
    ("quotes", "'\""),
    ("backslashes", "\\"),
    ("$", "$"),
    ("`", "`"),
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def _refused_in(value: str) -> str:
    """Return the names of what a directive cannot hold and this value does, joined for a sentence."""
    found = [name for name, characters in _REFUSED if any(it in characters for it in value)]
    line_breaks = _REFUSED[0][1]
    if any(it not in line_breaks for it in _CONTROL.findall(value)):
        found.append("control characters")
    return " or ".join(filter(None, (", ".join(found[:-1]), found[-1])))


@attrs.frozen(slots=True)
class Directive:
    """One line by which a script tells its batch system what the job needs; made by `of`."""

    text: str

    @classmethod
    def of(cls, prefix: str, option: str, value: str | None = None, *, joint: str = "=") -> Directive:
        """The directive that sets `option`, to `value` if there is one.

        A value with blanks is put in single quotes, which group a word in every batch system.

        >>> Directive.of("#SBATCH", "--job-name", "my job").text
        "#SBATCH --job-name='my job'"
        >>> Directive.of("#PBS", "-N", "a", joint=" ").text
        '#PBS -N a'

        Raises:
            ValueError: the value cannot be said in one line that every reader takes for that value.
        """
        if value is None:
            return cls(f"{prefix} {option}")
        if not _DIRECTIVE_PLAIN.match(value):
            if not _DIRECTIVE_QUOTED.match(value):
                msg = f"{option} cannot be {value!r}: no {_refused_in(value)} can stand in a directive"
                raise ValueError(msg)
            value = f"'{value}'"
        return cls(f"{prefix} {option}{joint}{value}")


def _directives(directives: Iterable[Directive]) -> tuple[Directive, ...]:
    return tuple(directives)


@attrs.frozen(slots=True)
class Script:
    """What a batch system is given to read: directives, and one line that runs the job.

    Everything from the user stands in the file that this line runs, as batch systems act on text that
    looks like a directive wherever it stands.
    """

    directives: tuple[Directive, ...] = attrs.field(converter=_directives)
    #: The line that runs the job; the core sets it.
    run: ShellLine = ShellLine("")

    @property
    def text(self) -> str:
        """The script as the batch system reads it."""
        return "\n".join(["#!/bin/sh", *(directive.text for directive in self.directives), self.run, ""])
