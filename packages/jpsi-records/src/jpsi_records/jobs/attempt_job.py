"""Builds the job of an attempt: the paths of its files, its begin script and its J/PSI spec.

The dispatcher submits that spec. The begin script claims the attempt, so that a job does not run after its
dispatcher has revoked it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jpsi import Bind, Container, JobSpec, ResourceSpecV1, escape
from jpsi.plugin import line
from jpsi.plugin.engine import container_runtime

from ..errors import StoreError
from ..inbox import EXECUTION, INBOX, PROGRESS
from ..model import STDIN, STDOUT, Execution, Placement, Purity, can_write, read_mount
from ..reuse import recalled
from .containers import INBOX_PLACE, PROGRESS_PLACE, engine_problem

#: The variable that gives a job the root of its mounts.
ROOT = "JPSI_ROOT"

# The content of the claim file. Job and dispatcher both try to create it: the first decides if the job runs.
CLAIMED, REVOKED = "job\n", "revoked\n"


class AttemptFiles:
    """The paths of an attempt's files."""

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
        """Return the path of a place below the root."""
        return self.root / path.lstrip("/")


def begin_script(files: AttemptFiles) -> str:
    """Return the script that a job runs first: it claims the attempt, or ends if that was revoked.

    A requeued job finds its own claim and continues.
    """
    claim = line(str(files.claim))
    return (
        f"( set -C; {line('echo', CLAIMED.strip())} >{claim} ) 2>/dev/null ||\n"
        f'    [ "$(cat {claim})" = {CLAIMED.strip()} ] ||\n'
        "    { echo 'jpsi: another job runs this execution' >&2; exit 125; }\n"
    )


def job_spec(execution: Execution, files: AttemptFiles, engine: str | None = None) -> JobSpec:
    """Return the spec to submit the job of an attempt with.

    Args:
        execution: the execution.
        files: the paths of the attempt's files.
        engine: the program that starts containers; needed with a container image.

    Raises:
        StoreError: the execution needs a container, and no engine can start it.
    """
    members = recalled(execution.preimage)
    placement = Placement(**execution.placement)
    mounts: Mapping[str, Mapping[str, Any]] = members["mounts"]
    stdout = mounts.get(STDOUT)
    return JobSpec(
        **(
            _host_command(execution, members, files)
            if members["container_image"] is None
            else _container_command(execution, members, files, engine)
        ),
        name=f"jpsi-{execution.id[-12:]}",
        stdin_path=files.stdin if STDIN in mounts else None,
        stdout_path=files.stdout if stdout is None else files.place(stdout["path"]),
        stderr_path=files.stderr,
        pre_launch=files.begin,
        launcher=placement.launcher,
        resources=_resources(execution.recorded, members, placement),
        attributes=placement.job_attributes,
    )


def _host_command(execution: Execution, members: Mapping[str, Any], files: AttemptFiles) -> dict[str, Any]:
    """Return the parts of the spec for a job without a container, whose mounts lie below its own root."""
    program, *arguments = members["command"]
    return {
        "executable": _ROOT_REFERENCE.sub(lambda _: str(files.root), program),
        "arguments": arguments,
        "directory": files.place(members["cwd"]),
        "inherit_environment": members["purity"] != Purity.STRICT.value,
        "environment": {
            **{name: _text_on_host(value, files) for name, value in members["environment"].items()},
            ROOT: escape(str(files.root)),
            EXECUTION: execution.id,
            PROGRESS: escape(str(files.progress)),
            INBOX: escape(str(files.inbox)),
        },
    }


def _container_command(
    execution: Execution, members: Mapping[str, Any], files: AttemptFiles, engine: str | None
) -> dict[str, Any]:
    """Return the parts of the spec for a job in a container, whose mounts lie at their own paths."""
    wrong = engine_problem(engine, says_cwd=members["cwd"] is not None)
    if engine is None or wrong is not None:
        raise StoreError(wrong or "")
    container = Container(
        execution.recorded["container_image"],
        directory=members["cwd"],
        environment={
            **{name: _text_in_container(value) for name, value in members["environment"].items()},
            ROOT: "",
            EXECUTION: execution.id,
            PROGRESS: PROGRESS_PLACE,
            INBOX: INBOX_PLACE,
        },
        binds=[
            Bind(str(files.progress), PROGRESS_PLACE),
            Bind(str(files.inbox), INBOX_PLACE),
            *(
                Bind(str(files.place(target)), target, read_only=not can_write(read_mount(document)))
                for target, document in members["mounts"].items()
                if target not in {STDIN, STDOUT}
            ),
        ],
    )
    command = container_runtime(engine).run_container(
        container=container,
        command=[_text_in_container(it) for it in members["command"]],
        inherits=False,
        user=f"{os.getuid()}:{os.getgid()}",
    )
    program, *arguments = command.argv
    return {
        "executable": program,
        # Escaped: J/PSI must not expand variables of the host in the command of the container.
        "arguments": [escape(it) for it in arguments],
        "directory": files.root,
        # by this variable, jpsi recognises the job of a request
        "environment": {
            EXECUTION: execution.id,
            **{name: escape(it) for name, it in command.environment.items()},
        },
    }


# J/PSI expands variables in a job's arguments only; here they are expanded in program and environment.
_ROOT_REFERENCE = re.compile(rf"(?<!\$)\$\{{{ROOT}\}}")


_ESCAPED = re.compile(r"\$(\$\{[A-Za-z_]\w*\})")


def _text_in_container(value: str) -> str:
    """Return a text with `${JPSI_ROOT}` resolved for a container, whose root is `/`.

    >>> _text_in_container("${JPSI_ROOT}/words $${HOME}")
    '/words ${HOME}'
    """
    return _ESCAPED.sub(r"\1", _ROOT_REFERENCE.sub("", value))


def _text_on_host(value: str | None, files: AttemptFiles) -> str | None:
    return None if value is None else _ROOT_REFERENCE.sub(lambda _: escape(str(files.root)), value)


def _resources(
    recorded: Mapping[str, Any], members: Mapping[str, Any], placement: Placement
) -> ResourceSpecV1 | None:
    # If the topology is `any`, a job gets one process; its cores are those recorded, else one.
    is_any_topology = members["processes"] == "any"
    processes = 1 if is_any_topology else members["processes"]
    threads = recorded.get("vcpus", 1) if is_any_topology else members["threads"]
    resources = ResourceSpecV1(
        process_count=None if processes == 1 else processes,
        cpu_cores_per_process=None if threads == 1 else threads,
        gpu_cores_per_process=placement.gpus,
        memory=recorded.get("ram"),
    )
    return None if resources == ResourceSpecV1() else resources
