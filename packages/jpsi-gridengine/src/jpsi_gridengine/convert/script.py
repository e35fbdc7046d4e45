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
from ..qsub_options import ATTRIBUTE_OPTIONS, CUSTOM
from .resources import resource_readers

#: sge_submit(1) of 8.1.9: the number of arguments of each option.
_ARGUMENT_COUNTS = {
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
_TRUE_WORDS = frozenset({"y", "yes"})
_HOME = Path("~")
_CURRENT_DIRECTORY = "."


def _read_directory(draft: Draft, value: str) -> None:
    draft.spec.directory = read_path(value or _CURRENT_DIRECTORY, _PATTERN)


def _read_shell(draft: Draft, value: str) -> None:
    draft.spec.executable = str(_parse_path(value))


def _parse_path(value: str) -> Path:
    return read_path(_HOST.sub("", value), _PATTERN)


def _is_joined(draft: Draft) -> bool:
    return draft.options.get("j") in _TRUE_WORDS


def _read_input(draft: Draft, value: str) -> None:
    draft.spec.stdin_path = _parse_path(value)


def _read_output(draft: Draft, value: str) -> None:
    path = _parse_path(value)
    draft.spec.stdout_path = path
    if _is_joined(draft):
        draft.spec.stderr_path = path


def _read_error(draft: Draft, value: str) -> None:
    if not _is_joined(draft):
        draft.spec.stderr_path = _parse_path(value)


def _read_variables(draft: Draft, value: str) -> None:
    for item in value.split(","):
        name, separator, text = item.partition("=")
        # a variable without a value is taken from the environment, which jobs inherit anyway
        if separator:
            draft.set_variable(name, text)


def _read_dependencies(draft: Draft, value: str) -> None:
    ids = value.split(",")
    if not all(job_id.isdecimal() for job_id in ids):
        msg = "jpsi supports dependencies on job numbers only, not on names"
        raise ValueError(msg)
    draft.attributes.after = [Dependency(job_id, DependencyKind.ANY) for job_id in ids]


def _report_soft(draft: Draft, _value: str) -> None:
    draft.lose("soft", None, "jpsi turns the soft requests after it into hard ones")


def _option_readers(config: GridEngineConfig) -> Mapping[str, Reader]:
    return {
        "N": read_name,
        **{option: attribute_reader(field) for option, field in ATTRIBUTE_OPTIONS.items()},
        "cwd": _read_directory,
        "wd": _read_directory,
        "S": _read_shell,
        "i": _read_input,
        "o": _read_output,
        "e": _read_error,
        "v": _read_variables,
        "hold_jid": _read_dependencies,
        **resource_readers(config),
        "soft": _report_soft,
        # what jpsi does anyway
        **dict.fromkeys(("V", "hard", "j", "terse"), ignore_option),
    }


def _parse_options(words: Sequence[str]) -> Iterator[ParsedOption]:
    return dash_options(words, _ARGUMENT_COUNTS)


@hookimpl
def read_script(text: str, site: Site) -> ForeignScript:
    """Return the job that the `#$` lines describe, anywhere in the script."""
    reader = ScriptReader(
        mark=r"#\$(?=[\s-]|\Z)",
        is_read_whole=True,
        options=_parse_options,
        dashes="-",
        custom=CUSTOM,
        joints={"l": ",", "v": ",", "hold_jid": ","},
        readers=_option_readers(site.config),
    )
    script = reader.read(text)
    # sge_submit(1): without -cwd or -wd, a job runs in the home directory
    script.spec.directory = script.spec.directory or _HOME
    return script
