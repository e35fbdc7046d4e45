"""The class of the launcher `srun`."""

from . import SrunLauncher

__all__ = ["SrunLauncher"]
