"""The class of the launcher `aprun`."""

from . import AprunLauncher

__all__ = ["AprunLauncher"]
