"""Reads the `#PBS` lines of a script that was written for qsub."""

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
    Reader,
    parse_duration,
)
from jpsi.plugin.kit import (
    ParsedOption,
    ScriptReader,
    attribute_reader,
    count_reader,
    gnu_options,
    ignore_option,
    path_reader,
    read_exclusive,
    read_name,
    read_path,
)

from ..submission import split_option
from .resources import RESOURCES, read_nodes, read_place, read_select

# Options without a value; only Torque has `n`
_FLAGS = frozenset("IVXfhnz")
# Options whose value may set several resources or attributes: `-l nodes=1,walltime=60`
_REPEATED = frozenset("lW")
_NEXT = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_.]*=)")
_COMMA = re.compile(r"(?<!\\),")
# Characters that PBS replaces in paths; and the prefix that names another host
_PATTERN = re.compile(r"[$^]|\A-")
_HOST = re.compile(r"\A[A-Za-z0-9.-]*:")
_DEPENDENCY_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}
_HOME = Path("~")


def _read_walltime(draft: Draft, value: str) -> None:
    draft.attributes.duration = parse_duration(value)


def _read_shell(draft: Draft, value: str) -> None:
    draft.spec.executable = str(read_path(value.partition("@")[0], _PATTERN))


def _parse_path(value: str) -> Path:
    if value.endswith("/"):
        msg = "a path of jpsi is that of a file"
        raise ValueError(msg)
    return read_path(_HOST.sub("", value), _PATTERN)


def _is_joined(draft: Draft) -> bool:
    return set("oe") <= set(draft.options.get("j") or "")


def _read_output(draft: Draft, value: str) -> None:
    path = _parse_path(value)
    draft.spec.stdout_path = path
    if _is_joined(draft):
        draft.spec.stderr_path = path


def _read_error(draft: Draft, value: str) -> None:
    if not _is_joined(draft):
        draft.spec.stderr_path = _parse_path(value)


def _read_variables(draft: Draft, value: str) -> None:
    for item in _COMMA.split(value):
        name, separator, text = item.partition("=")
        # a variable without a value is taken from the environment, which jobs inherit anyway
        if separator:
            draft.set_variable(name.strip(), text.replace("\\,", ","))


def _read_dependencies(draft: Draft, value: str) -> None:
    draft.attributes.after = [*_parse_dependencies(value)]


def _parse_dependencies(value: str) -> Iterator[Dependency]:
    for part in value.split(","):
        word, *native_ids = part.split(":")
        if (
            word not in _DEPENDENCY_KINDS
            or not native_ids
            or not all(it[:1].isdecimal() for it in native_ids)
        ):
            msg = f"jpsi cannot express the dependency {part!r}"
            raise ValueError(msg)
        yield from (Dependency(native_id, _DEPENDENCY_KINDS[word]) for native_id in native_ids)


def _report_select(draft: Draft, value: str) -> None:
    draft.lose("l.select", value, "it is for PBS, and not for Torque")


_COMMON_READERS: Mapping[str, Reader] = {
    "N": read_name,
    "q": attribute_reader("queue_name"),
    "A": attribute_reader("project_name"),
    "l.walltime": _read_walltime,
    "S": _read_shell,
    "o": _read_output,
    "e": _read_error,
    "v": _read_variables,
    "W.depend": _read_dependencies,
    **RESOURCES,
    # jpsi does this anyway, or with its own files
    **dict.fromkeys(("V", "j", "k", "f"), ignore_option),
}
#: The readers of the options of PBS, and below of Torque; all other options become custom attributes.
OPENPBS_READERS: Mapping[str, Reader] = {
    **_COMMON_READERS,
    "l.place": read_place,
    # the last two may have nodes of several kinds, which the other readers cannot handle
    "l.nodes": read_nodes,
    "l.select": read_select,
}
TORQUE_READERS: Mapping[str, Reader] = {
    **_COMMON_READERS,
    "d": path_reader("directory", _PATTERN),
    "n": read_exclusive,
    "l.procs": count_reader("process_count"),
    "l.nodes": read_nodes,
    "l.select": _report_select,
}


def _parse_options(words: Sequence[str]) -> Iterator[ParsedOption]:
    """Yield options in the form of custom attributes: `-l walltime=60` is `l.walltime` with the value 60."""
    for name, value in gnu_options(words, {}, _FLAGS):
        if name in _REPEATED and value:
            for part in _NEXT.split(value):
                resource, _, text = part.strip().partition("=")
                yield f"{name}.{resource}", text
        else:
            yield name, value


def read_script(text: str, custom: CustomOptions, readers: Mapping[str, Reader]) -> ForeignScript:
    """Return the job that the `#PBS` lines before the first command describe."""
    reader = ScriptReader(
        mark=r"#PBS(?=\s|\Z)",
        is_read_whole=False,
        options=_parse_options,
        dashes="-",
        custom=custom,
        spelled=split_option,
        readers=readers,
    )
    script = reader.read(text)
    # qsub(1B): a job runs in the home directory, and its output is copied to the directory of the qsub call
    script.spec.directory = script.spec.directory or _HOME
    return attrs.evolve(script, is_output_here=True)
