"""Reads the `#BSUB` lines of a script that was written for bsub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from jpsi.plugin import Dependency, Draft, ForeignScript, Reader, Site, hookimpl
from jpsi.plugin.kit import (
    ParsedOption,
    ScriptReader,
    attribute_reader,
    dash_options,
    ignore_option,
    output_reader,
    path_reader,
)

from ..config import LsfConfig
from ..options import CUSTOM, NAMES
from ..submission import DEPENDENCIES
from .resources import resource_readers

#: bsub of LSF 10.1: the options with a value; below, those without.
_VALUED = (
    *("C", "D", "E", "Ep", "F", "G", "J", "Jd", "L", "Lp", "M", "P", "Q", "R", "S", "T", "U", "W", "We"),
    *("a", "alloc_flags", "app", "b", "c", "clusters", "cn_cu", "cwd", "data", "datagrp", "e", "env", "eo"),
    *("f", "freq", "g", "gpu", "hostfile", "i", "is", "json", "jsdl", "jsdl_strict", "jsm", "k", "m", "mig"),
    *("n", "network", "nnodes", "notify", "o", "oo", "outdir", "p", "pack", "ptl", "q", "rcacct", "s", "sla"),
    *("smt", "sp", "stage", "step_cgroup", "t", "u", "v", "w", "wa", "wt", "yaml"),
)
_PLAIN = (
    *("B", "H", "I", "IS", "ISp", "ISs", "IX", "Ip", "Is", "K", "N", "Ne", "V", "XF", "Zs", "ar", "cn_mem"),
    *("h", "hl", "nodata", "r", "rn", "rnc", "ti", "tty", "ul", "x"),
)
_COUNTS = {**dict.fromkeys(_VALUED, 1), **dict.fromkeys(_PLAIN, 0)}
_ARRAY = re.compile(r"(?P<name>[^\[]*)\[.*\](?:%[0-9]+)?")
# bsub of LSF 10.1, -W: minutes, or hours and minutes; other forms refer to a certain host
_LIMIT = re.compile(r"(?:(?P<hours>[0-9]+):)?(?P<minutes>[0-9]+)")
_PATTERN = re.compile(r"%|/\Z")
_CONDITION = re.compile(r"(?P<word>\w+)\((?P<id>[0-9]+)\)")
_KINDS = {word: kind for kind, word in DEPENDENCIES.items()}
_NO_WORD = "jpsi has no word for it"


def _name(draft: Draft, value: str) -> None:
    array = _ARRAY.fullmatch(value)
    if array is not None:
        draft.lose("J", value, "an array is several jobs; use submit_many")
    draft.spec.name = (value if array is None else array["name"]) or None


def _limit(draft: Draft, value: str) -> None:
    found = _LIMIT.fullmatch(value)
    if found is None:
        raise ValueError(_NO_WORD)
    draft.attributes.duration = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"]))


def _environment(draft: Draft, value: str) -> None:
    words = [word.strip() for word in value.split(",")]
    for word in words:
        name, equals, text = word.partition("=")
        if equals:
            draft.set_variable(name, text)
    if "all" not in words:
        draft.lose("env", value, "the job has the whole environment")


def _conditions(draft: Draft, value: str) -> None:
    draft.attributes.after = [*_dependencies(value)]


def _dependencies(value: str) -> Iterator[Dependency]:
    for part in value.split("&&"):
        found = _CONDITION.fullmatch(part.strip())
        if found is None or found["word"] not in _KINDS:
            msg = f"{part.strip()!r} is no condition that jpsi has a word for"
            raise ValueError(msg)
        yield Dependency(found["id"], _KINDS[found["word"]])


def _readers(config: LsfConfig) -> Mapping[str, Reader]:
    return {
        "J": _name,
        **{option: attribute_reader(field) for option, field in NAMES.items()},
        "W": _limit,
        "cwd": path_reader("directory", _PATTERN),
        **dict.fromkeys(("i", "is"), path_reader("stdin_path", _PATTERN)),
        **dict.fromkeys(("o", "oo"), output_reader(_PATTERN, ["e", "eo"])),
        **dict.fromkeys(("e", "eo"), path_reader("stderr_path", _PATTERN)),
        "env": _environment,
        "w": _conditions,
        **resource_readers(config),
        # jpsi sets it itself for jobs with dependencies
        "ti": ignore_option,
    }


def _options(words: Sequence[str]) -> Iterator[ParsedOption]:
    return dash_options(words, _COUNTS)


@hookimpl
def read_script(text: str, site: Site) -> ForeignScript:
    """Return the job that the `#BSUB` lines describe, anywhere in the script."""
    reader = ScriptReader(
        mark=r"#BSUB(?=\s|\Z)",
        is_read_whole=True,
        options=_options,
        dashes="-",
        custom=CUSTOM,
        joints={"R": " "},
        readers=_readers(site.config),
    )
    return reader.read(text)
