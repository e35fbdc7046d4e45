"""Convert.

Reads scripts that were written for qsub, and says as a spec what their `#$` lines ask for.
"""

from .script import read_script

__all__ = [
    "read_script",
]
