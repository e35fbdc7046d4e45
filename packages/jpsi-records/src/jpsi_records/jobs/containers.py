"""How a job runs in a container: the command lines of the programs that start one."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Mapping, Sequence

import attrs

#: Where a job in a container finds its file for progress, and its directory for requests.
PROGRESS_PLACE, INBOX_PLACE = "/.jpsi/progress", "/.jpsi/inbox"


@attrs.frozen(slots=True)
class Bind:
    """A directory or file of this machine, and where the container has it."""

    source: str
    target: str
    is_writable: bool = False


@attrs.frozen(slots=True, kw_only=True)
class Container:
    """What is to run in a container."""

    #: Name and digest.
    image: str
    #: The program and its arguments; empty for what the image says.
    command: Sequence[str] = ()
    #: None for what the image says.
    cwd: str | None = None
    environment: Mapping[str, str] = attrs.field(factory=dict)
    binds: Sequence[Bind] = ()
    reads_stdin: bool = False
    #: Whose files the job writes.
    uid: int = 0
    gid: int = 0


def find_engine(which: Callable[[str], object] = shutil.which) -> str | None:
    """The program of this machine that starts containers; None if there is none."""
    return next((name for name in ENGINES if which(name)), None)


def engine_problem(engine: str | None, *, says_cwd: bool) -> str | None:
    """Why a container cannot be started here; None if it can.

    Args:
        engine: what `find_engine` has found.
        says_cwd: whether the working directory is given, and not that of the image.
    """
    if engine is None:
        return f"container_image: there is none of {', '.join(ENGINES)} here"
    if engine == "apptainer" and not says_cwd:
        return "cwd is needed: apptainer does not know that of the image"
    return None


def started(engine: str, container: Container) -> list[str]:
    """The command line that runs a container and exits as what runs in it does."""
    return ENGINES[engine](container)


def variables(engine: str, container: Container) -> dict[str, str]:
    """The variables that the command line itself needs.

    To apptainer the container's are told so: it would take a comma in an option for the end of a value.
    """
    if engine != "apptainer":
        return {}
    return {f"APPTAINERENV_{name}": value for name, value in container.environment.items()}


def _apptainer(container: Container) -> list[str]:
    # https://apptainer.org/docs/user/1.3/cli/apptainer_exec.html
    return [
        *("apptainer", "exec" if container.command else "run"),
        *("--containall", "--no-home", "--writable-tmpfs"),
        *(() if container.cwd is None else ("--pwd", container.cwd)),
        *_mounts(container.binds),
        f"docker://{container.image}",
        *container.command,
    ]


def _podman(container: Container) -> list[str]:
    # https://docs.podman.io/en/v4.9.3/markdown/podman-run.1.html
    program, arguments = container.command[:1], container.command[1:]
    return [
        *("podman", "run", "--rm", "--init", "--userns=keep-id"),
        *_common(container),
        # As JSON: a text that begins with a bracket would be read as that.
        *(("--entrypoint", json.dumps(list(program))) if program else ()),
        container.image,
        *arguments,
    ]


def _docker(container: Container) -> list[str]:
    # https://docs.docker.com/reference/cli/docker/container/run/
    program, arguments = container.command[:1], container.command[1:]
    return [
        *("docker", "run", "--rm", "--init", "--user", f"{container.uid}:{container.gid}"),
        *_common(container),
        *(("--entrypoint", program[0]) if program else ()),
        container.image,
        *arguments,
    ]


def _common(container: Container) -> list[str]:
    """What podman and docker call the same."""
    return [
        *(("--interactive",) if container.reads_stdin else ()),
        *(() if container.cwd is None else ("--workdir", container.cwd)),
        *(word for name, it in container.environment.items() for word in ("--env", f"{name}={it}")),
        *_mounts(container.binds),
    ]


def _mounts(binds: Sequence[Bind]) -> list[str]:
    return [word for it in binds for word in ("--mount", _mount(it))]


def _mount(bind: Bind) -> str:
    r"""A mount as all three read it: one line of CSV.

    >>> _mount(Bind("/a,b", "/in"))
    'type=bind,"source=/a,b",target=/in,readonly'
    """
    fields = ["type=bind", f"source={bind.source}", f"target={bind.target}"]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields if bind.is_writable else [*fields, "readonly"])
    return line.getvalue()


#: By name; of several that are there the first is taken, which needs no service that is root.
ENGINES: Mapping[str, Callable[[Container], list[str]]] = {
    "apptainer": _apptainer,
    "podman": _podman,
    "docker": _docker,
}
