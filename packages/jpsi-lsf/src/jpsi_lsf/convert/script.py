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

from ..bsub_options import ATTRIBUTE_OPTIONS, CUSTOM
from ..config import LsfConfig
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
_FLAGS = (
    *("B", "H", "I", "IS", "ISp", "ISs", "IX", "Ip", "Is", "K", "N", "Ne", "V", "XF", "Zs", "ar", "cn_mem"),
    *("h", "hl", "nodata", "r", "rn", "rnc", "ti", "tty", "ul", "x"),
)
_VALUE_COUNTS = {**dict.fromkeys(_VALUED, 1), **dict.fromkeys(_FLAGS, 0)}
_ARRAY = re.compile(r"(?P<name>[^\[]*)\[.*\](?:%[0-9]+)?")
# bsub of LSF 10.1, -W: minutes, or hours and minutes; other forms refer to a certain host
_LIMIT = re.compile(r"(?:(?P<hours>[0-9]+):)?(?P<minutes>[0-9]+)")
_PATTERN = re.compile(r"%|/\Z")
_CONDITION = re.compile(r"(?P<word>\w+)\((?P<id>[0-9]+)\)")
_DEPENDENCY_KINDS = {word: kind for kind, word in DEPENDENCIES.items()}
_NOT_EXPRESSIBLE = "jpsi cannot express it"


def _read_name(draft: Draft, value: str) -> None:
    array = _ARRAY.fullmatch(value)
    if array is not None:
        draft.lose("J", value, "an array is several jobs; use submit_many")
    draft.spec.name = (value if array is None else array["name"]) or None


def _read_limit(draft: Draft, value: str) -> None:
    match = _LIMIT.fullmatch(value)
    if match is None:
        raise ValueError(_NOT_EXPRESSIBLE)
    draft.attributes.duration = timedelta(hours=int(match["hours"] or 0), minutes=int(match["minutes"]))


def _read_environment(draft: Draft, value: str) -> None:
    words = [word.strip() for word in value.split(",")]
    for word in words:
        name, separator, text = word.partition("=")
        if separator:
            draft.set_variable(name, text)
    if "all" not in words:
        draft.lose("env", value, "the job has the whole environment")


def _read_conditions(draft: Draft, value: str) -> None:
    draft.attributes.after = [*_parse_dependencies(value)]


def _parse_dependencies(value: str) -> Iterator[Dependency]:
    for condition in value.split("&&"):
        match = _CONDITION.fullmatch(condition.strip())
        if match is None or match["word"] not in _DEPENDENCY_KINDS:
            msg = f"jpsi cannot express the condition {condition.strip()!r}"
            raise ValueError(msg)
        yield Dependency(match["id"], _DEPENDENCY_KINDS[match["word"]])


def _option_readers(config: LsfConfig) -> Mapping[str, Reader]:
    return {
        "J": _read_name,
        **{option: attribute_reader(field) for option, field in ATTRIBUTE_OPTIONS.items()},
        "W": _read_limit,
        "cwd": path_reader("directory", _PATTERN),
        **dict.fromkeys(("i", "is"), path_reader("stdin_path", _PATTERN)),
        **dict.fromkeys(("o", "oo"), output_reader(_PATTERN, ["e", "eo"])),
        **dict.fromkeys(("e", "eo"), path_reader("stderr_path", _PATTERN)),
        "env": _read_environment,
        "w": _read_conditions,
        **resource_readers(config),
        # jpsi sets it itself for jobs with dependencies
        "ti": ignore_option,
    }


def _parse_options(words: Sequence[str]) -> Iterator[ParsedOption]:
    return dash_options(words, _VALUE_COUNTS)


@hookimpl
def read_script(text: str, site: Site) -> ForeignScript:
    """Return the job that the `#BSUB` lines describe, anywhere in the script."""
    reader = ScriptReader(
        mark=r"#BSUB(?=\s|\Z)",
        is_read_whole=True,
        options=_parse_options,
        dashes="-",
        custom=CUSTOM,
        joints={"R": " "},
        readers=_option_readers(site.config),
    )
    return reader.read(text)
