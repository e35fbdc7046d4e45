"""Grid Engine for jpsi: what jpsi-core must say to it, and what its answers mean. Nothing here acts."""

from .config import GridEngineConfig

__all__ = ["GridEngineConfig"]
