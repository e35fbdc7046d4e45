"""The Slurm backend of jpsi: it renders Slurm commands and parses their output. It runs no command itself."""

from .config import SlurmConfig

__all__ = ["SlurmConfig"]
