"""Slurm for jpsi: what jpsi-core must say to Slurm, and what Slurm's answers mean. Nothing here acts."""

from .config import SlurmConfig

__all__ = ["SlurmConfig"]
