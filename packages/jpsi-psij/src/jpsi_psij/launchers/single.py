"""The class of the launcher `single`."""

from . import SingleLauncher

__all__ = ["SingleLauncher"]
