"""Reads the `#$` lines of a script that was written for Grid Engine's qsub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jpsi.plugin import Dependency, DependencyKind, Draft, ForeignScript, Reader, Site, hookimpl
from jpsi.plugin.kit import (
    ParsedOption,
    ScriptReader,
    attribute_reader,
    dash_options,
    ignore_option,
    read_name,
    read_path,
)

from ..config import GridEngineConfig
from ..options import CUSTOM, NAMES
from .resources import resource_readers

#: sge_submit(1) of 8.1.9: the number of arguments of each option.
_COUNTS = {
    **dict.fromkeys(("V", "clear", "cwd", "hard", "help", "notify", "soft", "terse", "verify"), 0),
    **dict.fromkeys(("A", "C", "M", "N", "P", "R", "S", "a", "ac", "ar", "b", "binding", "c", "ckpt"), 1),
    **dict.fromkeys(("dc", "dl", "e", "h", "hold_jid", "hold_jid_ad", "i", "j", "js", "jsv", "l", "m"), 1),
    **dict.fromkeys(("masterq", "now", "o", "p", "q", "r", "sc", "shell", "sync", "t", "tc", "v", "w"), 1),
    "wd": 1,
    "pe": 2,
}
# Variables in paths, which Grid Engine replaces; and the end of a path that is a directory
_PATTERN = re.compile(r"\$|/\Z")
_HOST = re.compile(r"\A[A-Za-z0-9.-]*:")
_YES = frozenset({"y", "yes"})
_HOME = Path("~")
_HERE = "."


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
        # a variable without a value is taken from the environment, which jobs inherit anyway
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


def _readers(config: GridEngineConfig) -> Mapping[str, Reader]:
    return {
        "N": read_name,
        **{option: attribute_reader(field) for option, field in NAMES.items()},
        "cwd": _directory,
        "wd": _directory,
        "S": _shell,
        "i": _input,
        "o": _output,
        "e": _error,
        "v": _variables,
        "hold_jid": _dependencies,
        **resource_readers(config),
        "soft": _soft,
        # what jpsi does anyway
        **dict.fromkeys(("V", "hard", "j", "terse"), ignore_option),
    }


def _options(words: Sequence[str]) -> Iterator[ParsedOption]:
    return dash_options(words, _COUNTS)


@hookimpl
def read_script(text: str, site: Site) -> ForeignScript:
    """Return the job that the `#$` lines describe, anywhere in the script."""
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
