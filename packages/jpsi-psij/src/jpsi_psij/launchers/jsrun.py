"""The class of the launcher `jsrun`."""

from __future__ import annotations

from ..job_launcher import Launcher


class JsrunLauncher(Launcher):
    """The launcher `jsrun` of LSF."""

    NAME = "jsrun"
