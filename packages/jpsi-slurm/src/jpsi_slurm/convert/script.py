"""Reads the `#SBATCH` lines of a script that was written for sbatch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Dependency, Draft, ForeignScript, Reader, hookimpl
from jpsi.plugin.kit import (
    ParsedOption,
    ScriptReader,
    attribute_reader,
    gnu_options,
    ignore_option,
    output_reader,
    path_reader,
    read_name,
)

from ..sbatch_options import ATTRIBUTE_OPTIONS, CUSTOM, DEPENDENCIES, parse_time
from .resources import RESOURCE_READERS

# sbatch(1), OPTIONS: the short options
_SHORT_OPTIONS: Mapping[str, str] = {
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
# Options without a value, or with an optional one that follows `=`
_FLAGS = frozenset(
    {"contiguous", "disable-stdout-job-summary", "exclusive", "get-user-env", "help", "hold", "ignore-pbs"}
    | {"immediate", "nice", "no-kill", "no-requeue", "overcommit", "oversubscribe", "parsable", "propagate"}
    | {"quiet", "reboot", "requeue", "resv-ports", "spread-job", "test-only", "usage", "use-min-nodes"}
    | {"verbose", "version", "wait"}
)
# sbatch(1): FILENAME PATTERN
_PATTERN = re.compile("%")
_DEPENDENCY_KINDS = {word: kind for kind, word in DEPENDENCIES.items()}


def _read_time(draft: Draft, value: str) -> None:
    draft.attributes.duration = parse_time(value)


def _read_export(draft: Draft, value: str) -> None:
    words = [word for word in value.split(",") if word]
    for word in words:
        name, separator, text = word.partition("=")
        if separator:
            draft.set_variable(name, text)
    if "ALL" not in words:
        reason = "the job has the whole environment; without it, it would lack the variables of Slurm too"
        draft.lose("export", value, reason)


def _read_dependency(draft: Draft, value: str) -> None:
    dependencies = list(_parse_dependencies(value))
    draft.attributes.after = [*dependencies]


def _parse_dependencies(value: str) -> Iterator[Dependency]:
    for part in value.split(","):
        word, *native_ids = part.split(":")
        if word not in _DEPENDENCY_KINDS or not native_ids or not all(it.isdecimal() for it in native_ids):
            msg = f"jpsi cannot express the dependency {part!r}"
            raise ValueError(msg)
        yield from (Dependency(native_id, _DEPENDENCY_KINDS[word]) for native_id in native_ids)


#: sbatch(1), OPTIONS; all others become custom attributes or are not supported by jpsi.
_READERS: Mapping[str, Reader] = {
    "job-name": read_name,
    **{option: attribute_reader(field) for option, field in ATTRIBUTE_OPTIONS.items()},
    "time": _read_time,
    "chdir": path_reader("directory", _PATTERN),
    "input": path_reader("stdin_path", _PATTERN),
    "output": output_reader(_PATTERN, ["error"]),
    "error": path_reader("stderr_path", _PATTERN),
    "export": _read_export,
    "dependency": _read_dependency,
    **RESOURCE_READERS,
    **dict.fromkeys(("parsable", "quiet", "verbose"), ignore_option),
}


def _parse_options(words: Sequence[str]) -> Iterator[ParsedOption]:
    if words[:1] in (["hetjob"], ["packjob"]):
        msg = "the parts of a heterogeneous job are several jobs"
        raise ValueError(msg)
    return gnu_options(words, _SHORT_OPTIONS, _FLAGS, _READERS)


_READER = ScriptReader(
    mark=r"#SBATCH(?=\s|\Z)", is_read_whole=False, options=_parse_options, custom=CUSTOM, readers=_READERS
)


@hookimpl
def read_script(text: str) -> ForeignScript:
    """Return the job that the `#SBATCH` lines before the first command describe."""
    return _READER.read(text)
