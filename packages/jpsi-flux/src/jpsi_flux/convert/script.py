"""Reads the `# flux:` lines of a script that was written for `flux batch`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import (
    Dependency,
    DependencyKind,
    Draft,
    ForeignScript,
    Reader,
    hookimpl,
    parse_duration,
)
from jpsi.plugin.kit import (
    ParsedOption,
    ScriptReader,
    attribute_reader,
    count_reader,
    gnu_options,
    ignore_option,
    output_reader,
    path_reader,
    read_exclusive,
    read_name,
)

from ..submit_options import CUSTOM

# flux-batch(1), OPTIONS: the short options
_SHORT_OPTIONS: Mapping[str, str] = {
    "B": "bank",
    "N": "nodes",
    "S": "setattr",
    "c": "cores-per-slot",
    "g": "gpus-per-slot",
    "l": "label-io",
    "n": "nslots",
    "o": "setopt",
    "q": "queue",
    "t": "time-limit",
    "u": "unbuffered",
    "v": "verbose",
    "x": "exclusive",
}
_FLAGS = frozenset(
    {"debug", "dry-run", "exclusive", "label-io", "quiet", "unbuffered", "verbose", "wait", "watch", "wrap"}
)
# flux-batch(1): mustache templates, which Flux replaces
_PATTERN = re.compile(r"\{\{")
# RFC 23: a number without a unit is seconds, but minutes for --time-limit
_MINUTES = re.compile(r"[0-9]+")
_DEPENDENCY_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}
# a separator that no option contains
_LINE = "\n"
_BANK = ("bank", "system.bank")


def _read_limit(draft: Draft, value: str) -> None:
    draft.attributes.duration = parse_duration(f"{value}m" if _MINUTES.fullmatch(value) else value)


def _read_variables(draft: Draft, value: str) -> None:
    for rule in value.split(_LINE):
        name, separator, text = rule.partition("=")
        if not separator or not name.isidentifier():
            draft.lose("env", rule, "the job has the whole environment")
        else:
            draft.set_variable(name, text)


def _read_dependencies(draft: Draft, value: str) -> None:
    draft.attributes.after = [*_parse_dependencies(value)]


def _parse_dependencies(value: str) -> Iterator[Dependency]:
    for item in value.split(_LINE):
        word, separator, native_id = item.partition(":")
        if word not in _DEPENDENCY_KINDS or not separator or not native_id:
            msg = f"jpsi cannot express the dependency {item!r}"
            raise ValueError(msg)
        yield Dependency(native_id, _DEPENDENCY_KINDS[word])


def _read_attribute(draft: Draft, value: str) -> None:
    kept = []
    for item in value.split(_LINE):
        name, _, text = item.partition("=")
        if name in _BANK and text:
            draft.attributes.project_name = text
        else:
            kept.append(item)
    for item in kept[:1]:
        draft.keep("setattr", item)
    for item in kept[1:]:
        draft.lose("setattr", item, "one of them can be carried over")


#: flux-batch(1) and flux-submit(1), OPTIONS; all others become custom attributes or are not supported by
#: jpsi.
_READERS: Mapping[str, Reader] = {
    "job-name": read_name,
    "queue": attribute_reader("queue_name"),
    "bank": attribute_reader("project_name"),
    "setattr": _read_attribute,
    "time-limit": _read_limit,
    "cwd": path_reader("directory", _PATTERN),
    "input": path_reader("stdin_path", _PATTERN),
    "output": output_reader(_PATTERN, ["error"]),
    "error": path_reader("stderr_path", _PATTERN),
    "env": _read_variables,
    "dependency": _read_dependencies,
    "nodes": count_reader("node_count"),
    **dict.fromkeys(("nslots", "ntasks"), count_reader("process_count")),
    **dict.fromkeys(("cores-per-slot", "cores-per-task"), count_reader("cpu_cores_per_process")),
    **dict.fromkeys(("gpus-per-slot", "gpus-per-task"), count_reader("gpu_cores_per_process")),
    "exclusive": read_exclusive,
    **dict.fromkeys(("label-io", "quiet", "unbuffered", "verbose"), ignore_option),
}


def _parse_options(words: Sequence[str]) -> Iterator[ParsedOption]:
    return gnu_options(words, _SHORT_OPTIONS, _FLAGS, _READERS)


_READER = ScriptReader(
    # RFC 36: the sentinel, after the characters that make the line a comment
    mark=r"[^\w\s]+\s*(?:flux|FLUX):",
    is_read_whole=False,
    options=_parse_options,
    custom=CUSTOM,
    joints=dict.fromkeys(("dependency", "env", "setattr"), _LINE),
    readers=_READERS,
)


@hookimpl
def read_script(text: str) -> ForeignScript:
    """Return the job that the `# flux:` lines before the first command describe."""
    return _READER.read(text)
