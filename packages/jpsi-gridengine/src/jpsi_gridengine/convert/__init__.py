"""Converts scripts that were written for qsub into job specs.

The modules read the `#$` lines of the scripts.
"""

from .script import read_script
