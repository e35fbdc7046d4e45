"""The launchers that psij names."""

from __future__ import annotations

from ..job_launcher import Launcher


class SingleLauncher(Launcher):
    """The launcher of one process."""

    NAME = "single"


class MultipleLauncher(Launcher):
    """The launcher of several processes on one node, without MPI."""

    NAME = "multiple"


class MPILauncher(Launcher):
    """The launcher `mpirun`."""

    NAME = "mpirun"


class SrunLauncher(Launcher):
    """The launcher `srun` of Slurm."""

    NAME = "srun"


class JsrunLauncher(Launcher):
    """The launcher `jsrun` of LSF."""

    NAME = "jsrun"


class AprunLauncher(Launcher):
    """The launcher `aprun` of ALPS."""

    NAME = "aprun"


CLASSES: dict[str, type[Launcher]] = {
    it.NAME: it
    for it in (SingleLauncher, MultipleLauncher, MPILauncher, SrunLauncher, JsrunLauncher, AprunLauncher)
}
