"""What steps do about files, before what they belong to runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from jpsi import JobFiles, JpsiError

from .model import Step


def do_steps(steps: Iterable[Step], files: JobFiles) -> str | None:
    """Have files be there where jobs run; what went wrong, or None.

    Where jobs see the files of this machine a file that is staged only has to be there; elsewhere it is sent.
    """
    for step in steps:
        try:
            if step.content is not None:
                _write(step.path, step.content, files)
            else:
                _stage(step.path, files)
        except JpsiError as e:
            return str(e)
        except OSError as e:
            return f"{step.path}: {e.strerror}"
    return None


def _stage(path: str, files: JobFiles) -> None:
    here = Path(path).expanduser()
    if not os.path.lexists(here):
        raise FileNotFoundError(2, "it is to be staged, and is not here")
    if not files.are_here:
        files.put(str(here), path)


def _write(path: str, content: str, files: JobFiles) -> None:
    if files.are_here:
        there = Path(path).expanduser()
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(content, encoding="utf-8")
        return
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".jpsi") as file:
        file.write(content)
        file.flush()
        files.put(file.name, path)
