"""Matchers, which compare a value with the one that a requirement wants: built-in and installed ones.

`planning.requirements` compares requirements with a site's subsystems by them.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

#: Returns True if the value, its first argument, matches the wanted one.
Matcher = Callable[[str, str], bool]
#: The entry point group of installed matchers, each a function of the value and the wanted one.
GROUP = "jpsi_jobspec.matchers"


def matcher_names() -> list[str]:
    """Return the matchers that a requirement may name."""
    return sorted({*_BUILT_IN, *(it.name for it in entry_points(group=GROUP))})


@functools.cache
def get_matcher(name: str | None) -> Matcher:
    """Return the matcher of a name; without a name, the one that goes by the form of the wanted value."""
    if name is None:
        return is_match
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    (found, *_) = entry_points(group=GROUP, name=name)
    loaded: Matcher = found.load()
    return loaded


def is_match(value: str, wanted: str) -> bool:
    """Return True if a value is the wanted one, matches it as a pattern with `*` and `?`, or is in its range.

    >>> is_match("2.1", ">=2,<3"), is_match("nvidia", "nv*"), is_match("a", "b")
    (True, True, False)
    """
    if value == wanted:
        return True
    if _RANGE.fullmatch(wanted.replace(" ", "")):
        return is_in_range(value, wanted)
    return any(it in wanted for it in "*?[") and fnmatch.fnmatchcase(value, wanted)


def is_in_range(value: str, wanted: str) -> bool:
    """Return True if a version is in a range such as `>=2,<3`; False if the text is no range."""
    bounds = wanted.replace(" ", "")
    return bool(_RANGE.fullmatch(bounds)) and all(_is_within(value, it) for it in bounds.split(","))


_BOUND = r"(?:>=|<=|==|!=|>|<)[0-9][A-Za-z0-9.+_-]*"
_RANGE = re.compile(rf"{_BOUND}(?:,{_BOUND})*")
_COMPARE = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}
_BUILT_IN: Mapping[str, Matcher] = {
    "exact": lambda value, wanted: value == wanted,
    "glob": fnmatch.fnmatchcase,
    "version": is_in_range,
}


def _is_within(value: str, bound: str) -> bool:
    sign = bound[:2] if bound[:2] in _COMPARE else bound[:1]
    version, limit = _version(value), _version(bound.removeprefix(sign))
    length = max(len(version), len(limit))
    padded = [it + ((0, ""),) * (length - len(it)) for it in (version, limit)]
    return bool(version) and _COMPARE[sign](padded[0], padded[1])


def _version(text: str) -> tuple[tuple[int, str], ...]:
    parts = re.findall(r"([0-9]+)|([A-Za-z]+)", text) if text[:1].isdigit() else []
    return tuple((int(number), "") if number else (-1, word) for number, word in parts)
