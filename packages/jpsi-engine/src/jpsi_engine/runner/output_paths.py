"""Resolves the paths of a job's standard output and standard error.

The engines and the job store find with it, after the job was submitted, the files that the runner opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jpsi import Streams
from jpsi.plugin.engine import serialization
from jpsi_engine.runner.prechecks import expand_home
from jpsi_engine.verdict import exit_phases


def resolve_streams(intent: Mapping[str, Any], folder: str) -> Streams:
    """Return the output paths on the host where the job runs, from its intent and its folder."""
    spec, remote = serialization.decode(intent["spec"]), intent.get("remote")
    home = Path.home() if remote is None else Path(remote["home"])
    job_folder = Path(folder) if remote is None else Path(remote["root"], "jobs", Path(folder).name)
    directory = expand_home(Path(intent["directory"]), home)
    return Streams(
        directory / expand_home(spec.stdout_path or job_folder / exit_phases.STDOUT, home),
        directory / expand_home(spec.stderr_path or job_folder / exit_phases.STDERR, home),
    )
