"""The arguments of Slurm's commands, as getopt_long takes them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class UnknownOptionError(ValueError):
    """An option that the command does not have."""


class Arguments(NamedTuple):
    """What a command was called with."""

    #: Long options without their dashes; the value is empty for one that takes none.
    options: Mapping[str, str]
    words: tuple[str, ...]


def parse(
    words: Iterable[str], known: Mapping[str, bool], short: Mapping[str, str], *, is_script: bool = False
) -> Arguments:
    """Options and other words.

    Args:
        words: the arguments.
        known: the long options, and whether each takes a value.
        short: the letters of those that have one.
        is_script: whether the first word is a script, and all behind it are its arguments.

    Raises:
        UnknownOptionError: there is none of this name.
    """
    options: dict[str, str] = {}
    others: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--") and word != "--":
            name, joint, value = word[2:].partition("=")
            name = _full(name, known, word)
            if known[name] and not joint:
                value = rest.pop(0) if rest else ""
            options[name] = value
        elif word.startswith("-") and word != "-":
            if word[1] not in short:
                msg = f"-{word[1]}"
                raise UnknownOptionError(msg)
            name, value = short[word[1]], word[2:]
            if known[name] and not value:
                value = rest.pop(0) if rest else ""
            options[name] = value
        else:
            others.append(word)
            if is_script:
                return Arguments(options, (*others, *rest))
    return Arguments(options, tuple(others))


def _full(name: str, known: Mapping[str, bool], word: str) -> str:
    """The option that a name stands for, which may be only how it begins."""
    candidates = [name] if name in known else [option for option in known if option.startswith(name)]
    if len(candidates) != 1:
        raise UnknownOptionError(word)
    return candidates[0]
