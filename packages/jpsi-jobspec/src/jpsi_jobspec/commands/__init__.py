"""The commands of `jpsi workflow`.

To import this package takes no more than click, as `jpsi --help` does; a command imports the rest when it is
called.
"""

from __future__ import annotations

from .workflow import WORKFLOW
