"""Parses the arguments of qsub, from its command line or from directives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# sge_submit(1) of 8.1.9, OPTIONS: those without a value; below, those with one
_PLAIN = "clear cwd h hard notify soft terse V verify"
_VALUED = (
    "a ac ar A b binding c ckpt C dc display dl e hold_jid hold_jid_ad i j jc js jsv l m masterq M now N o P "
    "p pe q R r sc shell S sync t tc v w wd"
)
_ARITY = {**dict.fromkeys(_PLAIN.split(), 0), **dict.fromkeys(_VALUED.split(), 1), "pe": 2}
# Options whose values accumulate
_COLLECTED = frozenset({"ac", "l"})


class UnknownOptionError(ValueError):
    """An option that qsub does not have."""


def parse(words: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Parse words into options without their dashes, with "" for those without a value, and other words.

    Raises:
        UnknownOptionError: an option is unknown, or its value is missing.
    """
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name = word.removeprefix("-")
        arity = _ARITY.get(name, 0)
        if name not in _ARITY or len(rest) < arity:
            raise UnknownOptionError(word)
        value = " ".join(rest[:arity])
        del rest[:arity]
        options[name] = f"{options[name]},{value}" if name in _COLLECTED and name in options else value
    return options, rest


def pairs(text: str) -> Mapping[str, str]:
    """Return the names and values of a list such as `h_rt=60,mem_free=1G`."""
    return dict(part.partition("=")[::2] for part in text.split(",") if part)
