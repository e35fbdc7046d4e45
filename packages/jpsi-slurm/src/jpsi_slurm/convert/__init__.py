"""Convert: reads scripts that were written for sbatch, and says what their `#SBATCH` lines ask for."""

from .script import read_script

__all__ = [
    "read_script",
]
