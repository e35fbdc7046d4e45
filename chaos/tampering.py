"""The ways to spoil an answer; run with the name of one, the module spoils its standard input."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable

#: A function that spoils the text of an answer.
Garble = Callable[[str], str]


def garblings(rng: random.Random) -> dict[str, Garble]:
    """Return the ways to spoil an answer, by name."""

    def junk(count: int) -> str:
        return rng.randbytes(count).decode("utf-8", "surrogateescape")

    def cut(text: str) -> str:
        return text[: rng.randrange(len(text))] if text else ""

    def garbled(text: str) -> str:
        if not text:
            return junk(20)
        at = rng.randrange(len(text))
        return text[:at] + junk(rng.randint(8, 40)) + text[at + rng.randint(1, 40) :]

    def cut_at_line(text: str) -> str:
        lines = text.splitlines(keepends=True)
        return "".join(lines[: rng.randrange(len(lines))]) if lines else ""

    return {
        "nothing": lambda _: "",
        "random bytes": lambda _: junk(rng.randint(1, 400)),
        "cut": cut,
        "cut at a line": cut_at_line,
        "garbled": garbled,
    }


if __name__ == "__main__":
    text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    os.write(1, garblings(random.Random())[sys.argv[1]](text).encode("utf-8", "surrogateescape"))  # noqa: S311
