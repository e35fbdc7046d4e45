"""The computation of a request: everything that its result depends on, as the user wrote it.

Two requests with equal computations share a result. `reuse` resolves its names and branches, and writes its
canonical key.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from . import mounts
from .field_checks import FieldChecks, are_texts, as_place, as_tuple, field_problems, is_count
from .mounts import Blob, Collection, CollectionFile, File, GitTree, Json, Mount, Output, Text, Tmp
from .paths import is_inside, place, working_place


class Purity(enum.Enum):
    """The degree to which a computation declares its dependencies."""

    #: All dependencies are declared: the job inherits no environment variables.
    STRICT = "strict"
    #: Only declared dependencies count for reuse, but the job inherits the environment as well.
    DECLARED = "declared"
    #: Too few are declared for the result to be reused.
    OFF = "off"


class Topology(enum.Enum):
    """The role of the numbers of processes and threads in a computation's identity."""

    EXACT = "exact"
    #: The numbers do not change the result.
    ANY = "any"


STDIN, STDOUT = "stdin", "stdout"

#: An immutable image reference: the name, and the digest of the manifest.
IMAGE = re.compile(r"[a-z0-9][\w.:/-]*@(sha256:[0-9a-f]{64})")


def _as_working_place(path: Any) -> Any:  # noqa: ANN401  any YAML value; `problems` checks it
    return as_place(path, working_place)


def _is_place(path: Any) -> bool:  # noqa: ANN401  as above
    try:
        return bool(place(path) == path)
    except (ValueError, AttributeError):
        return False


def _targets(mounts: Mapping[str, Mount]) -> Mapping[str, Mount]:
    return {it if it in {STDIN, STDOUT} else as_place(it): mount for it, mount in mounts.items()}


def _globs(globs: Any) -> Any:  # noqa: ANN401  as above
    texts = as_tuple(globs)
    return tuple(sorted(set(texts))) if are_texts(texts) else globs


@attrs.frozen(slots=True, kw_only=True)
class Computation:
    """A command and all its inputs. Paths are relative to the root of the job.

    In the command and in the environment, `${JPSI_ROOT}` is that root; in a container, paths are absolute.
    Two computations are equal if they mean the same, except for unresolved names such as that of a branch.
    """

    #: The program and its arguments; empty, with an image, means the command of the image.
    command: tuple[str, ...] = attrs.field(default=(), converter=as_tuple)
    #: The container image by name and digest; None runs without a container.
    container_image: str | None = None
    #: Variables to set; None unsets a variable.
    environment: Mapping[str, str | None] = attrs.field(factory=dict)
    #: The working directory, absolute or relative to the root; None, with an image, is that of the image.
    cwd: str | None = attrs.field(
        default=attrs.Factory(lambda self: "/" if self.container_image is None else None, takes_self=True),
        converter=_as_working_place,
    )
    #: The mounts by target: an absolute path, `stdin` or `stdout`.
    mounts: Mapping[str, Mount] = attrs.field(factory=dict, converter=_targets)
    #: The output: a file or directory that is stored after the job; a mount, or a path inside one.
    output_path: str | None = attrs.field(default=None, converter=as_place)
    #: `pathlib` patterns that select files of the output; none selects all.
    output_globs: tuple[str, ...] = attrs.field(default=(), converter=_globs)
    #: The number of processes, and of cores for each process.
    processes: int = 1
    threads: int = 1
    topology: Topology = Topology.EXACT
    purity: Purity = Purity.DECLARED

    @property
    def image_digest(self) -> str | None:
        """The digest of the image, which identifies it under any name; None without an image."""
        return None if self.container_image is None else self.container_image.rpartition("@")[2]

    @property
    def vcpus(self) -> int:
        """The number of cores of all processes."""
        return self.processes * self.threads


def problems(computation: Computation) -> list[str]:
    """Return every problem of a computation that can be found without the records."""
    found = [*_command(computation), *_environment(computation.environment), *_image(computation)]
    if not _is_place(computation.cwd) and not (computation.cwd is None and computation.container_image):
        found.append(f"cwd: {computation.cwd!r} is no place below the root")
    for target, mount in computation.mounts.items():
        found += [f"mounts: {target}: {it}" for it in (*_target(target, mount), *mounts.problems(mount))]
    if not found:
        found += [*_nesting(computation), *_stdout(computation), *_output(computation)]
        found += _true_paths(computation)
    return [*found, *field_problems(computation, _CHECKS)]


_CHECKS: FieldChecks = dict.fromkeys(("processes", "threads"), (is_count, "a whole number above 0"))


def _command(computation: Computation) -> Iterator[str]:
    command: Any = computation.command  # not yet checked
    if command == () and computation.container_image is not None:
        return
    if not command or not are_texts(command):
        yield f"command must be a list of texts, the program first, not {command!r}"
    elif not command[0]:
        yield "command names no program"
    elif any("\0" in it for it in command):
        yield "command holds a NUL"


def _environment(environment: Any) -> Iterator[str]:  # noqa: ANN401  not yet checked
    if not isinstance(environment, Mapping):
        yield f"environment must be a mapping, not {environment!r}"
        return
    for name, value in environment.items():
        if not isinstance(name, str) or not name or set("=\0") & set(name):
            yield f"environment: {name!r} cannot be the name of a variable"
        elif name.startswith("JPSI_"):
            yield f"environment: {name} is a variable of jpsi's own"
        elif value is not None and (not isinstance(value, str) or "\0" in value):
            yield f"environment: {name} must be text without a NUL, not {value!r}"


def _image(computation: Computation) -> Iterator[str]:
    image: Any = computation.container_image  # not yet checked
    if image is None:
        return
    if not isinstance(image, str) or not IMAGE.fullmatch(image):
        needed = "NAME@sha256: and the digest of the image, as what a tag stands for changes"
        yield f"container_image is {needed}; not {image!r}"
    environment: Any = computation.environment  # not yet checked
    if isinstance(environment, Mapping) and None in environment.values():
        yield "environment: in a container no variable can be unset"


_AS_STDIN = (Blob, CollectionFile, Output, Text, Json, GitTree)


def _target(target: Any, mount: Mount) -> Iterator[str]:  # noqa: ANN401  not yet checked
    if target == STDIN:
        if not isinstance(mount, _AS_STDIN):
            yield f"a {mount.kind} cannot be standard input"
    elif target == STDOUT:
        if not isinstance(mount, File):
            yield f"standard output goes to a file, not to a {mount.kind}"
    elif isinstance(mount, File):
        yield "a file is where standard output goes; keep one of yours with `jpsi request put`"
    elif not _is_place(target):
        yield "is neither an absolute path nor stdin or stdout"
    elif target == "/":
        yield "the root itself is no place for a mount"


def _placed(computation: Computation) -> dict[str, Mount]:
    return {target: it for target, it in computation.mounts.items() if target not in {STDIN, STDOUT}}


def _nesting(computation: Computation) -> Iterator[str]:
    targets = sorted(_placed(computation))
    for outer in targets:
        for inner in targets:
            if inner != outer and is_inside(inner, outer):
                yield f"mounts: {inner} lies inside another mount, {outer}"


def can_write(mount: Mount) -> bool:
    """Return True if the job may write to a mount."""
    return isinstance(mount, Tmp) or (isinstance(mount, Collection) and mount.writable is not False)


def _stdout(computation: Computation) -> Iterator[str]:
    mount = computation.mounts.get(STDOUT)
    if isinstance(mount, File):
        outer = {target: it for target, it in _placed(computation).items() if is_inside(mount.path, target)}
        if not any(map(can_write, outer.values())):
            yield f"mounts: stdout: {mount.path} is in no mount that can be written to"


def _output(computation: Computation) -> Iterator[str]:
    path = computation.output_path
    globs: Any = computation.output_globs  # not yet checked
    if not are_texts(globs) or not all(_is_glob(it) for it in globs):
        yield f"output_globs must be a list of relative patterns, not {globs!r}"
    if path is None:
        if globs:
            yield "output_globs choose of what is at output_path, which is not given"
    elif not any(is_inside(path, target) for target in _placed(computation)):
        yield f"output_path: {path} is no mount, and in none"


def _true_paths(computation: Computation) -> Iterator[str]:
    if computation.container_image is not None:
        return
    # Without a container, the root of the job is not the root of the file system.
    words = [("command", it) for it in computation.command]
    words += [(f"environment: {name}", it) for name, it in computation.environment.items() if it is not None]
    for where, word in words:
        for target in _placed(computation):
            if is_inside(word, target):
                yield f"{where}: {word} is a place below the root of the job; write ${{JPSI_ROOT}}{word}"


def _is_glob(pattern: str) -> bool:
    return pattern != "" and not pattern.startswith("/") and ".." not in pattern.split("/")
