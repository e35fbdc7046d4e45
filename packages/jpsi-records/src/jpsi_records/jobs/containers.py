"""Finds the program of this machine that starts containers: apptainer, podman or docker.

`attempt_job` uses it if the computation names an image. Previews use `engine_problem` to warn if this machine
cannot start it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

#: The paths in a container of the job's progress file and of its inbox.
PROGRESS_PLACE, INBOX_PLACE = "/.jpsi/progress", "/.jpsi/inbox"
#: The engines by name, in order of preference: those that need no root service come first.
ENGINES = ("apptainer", "podman", "docker")


def find_engine(which: Callable[[str], object] = shutil.which) -> str | None:
    """Return the name of the first container engine on this machine; None if there is none."""
    return next((name for name in ENGINES if which(name)), None)


def engine_problem(engine: str | None, *, says_cwd: bool) -> str | None:
    """Return why a container cannot be started on this machine; None if it can.

    Args:
        engine: the result of `find_engine`.
        says_cwd: True if the request has a working directory of its own.
    """
    if engine is None:
        return f"container_image: there is none of {', '.join(ENGINES)} here"
    if engine == "apptainer" and not says_cwd:
        return "cwd is needed: apptainer does not know that of the image"
    return None
