"""The arguments of Flux's commands, as Python's argparse takes them apart; none may be abbreviated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jpsi.plugin import CommandResult


class UnknownOptionError(ValueError):
    """An option that the command does not have."""


class Arguments(NamedTuple):
    """What a command was called with."""

    #: Long options without their dashes, each with its values; those of one that takes none are empty.
    options: Mapping[str, list[str]]
    words: tuple[str, ...]

    def last(self, name: str, default: str) -> str:
        """The value of an option that was given last."""
        return self.options.get(name, [default])[-1]


def parse(words: Iterable[str], known: Mapping[str, bool], short: Mapping[str, str]) -> Arguments:
    """Options and, from the first word that is none, other words.

    Args:
        words: the arguments.
        known: the long options, and whether each takes a value.
        short: the letters of those that have one.

    Raises:
        UnknownOptionError: there is none of this name.
    """
    options: dict[str, list[str]] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        name, joint, value = word[2:].partition("=")
        if not word.startswith("--"):
            name, value = short.get(word[1], ""), word[2:]
            joint = value
        if name not in known:
            raise UnknownOptionError(word)
        if known[name] and not joint:
            value = rest.pop(0) if rest else ""
        options.setdefault(name, []).append(value)
    return Arguments(options, tuple(rest))


def unrecognized(command: str, error: UnknownOptionError) -> CommandResult:
    """What a command says of an option that it does not know."""
    usage = f"usage: flux {command} [OPTIONS...]\nflux {command}: error: unrecognized arguments: {error}\n"
    return CommandResult(returncode=2, stderr=usage)
