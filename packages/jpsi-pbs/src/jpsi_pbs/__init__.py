"""The PBS and Torque backends of jpsi: they render commands and parse their output, and run no command."""

from .config import PbsConfig

__all__ = ["PbsConfig"]
