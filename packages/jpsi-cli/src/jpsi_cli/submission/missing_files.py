"""Warns of jobs whose program, input, or directory of the output does not exist on this machine.

It only warns: another program may make them before the job starts, and the nodes may have other files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import jpsi

from .. import messages


def warn_of_missing_files(executor: jpsi.JobExecutor, specs: Iterable[jpsi.JobSpec | None]) -> None:
    """Warn once of what jobs need and this machine does not have; a remote host has other files."""
    if executor.system.is_remote:
        return
    found = list(dict.fromkeys(describe_missing(it for it in specs if it is not None)))
    if not found:
        return
    others = len(found) - 1
    more = f", and {others} more {'is' if others == 1 else 'are'} missing" if others else ""
    messages.warning(f"{found[0]}{more}; the job fails unless that is there when it starts")


def describe_missing(specs: Iterable[jpsi.JobSpec]) -> Iterator[str]:
    """Yield clauses about what jobs need and does not exist, and cannot be made before they start.

    Jobs are left out that wait for others, stage files in, run scripts first, or run in a container.
    """
    known: dict[Path, bool] = {}
    for spec in specs:
        for path, what in () if _may_be_made(spec) else _needed(spec):
            if path not in known:
                known[path] = _is_missing(path)
            if known[path]:
                yield what


def _may_be_made(spec: jpsi.JobSpec) -> bool:
    return any(
        (spec.attributes.after, spec.stage_in, spec.environment_setup, spec.pre_launch, spec.container)
    )


def _needed(spec: jpsi.JobSpec) -> Iterator[tuple[Path, str]]:
    """Yield the paths that a job needs, each with the clause that tells that it does not exist."""
    try:
        directory = _expanded(spec.directory or Path()).absolute()
    except FileNotFoundError:
        # jpsi refuses a job whose current directory was removed
        return
    program = spec.executable or ""
    if "/" in program and not Path(program).is_absolute() and "$" not in program:
        yield directory / program, f"there is no program {directory / program}"
    if spec.stdin_path is not None:
        file = directory / _expanded(spec.stdin_path)
        yield file, f"there is no file {file} for standard input"
    for stream, path in (("output", spec.stdout_path), ("error", spec.stderr_path)):
        place = None if path is None else (directory / _expanded(path)).parent
        # jpsi makes the job's own directory, or refuses a job without it
        if place is not None and place != directory:
            yield place, f"there is no directory {place} for standard {stream}"


def _expanded(path: Path) -> Path:
    return path.expanduser() if path.parts[:1] == ("~",) else path


def _is_missing(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        # it cannot be seen
        return False
    return False
