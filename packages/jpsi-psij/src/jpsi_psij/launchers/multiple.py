"""The class of the launcher `multiple`."""

from . import MultipleLauncher

__all__ = ["MultipleLauncher"]
