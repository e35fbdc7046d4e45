"""The launcher `mpiexec`: runs the processes with the `mpiexec` on the job's PATH, of any MPI."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl

from . import mpi
from .process_layout import ProcessLayout


@hookimpl
def heterogeneous() -> bool:
    return True


@hookimpl
def rank_variables() -> Sequence[str]:
    return mpi.rank_variables()


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    return mpi.lines("mpiexec", ProcessLayout.from_components(spec))
