"""Reads the arguments of fake commands, by the table of a command's options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs


class UnknownOptionError(ValueError):
    """An option that the command does not have; its text is the option."""


@attrs.frozen(slots=True)
class Arguments:
    """The parsed arguments of a command."""

    #: The values of each option, by its name without dashes; "" for an option without a value.
    values: Mapping[str, list[str]]
    words: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, str]:
        """The last value of each option, which mostly is the one that counts."""
        return {name: values[-1] for name, values in self.values.items()}

    def last(self, name: str, default: str = "") -> str:
        """Return the last value of an option."""
        return self.values.get(name, [default])[-1]


class OptionTable:
    """The options of a command whose long ones have two dashes.

    >>> table = OptionTable("hold|H quiet", "job-name|J")
    >>> table.parse(["-J", "a", "--quiet", "job.sh", "-H"])
    Arguments(values={'job-name': ['a'], 'quiet': ['']}, words=('job.sh', '-H'))

    Args:
        flags: the long options without a value; a letter after `|` is the short form.
        valued: the long options with a value.
        abbreviates: whether long options may be abbreviated, as in getopt_long(3).
    """

    def __init__(self, flags: str, valued: str = "", *, abbreviates: bool = False) -> None:
        #: The long options; True for those with a value.
        self.known: dict[str, bool] = {}
        self._letters: dict[str, str] = {}
        self._abbreviates = abbreviates
        for names, takes_value in ((flags, False), (valued, True)):
            for name, _, letter in (it.partition("|") for it in names.split()):
                self.known[name] = takes_value
                self._letters.update({letter: name} if letter else {})

    def parse(self, words: Iterable[str], *, permutes: bool = False) -> Arguments:
        """Parse a command's arguments into options and other words.

        Args:
            words: the arguments.
            permutes: whether options may follow other words; otherwise all is a word from the first one on.

        Raises:
            UnknownOptionError: the command does not have an option.
        """
        values: dict[str, list[str]] = {}
        others: list[str] = []
        remaining = list(words)
        while remaining:
            word = remaining.pop(0)
            if not word.startswith("-") or word == "-":
                others.append(word)
                if not permutes:
                    return Arguments(values, (*others, *remaining))
                continue
            name, value = self._split(word)
            if value is None:
                value = remaining.pop(0) if self.known[name] and remaining else ""
            values.setdefault(name, []).append(value)
        return Arguments(values, tuple(others))

    def _split(self, word: str) -> tuple[str, str | None]:
        """Return the option that a word names, and the value in the same word, if there is one."""
        if not word.startswith("--"):
            if word[1] not in self._letters:
                raise UnknownOptionError(word[:2] if self._abbreviates else word)
            return self._letters[word[1]], word[2:] or None
        name, has_value, value = word[2:].partition("=")
        found = [it for it in self.known if self._abbreviates and it.startswith(name)]
        if name not in self.known and len(found) != 1:
            raise UnknownOptionError(word)
        return name if name in self.known else found[0], value if has_value else None


def parse_dashed(
    words: Iterable[str], arity: Mapping[str, int], *, joined: bool = False, needs_values: bool = False
) -> Arguments:
    """Parse arguments whose options have one dash, up to the first other word.

    >>> parse_dashed(["-pe", "smp", "2", "-terse", "job.sh"], {"pe": 2, "terse": 0})
    Arguments(values={'pe': ['smp 2'], 'terse': ['']}, words=('job.sh',))

    Args:
        words: the arguments.
        arity: the number of values of each option.
        joined: whether the value of an option of one letter may be in the same word, as in getopt(3).
        needs_values: whether a missing value makes an option unknown.

    Raises:
        UnknownOptionError: the command does not have an option.
    """
    values: dict[str, list[str]] = {}
    remaining = list(words)
    while remaining and remaining[0].startswith("-"):
        name = remaining.pop(0).removeprefix("-")
        count = arity.get(name, 0)
        value = " ".join(remaining[:count])
        if name not in arity and joined and arity.get(name[:1]):
            name, value = name[0], name[1:]
        elif name not in arity or (needs_values and len(remaining) < count):
            raise UnknownOptionError(name)
        del remaining[:count]
        values.setdefault(name, []).append(value)
    return Arguments(values, tuple(remaining))
