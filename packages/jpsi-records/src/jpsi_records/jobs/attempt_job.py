"""The job of an attempt: what is laid out for it, and its J/PSI spec."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jpsi import JobAttributes, JobSpec, ResourceSpecV1, escape
from jpsi.plugin import line

from ..errors import StoreError
from ..inbox import EXECUTION, INBOX, PROGRESS
from ..model import STDIN, STDOUT, Execution, Placement, Purity, can_write, read_mount
from ..reuse import recalled
from .containers import INBOX_PLACE, PROGRESS_PLACE, Bind, Container, engine_problem, started, variables

#: The variable that tells a job where its mounts are.
ROOT = "JPSI_ROOT"

# What is in the claim of an attempt: whoever makes that file first decides whether the job runs.
CLAIMED, REVOKED = "job\n", "revoked\n"


class AttemptFiles:
    """Where the files of an attempt are."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / "root"
        self.begin = directory / "begin"
        self.claim = directory / "claim"
        self.stdin = directory / "stdin"
        self.stdout = directory / "log" / "stdout"
        self.stderr = directory / "log" / "stderr"
        self.progress = directory / "progress"
        self.inbox = directory / "inbox"

    def place(self, path: str) -> Path:
        """Where a place below the root is."""
        return self.root / path.lstrip("/")


def begin_script(files: AttemptFiles) -> str:
    """What the job does before anything else: it sees whether it still is to run.

    A job that the batch system runs again finds its own claim.
    """
    claim = line(str(files.claim))
    return (
        f"( set -C; {line('echo', CLAIMED.strip())} >{claim} ) 2>/dev/null ||\n"
        f'    [ "$(cat {claim})" = {CLAIMED.strip()} ] ||\n'
        "    { echo 'jpsi: somebody else sees to this execution' >&2; exit 125; }\n"
    )


def job_spec(execution: Execution, files: AttemptFiles, engine: str | None = None) -> JobSpec:
    """What the job of an attempt is submitted with.

    Args:
        execution: what is to be computed.
        files: where it was laid out.
        engine: what starts containers; asked for where there is an image.

    Raises:
        StoreError: it takes a container, and nothing starts one.
    """
    members = recalled(execution.preimage)
    placement = Placement(**execution.placement)
    mounts: Mapping[str, Mapping[str, Any]] = members["mounts"]
    stdout = mounts.get(STDOUT)
    return JobSpec(
        **(
            _here(execution, members, files)
            if members["container_image"] is None
            else _contained(execution, members, files, engine)
        ),
        name=f"jpsi-{execution.id[-12:]}",
        stdin_path=files.stdin if STDIN in mounts else None,
        stdout_path=files.stdout if stdout is None else files.place(stdout["path"]),
        stderr_path=files.stderr,
        pre_launch=files.begin,
        launcher=placement.launcher,
        resources=_resources(execution.recorded, members, placement),
        attributes=JobAttributes(
            duration=placement.time_limit,
            queue_name=placement.queue_name,
            project_name=placement.project_name,
            reservation_id=placement.reservation_id,
            custom_attributes=dict(placement.custom_attributes) or None,
        ),
    )


def _here(execution: Execution, members: Mapping[str, Any], files: AttemptFiles) -> dict[str, Any]:
    """What the job is where its mounts lie below a root of its own."""
    program, *arguments = members["command"]
    return {
        "executable": _ROOT_REFERENCE.sub(lambda _: str(files.root), program),
        "arguments": arguments,
        "directory": files.place(members["cwd"]),
        "inherit_environment": members["purity"] != Purity.STRICT.value,
        "environment": {
            **{name: _rooted(value, files) for name, value in members["environment"].items()},
            ROOT: escape(str(files.root)),
            EXECUTION: execution.id,
            PROGRESS: escape(str(files.progress)),
            INBOX: escape(str(files.inbox)),
        },
    }


def _contained(
    execution: Execution, members: Mapping[str, Any], files: AttemptFiles, engine: str | None
) -> dict[str, Any]:
    """What the job is where its mounts are in a container, at their true places."""
    wrong = engine_problem(engine, says_cwd=members["cwd"] is not None)
    if engine is None or wrong is not None:
        raise StoreError(wrong or "")
    container = Container(
        image=execution.recorded["container_image"],
        command=[_true(it) for it in members["command"]],
        cwd=members["cwd"],
        environment={
            **{name: _true(value) for name, value in members["environment"].items()},
            ROOT: "",
            EXECUTION: execution.id,
            PROGRESS: PROGRESS_PLACE,
            INBOX: INBOX_PLACE,
        },
        binds=[
            Bind(str(files.progress), PROGRESS_PLACE, is_writable=True),
            Bind(str(files.inbox), INBOX_PLACE, is_writable=True),
            *(
                Bind(str(files.place(target)), target, is_writable=can_write(read_mount(document)))
                for target, document in members["mounts"].items()
                if target not in {STDIN, STDOUT}
            ),
        ],
        reads_stdin=STDIN in members["mounts"],
        uid=os.getuid(),
        gid=os.getgid(),
    )
    program, *arguments = started(engine, container)
    return {
        "executable": program,
        # What it means is settled: nothing of where the container is started is put into it.
        "arguments": [escape(it) for it in arguments],
        "directory": files.root,
        "environment": {name: escape(it) for name, it in variables(engine, container).items()},
    }


# A job's arguments may refer to its variables; its program, and the variables themselves, may not.
_ROOT_REFERENCE = re.compile(rf"(?<!\$)\$\{{{ROOT}\}}")


_ESCAPED = re.compile(r"\$(\$\{[A-Za-z_]\w*\})")


def _true(value: str) -> str:
    """A text as it is meant in a container, whose root is the root.

    >>> _true("${JPSI_ROOT}/words $${HOME}")
    '/words ${HOME}'
    """
    return _ESCAPED.sub(r"\1", _ROOT_REFERENCE.sub("", value))


def _rooted(value: str | None, files: AttemptFiles) -> str | None:
    return None if value is None else _ROOT_REFERENCE.sub(lambda _: escape(str(files.root)), value)


def _resources(
    recorded: Mapping[str, Any], members: Mapping[str, Any], placement: Placement
) -> ResourceSpecV1 | None:
    # Where the number does not matter, one is what was asked for if nothing else was recorded.
    is_open = members["processes"] == "any"
    processes = 1 if is_open else members["processes"]
    threads = recorded.get("vcpus", 1) if is_open else members["threads"]
    resources = ResourceSpecV1(
        process_count=None if processes == 1 else processes,
        cpu_cores_per_process=None if threads == 1 else threads,
        gpu_cores_per_process=placement.gpus,
        memory=recorded.get("ram"),
    )
    return None if resources == ResourceSpecV1() else resources
