"""PBS and Torque for jpsi: what jpsi-core must say to them, and what they answer. Nothing here acts."""

from .config import PbsConfig

__all__ = ["PbsConfig"]
