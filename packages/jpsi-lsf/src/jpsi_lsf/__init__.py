"""LSF for jpsi: what jpsi-core must say to LSF, and what LSF's answers mean. Nothing here acts."""

from .config import LsfConfig

__all__ = ["LsfConfig"]
