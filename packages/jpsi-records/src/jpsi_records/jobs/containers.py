"""Writes the command line that runs a job's command in a container, with apptainer, podman or docker.

`attempt_job` uses it if the computation names an image. Previews use `engine_problem` to warn if this machine
cannot start it.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Mapping, Sequence

import attrs

#: The paths in a container of the job's progress file and of its inbox.
PROGRESS_PLACE, INBOX_PLACE = "/.jpsi/progress", "/.jpsi/inbox"


@attrs.frozen(slots=True)
class Bind:
    """A directory or file of the host and its path in the container."""

    source: str
    target: str
    is_writable: bool = False


@attrs.frozen(slots=True, kw_only=True)
class Container:
    """A command to run in a container."""

    #: The image, by name and digest.
    image: str
    #: The program and its arguments; empty means the command of the image.
    command: Sequence[str] = ()
    #: The working directory; None means that of the image.
    cwd: str | None = None
    environment: Mapping[str, str] = attrs.field(factory=dict)
    binds: Sequence[Bind] = ()
    reads_stdin: bool = False
    #: The user and group that own the files that the job writes.
    uid: int = 0
    gid: int = 0


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


def started(engine: str, container: Container) -> list[str]:
    """Return the command line that runs a container and passes on its exit code."""
    return ENGINES[engine](container)


def variables(engine: str, container: Container) -> dict[str, str]:
    """Return the environment variables that the command line itself needs.

    For apptainer they carry the container's environment: an option would split a value at a comma.
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
    # As JSON: plain text that begins with a bracket would be parsed as JSON.
    return _run_command(
        ["podman", "run", "--rm", "--init", "--userns=keep-id"],
        container,
        lambda program: json.dumps([program]),
    )


def _docker(container: Container) -> list[str]:
    # https://docs.docker.com/reference/cli/docker/container/run/
    user = f"{container.uid}:{container.gid}"
    return _run_command(["docker", "run", "--rm", "--init", "--user", user], container, str)


def _run_command(words: Sequence[str], container: Container, entrypoint: Callable[[str], str]) -> list[str]:
    """Return the command line of podman or docker, which have most options in common."""
    return [
        *words,
        *(("--interactive",) if container.reads_stdin else ()),
        *(() if container.cwd is None else ("--workdir", container.cwd)),
        *(word for name, it in container.environment.items() for word in ("--env", f"{name}={it}")),
        *_mounts(container.binds),
        *(("--entrypoint", entrypoint(container.command[0])) if container.command else ()),
        container.image,
        *container.command[1:],
    ]


def _mounts(binds: Sequence[Bind]) -> list[str]:
    return [word for it in binds for word in ("--mount", _mount(it))]


def _mount(bind: Bind) -> str:
    r"""Return the argument for a mount in the common syntax of all engines: one line of CSV.

    >>> _mount(Bind("/a,b", "/in"))
    'type=bind,"source=/a,b",target=/in,readonly'
    """
    fields = ["type=bind", f"source={bind.source}", f"target={bind.target}"]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields if bind.is_writable else [*fields, "readonly"])
    return line.getvalue()


#: The engines by name, in order of preference: those that need no root service come first.
ENGINES: Mapping[str, Callable[[Container], list[str]]] = {
    "apptainer": _apptainer,
    "podman": _podman,
    "docker": _docker,
}
