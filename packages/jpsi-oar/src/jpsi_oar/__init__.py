"""The OAR backend of jpsi: it renders commands and parses their output. It runs no command itself."""

from .config import OarConfig

__all__ = ["OarConfig"]
