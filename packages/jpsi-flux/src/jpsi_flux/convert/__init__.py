"""Converts scripts that were written for `flux batch` into job specs.

The module reads the `# flux:` lines of the scripts.
"""

from .script import read_script
