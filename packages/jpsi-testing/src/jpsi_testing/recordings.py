"""Reads recordings of real batch systems: JSON files with commands and their answers.

Tests of backends parse the recorded answers, or replay them with `ReplayTransport`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from jpsi.plugin import CommandResult

# The return code of a command that its recorder killed.
_KILLED = -9


@attrs.frozen(slots=True, kw_only=True)
class Recording:
    """A call of a command of a real batch system, and its answer."""

    #: The origin of the recording: batch system, version and scenario.
    source: str
    argv: tuple[str, ...]
    result: CommandResult
    stdin: str | None = None
    #: The variables of the command's environment besides the usual ones.
    environment: Mapping[str, str] = attrs.field(factory=dict)
    #: A person's note about the step.
    note: str = ""
    #: Further values of this step, such as `seconds` and `files`.
    details: Mapping[str, Any] = attrs.field(factory=dict)

    def __str__(self) -> str:
        return f"{self.source}: {' '.join(self.argv)}"


def read_recordings(path: Path) -> list[Recording]:
    """Return the recordings of a file, or of all files `*.json` in a directory, in order.

    A step whose return code is null was killed by its recorder, and is a result that has timed out.

    Raises:
        ValueError: a file is no recording.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [recording for file in files for recording in _read(file)]


def _read(file: Path) -> list[Recording]:
    try:
        scenario = json.loads(file.read_text())
        source = f"{scenario['lrm']} {scenario['version']}, {scenario['scenario']}"
        return [_recording(source, step) for step in scenario["steps"]]
    except (KeyError, TypeError, ValueError) as e:
        raise ValueError(f"{file} is no recording: {type(e).__name__}: {e}") from e


def _recording(source: str, step: dict[str, Any]) -> Recording:
    rest = dict(step)
    argv, code = tuple(rest.pop("argv")), rest.pop("rc")
    result = CommandResult(
        returncode=_KILLED if code is None else code,
        stdout=rest.pop("stdout"),
        stderr=rest.pop("stderr"),
        timed_out=code is None,
    )
    return Recording(
        source=source,
        argv=argv,
        result=result,
        stdin=rest.pop("stdin", None),
        environment=rest.pop("env", None) or {},
        note=str(rest.pop("note", None) or ""),
        details=rest,
    )
