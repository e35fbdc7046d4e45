"""Convert.

Reads scripts that were written for `flux batch`, and says what their `# flux:` lines ask for.
"""

from .script import read_script

__all__ = [
    "read_script",
]
