"""Reading a script that was written for bsub: what its `#BSUB` lines ask for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

from jpsi.plugin import (
    Dependency,
    Draft,
    ForeignScript,
    Given,
    Reader,
    ScriptReader,
    Site,
    attribute,
    dash_options,
    hookimpl,
    node_count,
    passed_over,
    read_amount,
    read_count,
    read_path,
)

from .config import UNITS, LsfConfig
from .options import CUSTOM, NAMES
from .script import DEPENDENCIES

#: bsub of LSF 10.1: the options that have a value, and those that have none.
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
# bsub of LSF 10.1, -W: minutes, or hours and minutes; of a certain host otherwise
_LIMIT = re.compile(r"(?:(?P<hours>[0-9]+):)?(?P<minutes>[0-9]+)")
_PATTERN = re.compile(r"%|/\Z")
_SECTION = re.compile(r"\s*(?P<name>[a-z]+)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\s*")
_SPAN = re.compile(r"(?P<word>ptile|hosts)=(?P<count>[0-9]+)")
_CORES = re.compile(r"core\((?P<count>[0-9]+)\)")
_MEMORY = re.compile(r"mem=(?P<amount>[0-9.]+ ?[A-Za-z]*)(?P<method>/host|/task)?")
_GPU = re.compile(r"num=(?P<count>[0-9]+)(?P<method>/task)?")
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


def _directory(draft: Draft, value: str) -> None:
    draft.spec.directory = read_path(value, _PATTERN)


def _input(draft: Draft, value: str) -> None:
    draft.spec.stdin_path = read_path(value, _PATTERN)


def _output(draft: Draft, value: str) -> None:
    path = read_path(value, _PATTERN)
    draft.spec.stdout_path = path
    if not {"e", "eo"} & draft.options.keys():
        # bsub of LSF 10.1, -o: it takes both streams
        draft.spec.stderr_path = path


def _error(draft: Draft, value: str) -> None:
    draft.spec.stderr_path = read_path(value, _PATTERN)


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


def _slots(draft: Draft, value: str) -> None:
    draft.resources.process_count = read_count(value)


def _requirements(config: LsfConfig, draft: Draft, value: str) -> None:
    """What jpsi has words for; the rest stays a requirement, to which jpsi adds its own."""
    sections = list(_SECTION.finditer(value))
    if "".join(it[0] for it in sections) != value:
        raise ValueError(_NO_WORD)
    # how much memory there is in all depends on the nodes
    known: Mapping[str, Callable[[Draft, str], bool]] = {
        "span": _span,
        "affinity": _cores,
        "rusage": partial(_reserved, config),
    }
    in_order = [it for name in known for it in sections if it["name"] == name]
    read = [it for it in in_order if known[it["name"]](draft, it["text"])]
    rest = [it[0].strip() for it in sections if it not in read]
    if rest:
        draft.keep("R", " ".join(rest))


def _span(draft: Draft, text: str) -> bool:
    found = _SPAN.fullmatch(text)
    if found is None or not int(found["count"]):
        return False
    if found["word"] == "ptile":
        draft.resources.processes_per_node = int(found["count"])
    elif found["count"] != "1":
        return False
    else:
        draft.resources.node_count = 1
    return True


def _cores(draft: Draft, text: str) -> bool:
    found = _CORES.fullmatch(text)
    if found is None or not int(found["count"]):
        return False
    draft.resources.cpu_cores_per_process = int(found["count"])
    return True


def _reserved(config: LsfConfig, draft: Draft, text: str) -> bool:
    found, asked = _MEMORY.fullmatch(text), draft.resources
    if found is None:
        return False
    nodes = node_count(asked)
    is_of_task = found["method"] == "/task"
    if nodes is None and asked.computed_process_count > 1 and not is_of_task:
        return False
    try:
        share = read_amount(found["amount"], _units(config))
    except ValueError:
        return False
    asked.memory = share * (asked.computed_process_count if is_of_task else nodes or 1)
    return True


def _units(config: LsfConfig) -> Mapping[str, int]:
    """Units of memory; none is that of the site, which must be configured to be known."""
    spelled = {
        spelling: size
        for unit, size in UNITS.items()
        for spelling in (unit, unit.lower(), unit[0], unit[0].lower())
    }
    return spelled if config.memory_unit is None else {**spelled, "": UNITS[config.memory_unit]}


def _memory_limit(config: LsfConfig, draft: Draft, value: str) -> None:
    if draft.resources.memory is None or read_amount(value, _units(config)) != draft.resources.memory:
        msg = "it may be a limit for a process, for a node, or for the job"
        raise ValueError(msg)


def _gpus(draft: Draft, value: str) -> None:
    found, asked = _GPU.fullmatch(value), draft.resources
    if found is None:
        raise ValueError(_NO_WORD)
    gpus = int(found["count"])
    if found["method"] is None:
        nodes = node_count(asked) or (1 if asked.computed_process_count == 1 else 0)
        gpus, rest = divmod(gpus * nodes, asked.computed_process_count)
        if rest or not gpus:
            msg = "not so many for each process"
            raise ValueError(msg)
    asked.gpu_cores_per_process = gpus


def _exclusive(draft: Draft, _value: str) -> None:
    draft.resources.exclusive_node_use = True


def _readers(config: LsfConfig) -> Mapping[str, Reader]:
    return {
        "J": _name,
        **{option: attribute(field) for option, field in NAMES.items()},
        "W": _limit,
        "cwd": _directory,
        **dict.fromkeys(("i", "is"), _input),
        **dict.fromkeys(("o", "oo"), _output),
        **dict.fromkeys(("e", "eo"), _error),
        "env": _environment,
        "w": _conditions,
        "n": _slots,
        "R": partial(_requirements, config),
        "M": partial(_memory_limit, config),
        "gpu": _gpus,
        "x": _exclusive,
        # with dependencies, jpsi sets it itself
        "ti": passed_over,
    }


def _options(words: Sequence[str]) -> Iterator[Given]:
    return dash_options(words, _COUNTS)


@hookimpl
def read_script(text: str, site: Site) -> ForeignScript:
    """What the `#BSUB` lines ask for, wherever they stand."""
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
