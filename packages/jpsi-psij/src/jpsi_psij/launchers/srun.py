"""The class of the launcher `srun`."""

from __future__ import annotations

from ..job_launcher import Launcher


class SrunLauncher(Launcher):
    """The launcher `srun` of Slurm."""

    NAME = "srun"
