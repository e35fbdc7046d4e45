"""Reads the scripts of a batch system: finds the directives and converts their options to a spec.

A `ScriptReader` splits each directive into words, the words into options, and has a reader for each option.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from jpsi.contract import CustomOptions, Draft, ForeignScript, Reader, Spelled
from jpsi.plugin.kit.script_form import unchanged

#: The name of an option, without dashes, and its value; None if it has none.
ParsedOption = tuple[str, str | None]

_COMMAND = re.compile(r"[ \t]*[^#\s]")
# Quoted parts and plain letters of one word.
_WORD = re.compile(r"""\s*((?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+)""")
_COUNT = re.compile(r"[1-9][0-9]{0,14}")
_AMOUNT = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))? ?([A-Za-z]*)")


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)


@attrs.frozen(slots=True, kw_only=True)
class ScriptReader:
    """A reader of one batch system's scripts: for the hook `read_script`."""

    #: The beginning of a directive, at the beginning of its line.
    mark: re.Pattern[str] = attrs.field(converter=_compiled)
    #: True if directives after the first command count too.
    is_read_whole: bool
    #: Yields the options in the words of a directive; ValueError for a word that is no option.
    options: Callable[[Sequence[str]], Iterator[ParsedOption]]
    #: The prefix of an option's name in messages.
    dashes: str = "--"
    #: The options that users may set past jpsi; kept if there is no reader, or it refuses the value.
    custom: CustomOptions
    #: Returns name and value of an option as scripts spell them, for messages.
    spelled: Spelled = unchanged
    #: For options whose values add up, the separator between them.
    joints: Mapping[str, str] = attrs.field(factory=dict)
    #: The reader of each option. They are called in this order, so that one may rely on those before it.
    readers: Mapping[str, Reader]

    def read(self, text: str) -> ForeignScript:
        """Return the job that a script asks for."""
        directives = list(self._directives(text))
        options: dict[str, str | None] = {}
        unread = []
        for directive in directives:
            try:
                # options before the mistake are kept
                for name, value in self.options(directive_words(directive)):
                    before = options.pop(name, None)
                    adds_up = before is not None and value is not None and name in self.joints
                    options[name] = f"{before}{self.joints[name]}{value}" if adds_up else value
            except ValueError as e:
                unread.append(f"the directive {directive!r} is not read to its end: {e}")
        draft = Draft(
            options=options, dashes=self.dashes, custom=self.custom, spelled=self.spelled, lost=unread
        )
        for name in filter(options.__contains__, self.readers):
            try:
                self.readers[name](draft, options[name] or "")
            except ValueError as e:
                draft.keep(name, options[name], str(e))
        for name, option in options.items():
            if name not in self.readers:
                draft.keep(name, option)
        return ForeignScript(spec=draft.spec, directives=len(directives), lost=tuple(draft.lost))

    def _directives(self, text: str) -> Iterator[str]:
        for line in text.splitlines():
            found = self.mark.match(line)
            if found is not None:
                yield line[found.end() :].strip()
            elif not self.is_read_whole and _COMMAND.match(line):
                return


def directive_words(text: str) -> list[str]:
    """Return the words of a directive without its mark, up to a comment.

    >>> directive_words("--job-name='my job' -n 4  # all of them")
    ['--job-name=my job', '-n', '4']

    Raises:
        ValueError: a quote is not closed.
    """
    words: list[str] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        word = _WORD.match(text, place)
        if word is None:
            msg = "a quote has no partner"
            raise ValueError(msg)
        if word[1].startswith("#"):
            break
        words.extend(shlex.split(word[1]))
        place = word.end()
    return words


def gnu_options(
    words: Sequence[str], letters: Mapping[str, str], plain: Collection[str], names: Collection[str] = ()
) -> Iterator[ParsedOption]:
    """Yield the options of a command that reads them as getopt_long does.

    >>> list(gnu_options(["-n4", "--part", "a", "-x"], {"n": "ntasks", "x": "exclusive"}, {"exclusive"},
    ...                  {"partition"}))
    [('ntasks', '4'), ('partition', 'a'), ('exclusive', None)]

    Args:
        words: the command's arguments.
        letters: the option names of single letters; a letter that is not in it is its own name.
        plain: the names of options that have no value unless it is joined to them by `=`.
        names: the names of further options; like all names, they may be abbreviated to their beginning.

    Raises:
        ValueError: a word is no option, or lacks its value.
    """
    known = {*letters.values(), *plain, *names}
    rest = iter(words)
    for word in rest:
        if word.startswith("--") and word != "--":
            name, joint, value = word[2:].partition("=")
            found = [it for it in known if it.startswith(name)]
            whole = found[0] if name not in known and len(found) == 1 else name
            if joint or whole in plain:
                yield whole, value if joint else None
            else:
                yield whole, _next(rest, word)
        elif word.startswith("-") and len(word) > 1:
            for end, letter in enumerate(word[1:], 2):
                name = letters.get(letter, letter)
                if name not in plain:
                    yield name, word[end:] or _next(rest, word)
                    break
                yield name, None
        else:
            msg = f"{word!r} is no option"
            raise ValueError(msg)


def dash_options(words: Sequence[str], counts: Mapping[str, int]) -> Iterator[ParsedOption]:
    """Yield the options of a command whose names have one dash, whatever their length.

    >>> list(dash_options(["-pe", "mpi", "8", "-cwd", "-n4"], {"pe": 2, "cwd": 0, "n": 1}))
    [('pe', 'mpi 8'), ('cwd', None), ('n', '4')]

    Args:
        words: the command's arguments.
        counts: the number of words that follow each option; several words become one value.

    Raises:
        ValueError: a word is no option, or lacks its value.
    """
    rest = iter(words)
    for word in rest:
        name, value = _split(word, counts)
        if value is not None:
            yield name, value
        elif counts[name]:
            yield name, " ".join(_next(rest, word) for _ in range(counts[name]))
        else:
            yield name, None


def _split(word: str, counts: Mapping[str, int]) -> tuple[str, str | None]:
    """Return the option that a word names, and the value that is joined to it, if any."""
    if word.startswith("-") and word[1:] in counts:
        return word[1:], None
    joined = [it for it, count in counts.items() if count == 1 and word.startswith(f"-{it}")]
    if not joined:
        msg = f"{word!r} is no option"
        raise ValueError(msg)
    name = max(joined, key=len)
    return name, word[1 + len(name) :]


def _next(rest: Iterator[str], word: str) -> str:
    value = next(rest, None)
    if value is None:
        msg = f"{word} lacks its value"
        raise ValueError(msg)
    return value


def ignore_option(_draft: Draft, _value: str) -> None:
    """Ignore an option that changes nothing for jpsi."""


def read_name(draft: Draft, value: str) -> None:
    """Read the name of a job."""
    draft.spec.name = value


def attribute_reader(field: str) -> Reader:
    """Return a reader for an option that sets the attribute of this name."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.attributes, field, value or None)

    return read


def count_reader(field: str) -> Reader:
    """Return a reader for an option that sets the field of this name in the resources."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.resources, field, read_count(value))

    return read


def path_reader(field: str, patterns: re.Pattern[str]) -> Reader:
    """Return a reader for an option that sets the path of this name; `patterns` as for `read_path`."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.spec, field, read_path(value, patterns))

    return read


def output_reader(patterns: re.Pattern[str], others: Iterable[str]) -> Reader:
    """Return a reader for the file of the output, and of the errors if no option in `others` is given."""

    def read(draft: Draft, value: str) -> None:
        draft.spec.stdout_path = read_path(value, patterns)
        if not draft.options.keys() & set(others):
            draft.spec.stderr_path = draft.spec.stdout_path

    return read


def read_exclusive(draft: Draft, value: str) -> None:
    """Read the option that gives a job its nodes alone."""
    if value:
        msg = "jpsi has nodes shared with no other job, or with any"
        raise ValueError(msg)
    draft.resources.exclusive_node_use = True


def read_count(value: str) -> int:
    """Return a number of at least 1.

    Raises:
        ValueError: the text is no such number.
    """
    if _COUNT.fullmatch(value) is None:
        msg = f"{value!r} is not one number"
        raise ValueError(msg)
    return int(value)


def read_amount(value: str, units: Mapping[str, int]) -> int:
    """Return an amount as a whole number of ones, rounded up; the unit follows the number.

    >>> read_amount("1.5k", {"k": 1000})
    1500

    Raises:
        ValueError: the text is no amount, or the amount is zero.
    """
    amount = _AMOUNT.fullmatch(value)
    if amount is None or amount[3] not in units:
        msg = f"{value!r} is not an amount that jpsi understands"
        raise ValueError(msg)
    whole, fraction, unit = amount[1], amount[2] or "", amount[3]
    ones: int = -(-int(whole + fraction) * units[unit] // 10 ** len(fraction))
    if ones == 0:
        msg = f"{value!r} is a word of its own here, and no amount"
        raise ValueError(msg)
    return ones


def read_path(value: str, patterns: re.Pattern[str]) -> Path:
    """Return a path, if it is the same for every job.

    Raises:
        ValueError: it contains a placeholder that matches `patterns`.
    """
    if not value or patterns.search(value):
        msg = "a path of jpsi has no patterns; without it the output is kept in the job's own folder"
        raise ValueError(msg)
    return Path(value)
