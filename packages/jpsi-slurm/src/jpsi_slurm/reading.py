"""Reading a script that was written for sbatch: what its `#SBATCH` lines ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from jpsi.plugin import (
    Dependency,
    Draft,
    ForeignScript,
    Given,
    Reader,
    ScriptReader,
    attribute,
    gnu_options,
    hookimpl,
    node_count,
    passed_over,
    read_amount,
    read_count,
    read_name,
    read_path,
)

from .options import CUSTOM, NAMES
from .script import DEPENDENCIES

# sbatch(1), OPTIONS: the letters
_LETTERS: Mapping[str, str] = {
    "A": "account",
    "a": "array",
    "B": "extra-node-info",
    "b": "begin",
    "C": "constraint",
    "c": "cpus-per-task",
    "D": "chdir",
    "d": "dependency",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "h": "help",
    "I": "immediate",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "O": "overcommit",
    "o": "output",
    "p": "partition",
    "Q": "quiet",
    "q": "qos",
    "S": "core-spec",
    "s": "oversubscribe",
    "t": "time",
    "u": "usage",
    "V": "version",
    "v": "verbose",
    "W": "wait",
    "w": "nodelist",
    "x": "exclude",
}
# Those that have no value, or one that is joined to them
_PLAIN = frozenset(
    {"contiguous", "disable-stdout-job-summary", "exclusive", "get-user-env", "help", "hold", "ignore-pbs"}
    | {"immediate", "nice", "no-kill", "no-requeue", "overcommit", "oversubscribe", "parsable", "propagate"}
    | {"quiet", "reboot", "requeue", "resv-ports", "spread-job", "test-only", "usage", "use-min-nodes"}
    | {"verbose", "version", "wait"}
)
_MEBIBYTE = 1 << 20
# sbatch(1): --mem; without a unit it is megabytes, and all of them are powers of 1024
_UNITS = {"": _MEBIBYTE} | {
    spelled: 1 << 10 * power
    for power, unit in enumerate("kmgt", 1)
    for spelled in (unit, unit.upper(), f"{unit}b", f"{unit.upper()}B")
}
# sbatch(1): FILENAME PATTERN
_PATTERN = re.compile("%")
_ENDLESS = frozenset({"0", "UNLIMITED", "INFINITE"})
# sbatch(1): --time; the time without days is minutes, unless there are hours
_TIME = re.compile(
    r"(?:(?P<days>\d+)-(?P<hours>\d+)(?::(?P<minutes>\d+)(?::(?P<seconds>\d+))?)?"
    r"|(?P<h>\d+):(?P<m>\d+):(?P<s>\d+)|(?P<mm>\d+)(?::(?P<ss>\d+))?)",
    re.ASCII,
)
_KINDS = {word: kind for kind, word in DEPENDENCIES.items()}
_GPUS = re.compile("gpu(?::([0-9]+))?")


def read_time(text: str) -> timedelta:
    """A time as `--time` has it.

    >>> [str(read_time(text)) for text in ("90", "1:30", "1:30:00", "1-12", "UNLIMITED")]
    ['1:30:00', '0:01:30', '1:30:00', '1 day, 12:00:00', '0:00:00']

    Raises:
        ValueError: it is none.
    """
    if text.upper() in _ENDLESS:
        return timedelta(0)
    found = _TIME.fullmatch(text)
    if found is None:
        msg = f"{text!r} is not a time as sbatch reads it"
        raise ValueError(msg)
    part = {name: int(digits) for name, digits in found.groupdict(default="0").items()}
    return timedelta(
        days=part["days"],
        hours=part["hours"] + part["h"],
        minutes=part["minutes"] + part["m"] + part["mm"],
        seconds=part["seconds"] + part["s"] + part["ss"],
    )


def _time(draft: Draft, value: str) -> None:
    draft.attributes.duration = read_time(value)


def _directory(draft: Draft, value: str) -> None:
    draft.spec.directory = read_path(value, _PATTERN)


def _input(draft: Draft, value: str) -> None:
    draft.spec.stdin_path = read_path(value, _PATTERN)


def _output(draft: Draft, value: str) -> None:
    path = read_path(value, _PATTERN)
    draft.spec.stdout_path = path
    if "error" not in draft.options:
        # sbatch(1): --output takes both streams
        draft.spec.stderr_path = path


def _error(draft: Draft, value: str) -> None:
    draft.spec.stderr_path = read_path(value, _PATTERN)


def _export(draft: Draft, value: str) -> None:
    words = [word for word in value.split(",") if word]
    for word in words:
        name, equals, text = word.partition("=")
        if equals:
            draft.set_variable(name, text)
    if "ALL" not in words:
        why = "the job has the whole environment; without it, it would lack the variables of Slurm too"
        draft.lose("export", value, why)


def _dependency(draft: Draft, value: str) -> None:
    after = list(_dependencies(value))
    draft.attributes.after = [*after]


def _dependencies(value: str) -> Iterator[Dependency]:
    for part in value.split(","):
        word, *native_ids = part.split(":")
        if word not in _KINDS or not native_ids or not all(it.isdecimal() for it in native_ids):
            msg = f"{part!r} is no dependency that jpsi has a word for"
            raise ValueError(msg)
        yield from (Dependency(native_id, _KINDS[word]) for native_id in native_ids)


def _nodes(draft: Draft, value: str) -> None:
    draft.resources.node_count = read_count(value)


def _tasks(draft: Draft, value: str) -> None:
    draft.resources.process_count = read_count(value)


def _tasks_per_node(draft: Draft, value: str) -> None:
    each, asked = read_count(value), draft.resources
    nodes, processes = asked.node_count, asked.process_count
    if nodes is not None and processes is not None and -(-processes // each) != nodes:
        msg = f"{processes} tasks on {nodes} nodes are not {each} on each"
        raise ValueError(msg)
    asked.processes_per_node = each


def _cpus(draft: Draft, value: str) -> None:
    draft.resources.cpu_cores_per_process = read_count(value)


def _gpus_per_task(draft: Draft, value: str) -> None:
    draft.resources.gpu_cores_per_process = read_count(value)


def _gpus(draft: Draft, value: str) -> None:
    _share_gpus(draft, read_count(value))


def _gpus_per_node(draft: Draft, value: str) -> None:
    _share_gpus(draft, read_count(value) * _known_nodes(draft))


def _generic(draft: Draft, value: str) -> None:
    found = _GPUS.fullmatch(value)
    if found is None:
        msg = "jpsi has a word for GPUs of any type alone"
        raise ValueError(msg)
    _share_gpus(draft, int(found[1] or 1) * _known_nodes(draft))


def _share_gpus(draft: Draft, gpus: int) -> None:
    each, rest = divmod(gpus, draft.resources.computed_process_count)
    if rest or not each:
        msg = "not so many for each process"
        raise ValueError(msg)
    draft.resources.gpu_cores_per_process = each


def _known_nodes(draft: Draft) -> int:
    """How many nodes there will be."""
    nodes = node_count(draft.resources)
    if nodes is None and draft.resources.computed_process_count > 1:
        msg = "the number of nodes is Slurm's choice"
        raise ValueError(msg)
    return nodes or 1


def _memory(draft: Draft, value: str) -> None:
    draft.resources.memory = read_amount(value, _UNITS) * _known_nodes(draft)


def _memory_per_cpu(draft: Draft, value: str) -> None:
    asked = draft.resources
    cpus = asked.computed_process_count * (asked.cpu_cores_per_process or 1)
    asked.memory = read_amount(value, _UNITS) * cpus


def _exclusive(draft: Draft, value: str) -> None:
    if value:
        msg = "jpsi has nodes shared with no other job, or with any"
        raise ValueError(msg)
    draft.resources.exclusive_node_use = True


#: sbatch(1), OPTIONS; all others are custom attributes, or nothing that jpsi does.
_READERS: Mapping[str, Reader] = {
    "job-name": read_name,
    **{option: attribute(field) for option, field in NAMES.items()},
    "time": _time,
    "chdir": _directory,
    "input": _input,
    "output": _output,
    "error": _error,
    "export": _export,
    "dependency": _dependency,
    "nodes": _nodes,
    "ntasks": _tasks,
    "ntasks-per-node": _tasks_per_node,
    "cpus-per-task": _cpus,
    "gpus-per-task": _gpus_per_task,
    "gpus": _gpus,
    "gpus-per-node": _gpus_per_node,
    "gres": _generic,
    "mem": _memory,
    "mem-per-cpu": _memory_per_cpu,
    "exclusive": _exclusive,
    **dict.fromkeys(("parsable", "quiet", "verbose"), passed_over),
}


def _options(words: Sequence[str]) -> Iterator[Given]:
    if words[:1] in (["hetjob"], ["packjob"]):
        msg = "the parts of a heterogeneous job are several jobs"
        raise ValueError(msg)
    return gnu_options(words, _LETTERS, _PLAIN, _READERS)


_READER = ScriptReader(
    mark=r"#SBATCH(?=\s|\Z)", is_read_whole=False, options=_options, custom=CUSTOM, readers=_READERS
)


@hookimpl
def read_script(text: str) -> ForeignScript:
    """What the `#SBATCH` lines before the first command ask for."""
    return _READER.read(text)
