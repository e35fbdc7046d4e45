"""The Grid Engine backend of jpsi: it renders commands and parses their output. It runs no command itself."""

from .config import GridEngineConfig

__all__ = ["GridEngineConfig"]
