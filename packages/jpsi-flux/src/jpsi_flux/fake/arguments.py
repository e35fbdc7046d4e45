"""Parses the arguments of Flux's commands as Python's argparse does, without abbreviations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jpsi.plugin import CommandResult


class UnknownOptionError(ValueError):
    """An option that the command does not have."""


class Arguments(NamedTuple):
    """The parsed arguments of a command."""

    #: Long options without their dashes, each with its values, which are "" for options without one.
    options: Mapping[str, list[str]]
    words: tuple[str, ...]

    def last(self, name: str, default: str) -> str:
        """Return the last value of an option."""
        return self.options.get(name, [default])[-1]


def parse(words: Iterable[str], known: Mapping[str, bool], short: Mapping[str, str]) -> Arguments:
    """Parse a command's arguments: options, and other words from the first that is no option.

    Args:
        words: the arguments.
        known: the long options; True for those that take a value.
        short: the short options, with their long names.

    Raises:
        UnknownOptionError: the command does not have an option.
    """
    options: dict[str, list[str]] = {}
    remaining = list(words)
    while remaining and remaining[0].startswith("-") and remaining[0] != "-":
        word = remaining.pop(0)
        name, separator, value = word[2:].partition("=")
        if not word.startswith("--"):
            name, value = short.get(word[1], ""), word[2:]
            separator = value
        if name not in known:
            raise UnknownOptionError(word)
        if known[name] and not separator:
            value = remaining.pop(0) if remaining else ""
        options.setdefault(name, []).append(value)
    return Arguments(options, tuple(remaining))


def unrecognized(command: str, error: UnknownOptionError) -> CommandResult:
    """Return a command's error about an unknown option."""
    usage = f"usage: flux {command} [OPTIONS...]\nflux {command}: error: unrecognized arguments: {error}\n"
    return CommandResult(returncode=2, stderr=usage)
