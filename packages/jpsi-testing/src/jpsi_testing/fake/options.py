"""Parses the arguments of fake commands, by a table of the command's options.

The fakes of backends use it. They refuse unknown options, as the real commands do.
"""

from __future__ import annotations

import getopt
from collections.abc import Iterable, Mapping, Sequence

import attrs

from jpsi_testing.fake.invocation import CommandError


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


@attrs.frozen(slots=True, kw_only=True)
class OptionTable:
    """The options of a command whose long ones have two dashes.

    >>> table = OptionTable(flags="hold|H quiet", valued="job-name|J", unknown=(1, "no option {}"))
    >>> table.parse(["-J", "a", "--quiet", "job.sh", "-H"])
    Arguments(values={'job-name': ['a'], 'quiet': ['']}, words=('job.sh', '-H'))
    """

    #: The long options without a value; a letter after `|` is the short form.
    flags: str = ""
    #: The long options with a value, in the same form.
    valued: str = ""
    #: The exit code for an unknown option, and the message; `{}` stands for the option.
    unknown: tuple[int, str]
    #: True if long options may be abbreviated, as in getopt_long(3).
    abbreviates: bool = False

    @property
    def known(self) -> dict[str, bool]:
        """The long options by name; True for those with a value."""
        valued = {option.partition("|")[0]: True for option in self.valued.split()}
        return {option.partition("|")[0]: False for option in self.flags.split()} | valued

    def parse(self, words: Iterable[str], *, permutes: bool = False) -> Arguments:
        """Parse a command's arguments into options and other words.

        Args:
            words: the arguments.
            permutes: whether options may follow other words; otherwise all is a word from the first one on.

        Raises:
            CommandError: the command does not have an option.
        """
        values: dict[str, list[str]] = {}
        others: list[str] = []
        remaining, known = list(words), self.known
        while remaining:
            word = remaining.pop(0)
            if not word.startswith("-") or word == "-":
                others.append(word)
                if not permutes:
                    return Arguments(values, (*others, *remaining))
                continue
            name, value = self._split(word, known)
            if value is None:
                value = remaining.pop(0) if known[name] and remaining else ""
            values.setdefault(name, []).append(value)
        return Arguments(values, tuple(others))

    def _split(self, word: str, known: Mapping[str, bool]) -> tuple[str, str | None]:
        """Return the option that a word names, and the value in the same word, if there is one."""
        if word.startswith("--"):
            name, has_value, value = word[2:].partition("=")
            found = [it for it in known if it == name]
            found = found or [it for it in known if self.abbreviates and it.startswith(name)]
        else:
            has_value = value = word[2:]
            options = (option.partition("|") for option in f"{self.flags} {self.valued}".split())
            found = [name for name, _, letter in options if letter == word[1]]
            word = word[:2] if self.abbreviates else word
        if len(found) != 1:
            raise _unknown_option(self.unknown, word)
        return found[0], value if has_value else None


def parse_dashed(
    words: Iterable[str],
    arity: Mapping[str, int],
    unknown: tuple[int, str],
    *,
    joined: bool = False,
    needs_values: bool = True,
) -> Arguments:
    """Parse arguments whose options have one dash, up to the first other word.

    >>> parse_dashed(["-pe", "smp", "2", "-terse", "job.sh"], {"pe": 2, "terse": 0}, (1, "no option {}"))
    Arguments(values={'pe': ['smp 2'], 'terse': ['']}, words=('job.sh',))

    Args:
        words: the arguments.
        arity: the number of values of each option.
        unknown: the exit code for an unknown option, and the message; `{}` stands for the option.
        joined: whether the value of an option of one letter may be in the same word, as in getopt(3).
        needs_values: whether an option is unknown if its value is missing.

    Raises:
        CommandError: the command does not have an option.
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
            raise _unknown_option(unknown, name)
        del remaining[:count]
        values.setdefault(name, []).append(value)
    return Arguments(values, tuple(remaining))


def parse_letters(argv: Sequence[str], letters: str, unknown: tuple[int, str] | None = None) -> Arguments:
    """Parse arguments whose options are letters, as getopt(3) does.

    >>> parse_letters(["qsub", "-hN", "a", "job.sh"], "hN:")
    Arguments(values={'h': [''], 'N': ['a']}, words=('job.sh',))

    Args:
        argv: the name of the command, and its arguments.
        letters: the options, as for getopt(3).
        unknown: the exit code for an unknown option, and the message; `{}` stands for the option. None means
            those of getopt.

    Raises:
        CommandError: the command does not have an option, or its value is missing.
    """
    try:
        found, rest = getopt.getopt(argv[1:], letters)
    except getopt.GetoptError as e:
        raise _unknown_option(unknown or (2, f"{argv[0]}: invalid option -- '{{}}'\n"), e.opt) from e
    values: dict[str, list[str]] = {}
    for option, value in found:
        values.setdefault(option[1:], []).append(value)
    return Arguments(values, tuple(rest))


def _unknown_option(unknown: tuple[int, str], option: str) -> CommandError:
    code, message = unknown
    return CommandError(code, message.replace("{}", option))
