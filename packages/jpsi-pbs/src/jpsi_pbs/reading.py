"""Reading a script that was written for qsub: what its `#PBS` lines ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from jpsi.plugin import (
    CustomOptions,
    Dependency,
    DependencyKind,
    Draft,
    ForeignScript,
    Given,
    Reader,
    ScriptReader,
    attribute,
    gnu_options,
    parse_duration,
    passed_over,
    read_amount,
    read_count,
    read_name,
    read_path,
)

from .script import spelled

# Options that have no value; `n` is Torque's
_PLAIN = frozenset("IVXfhnz")
# Of these, one value may set several things: `-l nodes=1,walltime=60`
_SEVERAL = frozenset("lW")
_NEXT = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_.]*=)")
_COMMA = re.compile(r"(?<!\\),")
# pbs_resources(7B), size; w is a word of 8 bytes
_UNITS = {"": 1, "b": 1, "B": 1} | {
    spelled: size << 10 * power
    for power, prefix in enumerate(("", "k", "m", "g", "t", "p"))
    for unit, size in (("b", 1), ("w", 8))
    for spelled in (f"{prefix}{unit}", f"{prefix}{unit}".upper())
}
# What PBS replaces in paths, and what names another host
_PATTERN = re.compile(r"[$^]|\A-")
_HOST = re.compile(r"\A[A-Za-z0-9.-]*:")
_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}
_ALONE = frozenset({"excl", "exclhost"})
_SPREAD = frozenset({"scatter"})
_HOME = Path("~")
_NO_WORD = "jpsi has no word for it"


def _read_walltime(draft: Draft, value: str) -> None:
    draft.attributes.duration = parse_duration(value)


def _read_shell(draft: Draft, value: str) -> None:
    draft.spec.executable = str(read_path(value.partition("@")[0], _PATTERN))


def _path(value: str) -> Path:
    if value.endswith("/"):
        msg = "a path of jpsi is that of a file"
        raise ValueError(msg)
    return read_path(_HOST.sub("", value), _PATTERN)


def _is_joined(draft: Draft) -> bool:
    return set("oe") <= set(draft.options.get("j") or "")


def _read_output(draft: Draft, value: str) -> None:
    path = _path(value)
    draft.spec.stdout_path = path
    if _is_joined(draft):
        draft.spec.stderr_path = path


def _read_error(draft: Draft, value: str) -> None:
    if not _is_joined(draft):
        draft.spec.stderr_path = _path(value)


def _read_directory(draft: Draft, value: str) -> None:
    draft.spec.directory = read_path(value, _PATTERN)


def _read_variables(draft: Draft, value: str) -> None:
    for item in _COMMA.split(value):
        name, equals, text = item.partition("=")
        # one without a value is that of the environment, which jobs inherit
        if equals:
            draft.set_variable(name.strip(), text.replace("\\,", ","))


def _read_dependencies(draft: Draft, value: str) -> None:
    draft.attributes.after = [*_dependencies(value)]


def _dependencies(value: str) -> Iterator[Dependency]:
    for part in value.split(","):
        word, *native_ids = part.split(":")
        if word not in _KINDS or not native_ids or not all(it[:1].isdecimal() for it in native_ids):
            msg = f"{part!r} is no dependency that jpsi has a word for"
            raise ValueError(msg)
        yield from (Dependency(native_id, _KINDS[word]) for native_id in native_ids)


def _read_memory(draft: Draft, value: str) -> None:
    draft.resources.memory = read_amount(value, _UNITS)


def _read_cores(draft: Draft, value: str) -> None:
    draft.resources.cpu_cores_per_process = read_count(value)


def _read_processes(draft: Draft, value: str) -> None:
    draft.resources.process_count = read_count(value)


def _read_exclusive(draft: Draft, _value: str) -> None:
    draft.resources.exclusive_node_use = True


def _read_place(draft: Draft, value: str) -> None:
    words = set(value.split(":"))
    if words - _ALONE - _SPREAD:
        raise ValueError(_NO_WORD)
    draft.resources.exclusive_node_use = bool(words & _ALONE)


def _read_select(draft: Draft, value: str) -> None:
    """One kind of chunk; pbs_resources(7B)."""
    count, wanted = _counted(value)
    processes = read_count(wanted.pop("mpiprocs", "1"))
    cores, cores_left = divmod(read_count(wanted.pop("ncpus", str(processes))), processes)
    gpus, gpus_left = divmod(int(wanted.pop("ngpus", "0")), processes)
    memory = wanted.pop("mem", None)
    # the number of threads that jpsi sets itself
    threads = wanted.pop("ompthreads", str(cores))
    if wanted or cores_left or gpus_left or not cores or threads != str(cores):
        raise ValueError(_NO_WORD)
    asked, place = draft.resources, set((draft.options.get("l.place") or "").split(":"))
    is_spread = bool(place & _SPREAD)
    if processes == 1 and not is_spread:
        asked.process_count = count
    else:
        asked.node_count, asked.processes_per_node = count, processes
    if count > 1 and processes > 1 and not is_spread:
        draft.lose("l.select", value, "jpsi has each chunk on a node of its own")
    asked.cpu_cores_per_process = cores if cores > 1 else None
    asked.gpu_cores_per_process = gpus or None
    asked.memory = None if memory is None else read_amount(memory, _UNITS) * count


def _read_nodes(draft: Draft, value: str) -> None:
    """As many nodes, with as many processes each; "Requesting Resources" in the Torque manual."""
    count, wanted = _counted(value)
    processes = read_count(wanted.pop("ppn", "1"))
    gpus, left = divmod(int(wanted.pop("gpus", "0")), processes)
    if wanted or left:
        raise ValueError(_NO_WORD)
    draft.resources.node_count, draft.resources.processes_per_node = count, processes
    draft.resources.gpu_cores_per_process = gpus or None


def _counted(value: str) -> tuple[int, dict[str, str]]:
    """How many of a thing, and what each has: `2:ncpus=4:mem=1gb`."""
    first, *parts = value.split(":")
    if "+" in value:
        msg = "jpsi has nodes of one kind"
        raise ValueError(msg)
    if "=" in first:
        # one of them
        first, parts = "1", [first, *parts]
    if not all("=" in part for part in parts):
        raise ValueError(_NO_WORD)
    return read_count(first), {name: text for name, _, text in (part.partition("=") for part in parts)}


def _lose_select(draft: Draft, value: str) -> None:
    draft.lose("l.select", value, "it is for PBS, and not for Torque")


_BOTH: Mapping[str, Reader] = {
    "N": read_name,
    "q": attribute("queue_name"),
    "A": attribute("project_name"),
    "l.walltime": _read_walltime,
    "S": _read_shell,
    "o": _read_output,
    "e": _read_error,
    "v": _read_variables,
    "W.depend": _read_dependencies,
    "l.nodes": _read_nodes,
    "l.ncpus": _read_cores,
    "l.mem": _read_memory,
    # what jpsi does anyway, or does with files of its own
    **dict.fromkeys(("V", "j", "k", "f"), passed_over),
}
#: What becomes of the options of PBS, and of those of Torque; all others are custom attributes.
PBS: Mapping[str, Reader] = {**_BOTH, "l.place": _read_place, "l.select": _read_select}
TORQUE: Mapping[str, Reader] = {
    **_BOTH,
    "d": _read_directory,
    "n": _read_exclusive,
    "l.procs": _read_processes,
    "l.select": _lose_select,
}


def _options(words: Sequence[str]) -> Iterator[Given]:
    """Options as custom attributes have them: `-l walltime=60` is `l.walltime` with the value 60."""
    for name, value in gnu_options(words, {}, _PLAIN):
        if name in _SEVERAL and value:
            for part in _NEXT.split(value):
                thing, _, text = part.strip().partition("=")
                yield f"{name}.{thing}", text
        else:
            yield name, value


def read_script(text: str, custom: CustomOptions, readers: Mapping[str, Reader]) -> ForeignScript:
    """What the `#PBS` lines before the first command ask for."""
    reader = ScriptReader(
        mark=r"#PBS(?=\s|\Z)",
        is_read_whole=False,
        options=_options,
        dashes="-",
        custom=custom,
        spelled=spelled,
        readers=readers,
    )
    script = reader.read(text)
    # qsub(1B): a job runs in the home directory, and its output is brought to where qsub was called
    script.spec.directory = script.spec.directory or _HOME
    return attrs.evolve(script, is_output_here=True)
