"""The class of the launcher `jsrun`."""

from . import JsrunLauncher

__all__ = ["JsrunLauncher"]
