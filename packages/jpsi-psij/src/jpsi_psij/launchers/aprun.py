"""The class of the launcher `aprun`."""

from __future__ import annotations

from ..job_launcher import Launcher


class AprunLauncher(Launcher):
    """The launcher `aprun` of ALPS."""

    NAME = "aprun"
