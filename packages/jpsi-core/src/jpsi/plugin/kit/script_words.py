"""Splits directives into words and the words into options, as shells and submit commands do.

Only `ScriptForm.read` uses it, for foreign scripts; nothing is written here.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

#: The name of an option, without dashes, and its value; None if it has none.
ParsedOption = tuple[str, str | None]

# Quoted parts and plain letters of one word.
_WORD = re.compile(r"""\s*((?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+)""")
# Of a misspelt name: the least similarity, as of difflib, and the fewest letters; shorter ones resemble many.
_SIMILARITY = 0.75
_MIN_LETTERS = 4


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
            raise ValueError("a quote is not closed")
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

    `letters` has the option names of single letters; any other letter is its own name. `plain` has the names
    of options that have no value unless it is joined to them by `=`, `names` those of further options; all
    names may be abbreviated to their beginning.

    Raises:
        ValueError: a word is no option, or needs a value.
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
            raise ValueError(f"{word!r} is no option")


def dash_options(
    words: Sequence[str], counts: Mapping[str, int], *, joins_values: bool = True
) -> Iterator[ParsedOption]:
    """Yield the options of a command whose names have one dash, whatever their length.

    The words that follow an option, as many as `counts` says, become one value. If `joins_values`, a value
    may also follow its option in the same word.

    >>> list(dash_options(["-pe", "mpi", "8", "-cwd", "-n4"], {"pe": 2, "cwd": 0, "n": 1}))
    [('pe', 'mpi 8'), ('cwd', None), ('n', '4')]

    Raises:
        ValueError: a word is no option, or needs a value.
    """
    rest = iter(words)
    for word in rest:
        name, value = _split(word, counts, joins_values=joins_values)
        if value is not None:
            yield name, value
        elif counts[name]:
            yield name, " ".join(_next(rest, word) for _ in range(counts[name]))
        else:
            yield name, None


def _split(word: str, counts: Mapping[str, int], *, joins_values: bool) -> tuple[str, str | None]:
    """Return the option that a word names, and the value that is joined to it, if any."""
    if word.startswith("-") and word[1:] in counts:
        return word[1:], None
    valued = [it for it, count in counts.items() if joins_values and count == 1]
    joined = [it for it in valued if word.startswith(f"-{it}")]
    if not joined:
        raise ValueError(f"{word!r} is no option{suggest_option(word[1:], counts, '-')}")
    name = max(joined, key=len)
    return name, word[1 + len(name) :]


def suggest_option(name: str, known: Iterable[str], dashes: str) -> str:
    """Return the end of a sentence that suggests a known option; empty if none is close.

    Only an option with the same first letter is close: `--cpu-bind` and `--gpu-bind` are two options.

    >>> suggest_option("ntaks", ["nodes", "ntasks"], "--")
    '; did you mean --ntasks?'
    """
    if len(name) < _MIN_LETTERS:
        return ""
    names = sorted(it for it in known if it.startswith(name[0]))
    closest = difflib.get_close_matches(name, names, n=1, cutoff=_SIMILARITY)
    return f"; did you mean {dashes}{closest[0]}?" if closest else ""


def _next(rest: Iterator[str], word: str) -> str:
    value = next(rest, None)
    if value is None:
        raise ValueError(f"{word} needs a value")
    return value
