"""Parses the arguments of Slurm's commands as getopt_long does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class UnknownOptionError(ValueError):
    """An option that the command does not have."""


class Arguments(NamedTuple):
    """The parsed arguments of a command."""

    #: Long options without their dashes; the value is "" for options without one.
    options: Mapping[str, str]
    words: tuple[str, ...]


def parse(
    words: Iterable[str], known: Mapping[str, bool], short: Mapping[str, str], *, is_script: bool = False
) -> Arguments:
    """Parse a command's arguments into options and other words.

    Args:
        words: the arguments.
        known: the long options; True for those that take a value.
        short: the short options, with their long names.
        is_script: True if the first word is a script, and all words after it are its arguments.

    Raises:
        UnknownOptionError: the command does not have an option.
    """
    options: dict[str, str] = {}
    others: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if word.startswith("--") and word != "--":
            name, separator, value = word[2:].partition("=")
            name = _complete_name(name, known, word)
            if known[name] and not separator:
                value = remaining.pop(0) if remaining else ""
            options[name] = value
        elif word.startswith("-") and word != "-":
            if word[1] not in short:
                msg = f"-{word[1]}"
                raise UnknownOptionError(msg)
            name, value = short[word[1]], word[2:]
            if known[name] and not value:
                value = remaining.pop(0) if remaining else ""
            options[name] = value
        else:
            others.append(word)
            if is_script:
                return Arguments(options, (*others, *remaining))
    return Arguments(options, tuple(others))


def _complete_name(name: str, known: Mapping[str, bool], word: str) -> str:
    """Return the option that a name stands for, which may be an abbreviation."""
    candidates = [name] if name in known else [option for option in known if option.startswith(name)]
    if len(candidates) != 1:
        raise UnknownOptionError(word)
    return candidates[0]
