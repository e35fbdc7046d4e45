"""Makes text of users and other programs safe to print: control characters cannot affect a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return the text with all unprintable characters, except line ends, as escapes.

    Control characters, ANSI escapes, marks that turn the direction of writing, and lone surrogates, which no
    encoding can express, are not printable.

    >>> printable("a\x1b[31mb\n\udc80")
    'a\\x1b[31mb\n\\udc80'
    """
    if text.isprintable():
        return text
    return "".join(it if it == "\n" or it.isprintable() else _escape(it) for it in text)


def one_line(text: str) -> str:
    r"""Return the text as `printable` does, with line ends as escapes, too.

    >>> one_line("a\nb")
    'a\\nb'
    """
    return text if text.isprintable() else printable(text).replace("\n", r"\n")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
