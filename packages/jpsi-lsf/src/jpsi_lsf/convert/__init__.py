"""Converts scripts that were written for bsub into job specs.

The modules read the `#BSUB` lines of the scripts.
"""

from .script import read_script
