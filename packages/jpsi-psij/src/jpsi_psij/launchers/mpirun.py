"""The class of the launcher `mpirun`."""

from __future__ import annotations

from ..job_launcher import Launcher


class MPILauncher(Launcher):
    """The launcher `mpirun`."""

    NAME = "mpirun"
