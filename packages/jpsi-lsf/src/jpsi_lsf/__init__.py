"""The LSF backend of jpsi: it renders LSF commands and parses their output. It runs no command itself."""

from .config import LsfConfig

__all__ = ["LsfConfig"]
