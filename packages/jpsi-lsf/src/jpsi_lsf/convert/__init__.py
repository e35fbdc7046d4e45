"""Convert.

Reads scripts that were written for bsub, and says as a spec what their `#BSUB` lines ask for.
"""

from .script import read_script

__all__ = [
    "read_script",
]
