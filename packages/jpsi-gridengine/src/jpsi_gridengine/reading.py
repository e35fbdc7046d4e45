"""Reading a script that was written for the qsub of Grid Engine: what its `#$` lines ask for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from jpsi.plugin import (
    Dependency,
    DependencyKind,
    Draft,
    ForeignScript,
    Given,
    Reader,
    ResourceSpecV1,
    ScriptReader,
    Site,
    attribute,
    dash_options,
    hookimpl,
    parse_duration,
    passed_over,
    read_amount,
    read_count,
    read_name,
    read_path,
)

from .config import SLOTS, GridEngineConfig
from .options import CUSTOM, NAMES

#: sge_submit(1) of 8.1.9: how many words follow an option.
_COUNTS = {
    **dict.fromkeys(("V", "clear", "cwd", "hard", "help", "notify", "soft", "terse", "verify"), 0),
    **dict.fromkeys(("A", "C", "M", "N", "P", "R", "S", "a", "ac", "ar", "b", "binding", "c", "ckpt"), 1),
    **dict.fromkeys(("dc", "dl", "e", "h", "hold_jid", "hold_jid_ad", "i", "j", "js", "jsv", "l", "m"), 1),
    **dict.fromkeys(("masterq", "now", "o", "p", "q", "r", "sc", "shell", "sync", "t", "tc", "v", "w"), 1),
    "wd": 1,
    "pe": 2,
}
# What Grid Engine replaces in paths, and what is a directory
_PATTERN = re.compile(r"\$|/\Z")
_HOST = re.compile(r"\A[A-Za-z0-9.-]*:")
# sge_types(5) of 8.1.9, memory_specifier: capital letters are powers of 1024, small ones of 1000
_UNITS = {"": 1} | {
    unit: size
    for power, letter in enumerate("kmgt", 1)
    for unit, size in ((letter, 1000**power), (letter.upper(), 1024**power))
}
_ENDLESS = "INFINITY"
_YES = frozenset({"y", "yes"})
_HOME = Path("~")
_HERE = "."
_NO_WORD = "jpsi has no word for it"


def _directory(draft: Draft, value: str) -> None:
    draft.spec.directory = read_path(value or _HERE, _PATTERN)


def _shell(draft: Draft, value: str) -> None:
    draft.spec.executable = str(_path(value))


def _path(value: str) -> Path:
    return read_path(_HOST.sub("", value), _PATTERN)


def _is_joined(draft: Draft) -> bool:
    return draft.options.get("j") in _YES


def _input(draft: Draft, value: str) -> None:
    draft.spec.stdin_path = _path(value)


def _output(draft: Draft, value: str) -> None:
    path = _path(value)
    draft.spec.stdout_path = path
    if _is_joined(draft):
        draft.spec.stderr_path = path


def _error(draft: Draft, value: str) -> None:
    if not _is_joined(draft):
        draft.spec.stderr_path = _path(value)


def _variables(draft: Draft, value: str) -> None:
    for item in value.split(","):
        name, equals, text = item.partition("=")
        # one without a value is that of the environment, which jobs inherit
        if equals:
            draft.set_variable(name, text)


def _dependencies(draft: Draft, value: str) -> None:
    ids = value.split(",")
    if not all(it.isdecimal() for it in ids):
        msg = "jpsi has jobs wait for jobs that are named by their numbers"
        raise ValueError(msg)
    draft.attributes.after = [Dependency(it, DependencyKind.ANY) for it in ids]


def _soft(draft: Draft, _value: str) -> None:
    draft.lose("soft", None, "what follows it is asked for and not only wished")


def _environment(config: GridEngineConfig, draft: Draft, value: str) -> None:
    """The slots, as the environments that are configured have them; all others are named to Grid Engine."""
    name, _, text = value.partition(" ")
    if not text.isdecimal() or not int(text):
        draft.lose("pe", value, "a job of jpsi has one number of slots")
        return
    slots, asked = int(text), draft.resources
    each = _slots_on_a_node(config.parallel_environment, name)
    if each and not slots % each:
        asked.node_count, asked.processes_per_node = slots // each, each
        return
    if name == config.node_environment:
        asked.cpu_cores_per_process = slots
        return
    asked.process_count = slots
    if name != config.parallel_environment:
        draft.keep("pe", value)


def _slots_on_a_node(family: str | None, name: str) -> int | None:
    """How many slots an environment of a family such as `mpi-{slots}` has on each node."""
    if family is None or SLOTS not in family:
        return None
    found = re.fullmatch(re.escape(family).replace(re.escape(SLOTS), "([1-9][0-9]*)"), name)
    return None if found is None else int(found[1])


def _requests(config: GridEngineConfig, draft: Draft, value: str) -> None:
    """What `-l` asks for; amounts are for each slot."""
    kept = []
    for request in value.split(","):
        name, _, text = request.partition("=")
        try:
            _resource(config, name)(draft, text)
        except ValueError:
            kept.append(request)
    if kept:
        draft.keep("l", ",".join(kept))


def _resource(config: GridEngineConfig, name: str) -> Callable[[Draft, str], None]:
    if name == "h_rt":
        return _limit
    if name in config.memory_resource.split(","):
        return _memory
    if name in (config.gpu_resource or "").split(","):
        return _gpus
    if name == config.exclusive_resource:
        return _exclusive
    raise ValueError(_NO_WORD)


def _limit(draft: Draft, text: str) -> None:
    draft.attributes.duration = timedelta(0) if text.upper() == _ENDLESS else parse_duration(text)


def _memory(draft: Draft, text: str) -> None:
    draft.resources.memory = read_amount(text, _UNITS) * _slots(draft.resources)


def _gpus(draft: Draft, text: str) -> None:
    draft.resources.gpu_cores_per_process = read_count(text) * (draft.resources.cpu_cores_per_process or 1)


def _exclusive(draft: Draft, text: str) -> None:
    if text.lower() not in {"", "true", "1"}:
        raise ValueError(_NO_WORD)
    draft.resources.exclusive_node_use = True


def _slots(asked: ResourceSpecV1) -> int:
    return asked.computed_process_count * (asked.cpu_cores_per_process or 1)


def _readers(config: GridEngineConfig) -> Mapping[str, Reader]:
    return {
        "N": read_name,
        **{option: attribute(field) for option, field in NAMES.items()},
        "cwd": _directory,
        "wd": _directory,
        "S": _shell,
        "i": _input,
        "o": _output,
        "e": _error,
        "v": _variables,
        "hold_jid": _dependencies,
        "pe": partial(_environment, config),
        "l": partial(_requests, config),
        "soft": _soft,
        # what jpsi does anyway
        **dict.fromkeys(("V", "hard", "j", "terse"), passed_over),
    }


def _options(words: Sequence[str]) -> Iterator[Given]:
    return dash_options(words, _COUNTS)


@hookimpl
def read_script(text: str, site: Site) -> ForeignScript:
    """What the `#$` lines ask for, wherever they stand."""
    reader = ScriptReader(
        mark=r"#\$(?=[\s-]|\Z)",
        is_read_whole=True,
        options=_options,
        dashes="-",
        custom=CUSTOM,
        joints={"l": ",", "v": ",", "hold_jid": ","},
        readers=_readers(site.config),
    )
    script = reader.read(text)
    # sge_submit(1): without -cwd or -wd, a job runs in the home directory
    script.spec.directory = script.spec.directory or _HOME
    return script
