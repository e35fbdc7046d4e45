"""What steps do about files, before what they belong to runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from jpsi import JobFiles, JpsiError

from .model import Step
from .staging import archive, is_here, is_seen_as, pack


def do_steps(steps: Iterable[Step], files: JobFiles, staging: Path | None) -> str | None:
    """Have files be there where jobs run; return what went wrong, or None.

    A file that is staged has to be here. It is sent to another machine; else nodes may see the files of this
    machine, or may not, and take it from an archive then.

    Args:
        steps: what to do.
        files: those where jobs run.
        staging: the folder for archives; None where all jobs run on this machine.
    """
    for step in steps:
        try:
            if step.content is not None:
                _write(step.path, step.content, files)
            else:
                _stage(step.path, files, staging)
        except JpsiError as e:
            return str(e)
        except OSError as e:
            return f"{step.path}: {e.strerror}"
    return None


def _stage(path: str, files: JobFiles, staging: Path | None) -> None:
    here = Path(path).expanduser()
    if not is_here(path):
        if staging is not None and archive(path, staging).exists():
            # it was where the group was submitted, and processes take it from there
            return
        raise FileNotFoundError(2, "it is to be staged, and is not here")
    if not files.are_here:
        files.put(str(here), path)
    elif staging is not None and not is_seen_as(staging, here):
        pack(path, staging)


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
