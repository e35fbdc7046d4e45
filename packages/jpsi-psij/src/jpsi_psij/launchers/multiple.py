"""The class of the launcher `multiple`."""

from __future__ import annotations

from ..job_launcher import Launcher


class MultipleLauncher(Launcher):
    """The launcher of several processes on one node, without MPI."""

    NAME = "multiple"
