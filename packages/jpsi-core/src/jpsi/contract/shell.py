"""Shell text: quotes values as words of shell lines and directives, so that no shell interprets them."""

from __future__ import annotations

import re
from typing import NewType

import attrs

#: A line of POSIX shell; made by `line` and from constants, never by formatting values into it.
ShellLine = NewType("ShellLine", str)

_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./-]+\Z")
# POSIX.1-2017, Shell Command Language 2.4, and what bash adds
_RESERVED = frozenset(
    "case coproc do done elif else esac fi for function if in select then time until while".split()  # noqa: SIM905  read as a line
)


def word(text: str) -> str:
    r"""Quote `text` as exactly one word of POSIX shell that the shell does not expand.

    >>> print(word("it's"))
    'it'\''s'

    Raises:
        ValueError: the text contains NUL, which no shell word can hold.
    """
    if "\0" in text:
        raise ValueError("a shell word cannot contain NUL")
    if _PLAIN.match(text) and text not in _RESERVED:
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def line(*words: str) -> ShellLine:
    """Make a command line of these words, each quoted.

    >>> line("cd", "/tmp/a b")
    "cd '/tmp/a b'"
    """
    return ShellLine(" ".join(word(text) for text in words))


# Printable ASCII without the characters that some batch system's parser treats specially: quotes, backslash,
# # and $, `
_DIRECTIVE_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./=~^\[\]()*?!|&<>{}-]+\Z")
_DIRECTIVE_QUOTED = re.compile(r"[^\x00-\x1f\x7f'\"\\`$\x80-\x9f\u2028\u2029]*\Z")
# Refused characters, by their names for messages.
_REFUSED = (
    ("line breaks", "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"),
    ("quotes", "'\""),
    ("backslashes", "\\"),
    ("$", "$"),
    ("`", "`"),
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def _refused_in(value: str) -> str:
    """Return the names of the characters in the value that a directive cannot hold, joined for a sentence."""
    found = [name for name, characters in _REFUSED if any(it in characters for it in value)]
    line_breaks = _REFUSED[0][1]
    if any(it not in line_breaks for it in _CONTROL.findall(value)):
        found.append("control characters")
    return " or ".join(filter(None, (", ".join(found[:-1]), found[-1])))


@attrs.frozen(slots=True)
class Directive:
    """A line of a script that states a need of the job to the batch system; made by `of`."""

    text: str

    @classmethod
    def of(cls, prefix: str, option: str, value: str | None = None, *, joint: str = "=") -> Directive:
        """Return the directive that sets `option`, to `value` if there is one.

        A value with blanks is put in single quotes, which group a word in every batch system.

        >>> Directive.of("#SBATCH", "--job-name", "my job").text
        "#SBATCH --job-name='my job'"
        >>> Directive.of("#PBS", "-N", "a", joint=" ").text
        '#PBS -N a'

        Raises:
            ValueError: no single line expresses the value so that every batch system's parser reads it back.
        """
        if value is None:
            return cls(f"{prefix} {option}")
        if not _DIRECTIVE_PLAIN.match(value):
            if not _DIRECTIVE_QUOTED.match(value):
                msg = f"{option} cannot be {value!r}: no {_refused_in(value)} can stand in a directive"
                raise ValueError(msg)
            value = f"'{value}'"
        return cls(f"{prefix} {option}{joint}{value}")


@attrs.frozen(slots=True)
class Script:
    """The script that a batch system receives: directives, and one line that runs the job.

    All text of the user is in the file that this line runs, because batch systems act on text that looks like
    a directive anywhere in a script.
    """

    directives: tuple[Directive, ...] = attrs.field(converter=tuple[Directive, ...])
    #: The line that runs the job; the core sets it.
    run: ShellLine = ShellLine("")
    #: The absolute path of the file that this line runs; the core sets it.
    file: str = ""

    @property
    def text(self) -> str:
        """The script as the batch system reads it."""
        return "\n".join(["#!/bin/sh", *(directive.text for directive in self.directives), self.run, ""])
