"""The commands that make jobs.

`jpsi run`, `submit`, `script`, `validate` and `convert`.

They read job documents and scripts, make specs of options, submit, and stay with a job in the foreground.
"""

from __future__ import annotations

from .commands import CONVERT, RUN, SCRIPT, SUBMIT, VALIDATE

__all__ = ["CONVERT", "RUN", "SCRIPT", "SUBMIT", "VALIDATE"]
