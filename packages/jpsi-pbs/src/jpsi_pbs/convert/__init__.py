"""Convert.

Reads scripts that were written for qsub, and says as a spec what their `#PBS` lines ask for.
"""

from .script import OPENPBS_READERS, TORQUE_READERS, read_script

__all__ = [
    "OPENPBS_READERS",
    "TORQUE_READERS",
    "read_script",
]
