"""Another name of the module `job_launcher`."""

from .job_launcher import Launcher

__all__ = ["Launcher"]
