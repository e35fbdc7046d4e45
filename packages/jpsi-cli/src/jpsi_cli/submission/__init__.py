"""The commands that create jobs: `jpsi run`, `submit`, `resubmit`, `script`, `validate` and `convert`.

They read job documents and scripts, make specs from options, submit jobs, and follow one in the foreground.
"""

from __future__ import annotations

from .commands import CONVERT, RESUBMIT, RUN, SCRIPT, SUBMIT, VALIDATE
