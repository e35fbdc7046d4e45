"""The class of the launcher `single`."""

from __future__ import annotations

from ..job_launcher import Launcher


class SingleLauncher(Launcher):
    """The launcher of one process."""

    NAME = "single"
