"""Converts scripts that were written for sbatch into job specs, from their `#SBATCH` lines."""

from .script import read_script
