"""Runs of a document on disk: its text, the request, and a journal.

<user state>/jpsi/workflows/<name>-<digest of the path>/<number>/
    document.yaml   the text as it was
    run.json        the target, the parameters, and what was known of the site
    journal         a line of JSON for each event
    lock            held by the process that drives the run
    cancel          request to end the run, with the reason
    cancel.ENTRY    request to end an entry
    staged/         archives of staged files
    inside/GROUP/   journal, lock, cancel and life of the group run, and the work folder of its pilot
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import platformdirs

from jpsi import SubmitException
from jpsi_engine import (
    check_private_directory,
    make_private_directory,
    open_private,
    sync_directory,
    write_synced,
)

from ..document import Findings, load
from ..planning import Limit, Machine, Mapped, Plan, Site, SubsystemNode, make_plan
from .completed import CompletedEntries
from .journal import REPAIR, Journal, convert_disk_errors, load_journal

#: The name of the directory in messages.
RUNS = "the directory of runs"


def runs_folder(file: str) -> Path:
    """Return the folder of the runs of a document."""
    path = Path(file)
    # the document is the same, whichever links lead to its folder
    path = path.parent.resolve() / path.name
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return platformdirs.user_state_path("jpsi") / "workflows" / f"{path.stem}-{digest}"


@contextlib.contextmanager
def locked_runs(file: str) -> Iterator[None]:
    """Hold the lock on the runs of a document: no other process chooses or creates a run within the block."""
    root = runs_folder(file)
    with convert_disk_errors(f"the runs of {file} cannot be kept in {root}"):
        make_private_directory(root, RUNS)
        lock = open_private(root / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def latest_run(file: str) -> Journal | None:
    """Return the last run of a document; None if it was never run."""
    root = runs_folder(file)
    numbers = [it for it in _numbers(root) if (root / str(it) / "run.json").exists()]
    return read_run(root / str(max(numbers))) if numbers else None


def create_run(
    file: str,
    text: str,
    site: Site,
    parameters: Mapping[str, str],
    completed: CompletedEntries | None = None,
) -> Journal:
    """Create a run of a document on disk; it survives a crash of the machine.

    Args:
        file: the document.
        text: the document's text.
        site: of the target.
        parameters: the values that the user gave.
        completed: what completed in the last run, and does not run again.

    Raises:
        SubmitException: the files cannot be written.
    """
    root = runs_folder(file)
    content = {"source": file, "parameters": dict(parameters), "site": attrs.asdict(site)}
    with convert_disk_errors(f"the run of {file} cannot be kept in {root}"):
        make_private_directory(root, RUNS)
        path = root / str(max(_numbers(root), default=0) + 1)
        path.mkdir(mode=0o700)
        # whatever the umask
        path.chmod(0o700)
        write_synced(path / "document.yaml", text.encode())
        if completed is not None:
            completed.record(path)
        # last, since a folder with this file counts as a run
        write_synced(path / "run.json.new", json.dumps(content, default=timedelta.total_seconds).encode())
        (path / "run.json.new").rename(path / "run.json")
        for it in (path, root, root.parent):
            sync_directory(it)
    return read_run(path)


def _numbers(root: Path) -> list[int]:
    return [int(it.name) for it in root.glob("[0-9]*") if it.name.isdecimal()]


@attrs.frozen(slots=True, kw_only=True)
class RunRequest:
    """The document, values and target with which a run began."""

    #: The name of the document, and its text as it was.
    source: str
    text: str
    #: The values of parameters that the user gave.
    parameters: Mapping[str, str]
    site: Site


def read_request(path: Path) -> RunRequest:
    """Return what the run in a folder was begun with.

    Raises:
        SubmitException: its files cannot be read.
    """
    try:
        # a run that another user may have put there must not be driven
        check_private_directory(path, RUNS)
        content = json.loads((path / "run.json").read_text(encoding="utf-8"))
        return RunRequest(
            source=content["source"],
            text=(path / "document.yaml").read_text(encoding="utf-8"),
            parameters=dict(content["parameters"].items()),
            site=_read_site(content["site"]),
        )
    except OSError as e:
        raise SubmitException(f"the run in {path} cannot be read: {e}", e) from e
    except (ValueError, LookupError, TypeError, AttributeError) as e:
        msg = f"the run in {path} cannot be read: its run.json is not as jpsi wrote it: {e!r}"
        raise SubmitException(f"{msg}; {REPAIR}", e) from e


def _read_site(values: dict[str, Any]) -> Site:
    seconds, machine = values["default_duration"], values["machine"]
    subsystems = values["subsystems"].items()
    values |= {
        "constraints": {name: Mapped(**it) for name, it in values["constraints"].items()},
        "limits": tuple(Limit(**it) for it in values["limits"]),
        "machine": machine and Machine(**machine),
        "default_duration": None if seconds is None else timedelta(seconds=seconds),
        "subsystems": {name: tuple(SubsystemNode(**it) for it in nodes) for name, nodes in subsystems},
    }
    return Site(**values)


def read_run(path: Path) -> Journal:
    """Return a run as it is on disk.

    Raises:
        SubmitException: its files cannot be read.
    """
    return load_journal(path, plan_request(read_request(path)))


def plan_request(request: RunRequest) -> Plan:
    """Return the plan of a run."""
    # unknown keys were accepted when the run began
    findings = Findings(request.source, is_lenient=True)
    return make_plan(load(request.text, findings, request.parameters), request.site, findings)
