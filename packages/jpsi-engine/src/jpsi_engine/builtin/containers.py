"""The container runtimes that jpsi knows: apptainer, singularity, podman, docker, and charliecloud's ch-run.

Each is a plugin of the group `jpsi.containers`, whose hook writes a command line. A job that inherits its
environment shares the network of the host as well, so that launchers reach its processes; another one sees
as little of the host as its runtime can hide.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from jpsi.plugin import Bind, Command, Container, hookimpl

_SCHEME = "docker://"
# files that apptainer and podman take without slashes behind the colon
_ARCHIVES = ("docker-archive:", "oci-archive:", "oci:")


@attrs.frozen
class Apptainer:
    """Apptainer, or Singularity, which has the same command line."""

    program: str

    @hookimpl
    def run_container(self, container: Container, command: Sequence[str], inherits: bool) -> Command:
        """See `ContainerHooks`; an option for variables would split a value at a comma."""
        # https://apptainer.org/docs/user/1.3/cli/apptainer_exec.html
        image = container.image
        if not (_is_file(image) or "://" in image or image.startswith(_ARCHIVES)):
            image = f"{_SCHEME}{image}"
        argv = [
            *(self.program, "exec" if command else "run"),
            *(() if inherits else ("--containall", "--no-home", "--writable-tmpfs")),
            *(("--nv",) if container.gpu else ()),
            *(() if container.directory is None else ("--pwd", container.directory)),
            *_mounts(container.binds),
            *(image, *command),
        ]
        prefix = f"{self.program.upper()}ENV_"
        return Command(argv, environment={f"{prefix}{name}": it for name, it in variables(container).items()})


@attrs.frozen
class Podman:
    """Podman."""

    @hookimpl
    def run_container(self, container: Container, command: Sequence[str], inherits: bool) -> Command:
        """See `ContainerHooks`."""
        # https://docs.podman.io/en/v4.9.3/markdown/podman-run.1.html
        if _is_file(container.image):
            raise ValueError(f"podman runs images by their names, not the file {container.image}")
        words = ["podman", "run", "--rm", "--init", "--userns=keep-id"]
        words += ["--network=host", "--env-host"] if inherits else []
        words += ["--device", "nvidia.com/gpu=all"] if container.gpu else []
        # As JSON: plain text that begins with a bracket would be parsed as JSON.
        return _run_command(words, container, command, lambda program: json.dumps([program]))


@attrs.frozen
class Docker:
    """Docker."""

    @hookimpl
    def run_container(
        self,
        container: Container,
        command: Sequence[str],
        inherits: bool,
        user: str,
    ) -> Command:
        """See `ContainerHooks`."""
        # https://docs.docker.com/reference/cli/docker/container/run/
        if _is_file(container.image) or container.image.startswith(_ARCHIVES):
            raise ValueError(f"docker runs images by their names, not the file {container.image}")
        words = ["docker", "run", "--rm", "--init", "--user", user]
        words += ["--network=host"] if inherits else []
        words += ["--gpus", "all"] if container.gpu else []
        return _run_command(words, container, command, str)


@attrs.frozen
class Charliecloud:
    """Charliecloud, whose program is ch-run."""

    @hookimpl
    def run_container(self, container: Container, command: Sequence[str], inherits: bool) -> Command:
        """See `ContainerHooks`."""
        # https://hpc.github.io/charliecloud/ch-run.html
        if container.image.endswith(".sif") or container.image.startswith(_ARCHIVES):
            raise ValueError(f"charliecloud runs directories and squash files, not {container.image}")
        if any(it.read_only for it in container.binds or ()):
            raise ValueError("charliecloud shows nothing read-only, as binds of the container ask for")
        if any(":" in path for it in container.binds or () for path in (it.source, it.target)):
            raise ValueError("charliecloud shows no file that has a colon in its path")
        if container.gpu or not command:
            raise ValueError("charliecloud shows no GPUs, and runs no command of an image")
        argv = [
            "ch-run",
            *(() if inherits else ("--private-tmp", "--unset-env=*")),
            "--env-no-expand",
            *(f"--set-env={name}={it}" for name, it in variables(container).items()),
            *(() if container.directory is None else (f"--cd={container.directory}",)),
            *(f"--bind={it.source}:{it.target}" for it in container.binds or ()),
            *(container.image.removeprefix(_SCHEME), "--", *command),
        ]
        return Command(argv)


def _run_command(
    words: Sequence[str], container: Container, command: Sequence[str], entrypoint: Callable[[str], str]
) -> Command:
    """Return the command line of podman or docker, which have most options in common."""
    job_id = variables(container).get("JPSI_JOB_ID")
    argv = [
        *(*words, "--interactive"),
        # a container whose client was killed goes on
        *(() if job_id is None else ("--label", f"jpsi.job={job_id}")),
        *(() if container.directory is None else ("--workdir", container.directory)),
        *(word for name, it in variables(container).items() for word in ("--env", f"{name}={it}")),
        *_mounts(container.binds),
        *(("--entrypoint", entrypoint(command[0])) if command else ()),
        *(container.image.removeprefix(_SCHEME), *command[1:]),
    ]
    return Command(argv)


def variables(container: Container) -> Mapping[str, str]:
    """Return the variables of a container; a variable without a value is left out."""
    return {name: it for name, it in (container.environment or {}).items() if it is not None}


def _is_file(image: str) -> bool:
    return image.startswith(("/", "./", "../", "${")) or image.endswith((".sif", ".sqfs"))


def _mounts(binds: Sequence[Bind] | None) -> Iterator[str]:
    for it in binds or ():
        yield from ("--mount", _mount(it))


def _mount(bind: Bind) -> str:
    r"""Return the argument for a mount in the common syntax of most runtimes: one line of CSV.

    >>> _mount(Bind("/a,b", "/in", read_only=True))
    'type=bind,"source=/a,b",target=/in,readonly'
    """
    fields = ["type=bind", f"source={bind.source}", f"target={bind.target}"]
    return ",".join(map(_csv, [*fields, "readonly"] if bind.read_only else fields))


def _csv(field: str) -> str:
    # the value of a reference may have a comma as well
    needs_quotes = any(it in field for it in ',"$ \t\r\n')
    return f'"{field.replace(chr(34), chr(34) * 2)}"' if needs_quotes else field


APPTAINER, SINGULARITY = Apptainer("apptainer"), Apptainer("singularity")
PODMAN, DOCKER, CHARLIECLOUD = Podman(), Docker(), Charliecloud()
