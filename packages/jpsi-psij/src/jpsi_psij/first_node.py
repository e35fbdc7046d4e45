"""The launcher `psij_multiple`: starts the processes of all nodes on the first one.

psij-python's launcher `multiple` does that; the launcher `multiple` of jpsi refuses a job of several nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import jpsi
from jpsi.plugin import JobSpec, ResourceSpecV1, ShellLine, hookimpl
from jpsi.plugin.engine import process_count

NAME = "psij_multiple"


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    """Return no problems: it starts any number of processes."""
    del spec
    return []


@hookimpl
def rank_variables() -> Sequence[str] | None:
    """Return the variables that tell each process its rank, and the number of processes."""
    return _multiple().rank_variables


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines of `multiple` for as many processes on one node."""
    on_one_node = JobSpec(
        spec.executable, resources=ResourceSpecV1(process_count=process_count(spec.resources))
    )
    return _multiple().hooks.launch(spec=on_one_node)


def _multiple() -> jpsi.Launcher:
    return jpsi.Launcher.get_instance("multiple")
