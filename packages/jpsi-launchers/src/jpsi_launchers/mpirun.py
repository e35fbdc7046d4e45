"""The launcher `mpirun`: runs the processes with the `mpirun` on the job's PATH, of any MPI."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl

from . import mpi

heterogeneous, rank_variables = mpi.heterogeneous, mpi.rank_variables


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines that run the job's processes with the `mpirun` on PATH, of any MPI."""
    return mpi.lines("mpirun", spec)
