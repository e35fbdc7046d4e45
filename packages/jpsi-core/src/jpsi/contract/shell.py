"""Shell text: the only place where a value becomes part of it."""

from __future__ import annotations

import re
from typing import NewType

from jpsi.model.references import Reference, pieces

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
