"""Converts scripts that were written for qsub into job specs.

The modules read the `#PBS` lines of the scripts.
"""

from .script import OPENPBS_READERS, TORQUE_READERS, read_script
