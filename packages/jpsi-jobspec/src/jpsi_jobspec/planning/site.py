"""The facts about a target that a plan depends on: its queues, its machine, its options for requirements.

`commands.preparation` collects them before the planner runs.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import attrs
import platformdirs
import yaml

from jpsi import ConfigError, JobExecutor, JpsiError, Queue, System

from ..document import Shape
from .subsystems import Subsystems

T = TypeVar("T")

_NVIDIA = re.compile(r"nvidia[0-9]+")
# WSL has this one device for all GPUs.
_WINDOWS = "dxg"
_AMD = "sys/class/kfd/kfd/topology/nodes"


@attrs.frozen(slots=True, kw_only=True)
class Limit:
    """The limits of one queue; None is no limit, or none that is known."""

    queue: str
    nodes: int | None = None
    seconds: float | None = None

    def accepts(self, shape: Shape, duration: timedelta | None) -> bool:
        """Return True if the queue takes a job of this shape and duration; None is within any limit."""
        seconds = (duration or timedelta()).total_seconds()
        has_nodes = self.nodes is None or (shape.nodes or 1) <= self.nodes
        return has_nodes and (self.seconds is None or seconds <= self.seconds)

    def __str__(self) -> str:
        nodes = f"{self.queue} {'any' if self.nodes is None else self.nodes} nodes"
        return nodes if self.seconds is None else f"{nodes} for {timedelta(seconds=self.seconds)}"


@attrs.frozen(slots=True, kw_only=True)
class Machine:
    """The hardware of a machine; None is not known. Cores are not counted: processes share them."""

    gpus: int | None = None
    #: In bytes.
    memory: int | None = None

    def find_missing(self, shape: Shape) -> str | None:
        """Return what a shape asks for that the machine does not have, or None."""
        gpus = sum(it.gpus * it.slots for it in shape.pieces or (shape,))
        if self.gpus is not None and gpus > self.gpus:
            return f"this machine has {self.gpus} GPUs of {gpus}"
        if self.memory is not None and shape.memory > self.memory:
            return f"this machine has {self.memory / 2**30:.1f} GiB of memory of {shape.memory / 2**30:g}"
        return None


@attrs.frozen(slots=True, kw_only=True)
class Mapped:
    """The option of a batch system that expresses a requirement."""

    #: `<system>.<option>`, such as `slurm.constraint`.
    option: str
    #: Its value, in which `{match}` stands for the wanted value.
    value: str = "{match}"
    #: The separator of the values of several requirements; None if the option takes one only.
    join: str | None = None


@attrs.frozen(slots=True, kw_only=True)
class Site:
    """The facts about a target that a plan depends on."""

    #: The name of an executor, or of a configured target.
    target: str = "local"
    subsystems: Subsystems = attrs.field(factory=dict)
    #: True if a requirement of an unknown subsystem keeps a document from running.
    is_missing_error: bool = False
    #: True if there is one machine only, which then stands for all nodes that jobs ask for.
    is_one_machine: bool = False
    #: The hardware of that machine; None if it is not known, or the target is no single local machine.
    machine: Machine | None = None
    #: True if a job may have slots of several kinds; queried only if the document needs that.
    is_heterogeneous: bool = False
    #: True if the target is a remote host, which a URL leads to.
    is_remote: bool = False
    #: The directory of tasks without `cwd`, that of the document; None is the home directory where they run.
    directory: str | None = None
    #: The walltime of jobs without a duration on targets that need one, such as pilots; None on other
    #: targets.
    default_duration: timedelta | None = None
    #: The option of a batch system that expresses a requirement, by `subsystem.field`.
    constraints: Mapping[str, Mapped] = attrs.field(factory=dict)
    #: The limits of its queues; queried only if the document leaves a choice.
    limits: tuple[Limit, ...] = ()


def query_system(target: str, question: Callable[[System], T], default: T) -> T:
    """Return what the system of a target answers; the default if there is no such target, or no answer."""
    # a plan needs no batch system
    with contextlib.suppress(JpsiError), JobExecutor(target) as executor:
        return question(executor.system)
    return default


def queue_limits(system: System) -> tuple[Limit, ...]:
    """Return the limits of all open queues; none if the batch system reports none."""
    return tuple(queue_limit(it) for it in system.queues() if it.is_open is not False)


def queue_limit(queue: Queue) -> Limit:
    """Return the limits of a queue."""
    nodes = [it for it in (queue.max_nodes, queue.nodes) if it is not None]
    seconds = queue.max_walltime.total_seconds() if queue.max_walltime else None
    return Limit(queue=queue.name, nodes=min(nodes, default=None), seconds=seconds)


def explain_refusal(limits: Iterable[Limit], shape: Shape, duration: timedelta | None) -> str | None:
    """Return why no queue takes a job; None if one does, or no limits are known."""
    known = list(limits)
    if not known or any(it.accepts(shape, duration) for it in known):
        return None
    duration_text = f" for {duration}" if duration else ""
    return f"no queue takes {shape}{duration_text}: {', '.join(map(str, known))}"


def this_machine(root: Path = Path("/")) -> Machine:
    """Return the hardware of this machine, by the devices below a root directory."""
    memory = None
    with contextlib.suppress(ValueError, OSError):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(gpus=_gpus(root), memory=memory)


def _gpus(root: Path) -> int | None:
    devices = {it.name for it in root.glob("dev/*")}
    if _WINDOWS in devices or not Path("/proc").exists():
        return None
    amd = sum(_has_units(it) for it in root.glob(f"{_AMD}/*/properties"))
    return amd + sum(_NVIDIA.fullmatch(it) is not None for it in devices)


def _has_units(properties: Path) -> bool:
    """Return True if a node of AMD's topology computes; those of processors have no units of this kind."""
    try:
        words = properties.read_text(encoding="utf-8").split()
    except OSError:
        return False
    return "simd_count" in words and words[words.index("simd_count") + 1] != "0"


def configured_constraints(name: str) -> dict[str, Mapped]:
    """Return the configured options of an executor or target, by `subsystem.field`.

    The file `workflows.yaml`, beside the configuration of jpsi, has them; the user's file overrides the
    site's.

    Raises:
        ConfigError: a file has other contents.
    """
    found: dict[str, Mapped] = {}
    for folder in (platformdirs.site_config_path("jpsi"), platformdirs.user_config_path("jpsi")):
        path = folder / "workflows.yaml"
        for target, table in _tables(path):
            if target.lower() == name:
                location = f"{path}: constraints.{target}"
                found |= {key: _parse_option(it, f"{location}.{key}") for key, it in table.items()}
    return found


def _tables(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the tables of a file, by the names of their executors or targets."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise ConfigError(f"{path} cannot be read: {e}", e) from e
    tables = content.get("constraints") if isinstance(content, dict) else None
    if content and (not isinstance(tables, dict) or content.keys() != {"constraints"}):
        msg = f"{path} must have the key `constraints` alone, with a table for each executor or target"
        raise ConfigError(msg)
    for name, table in (tables or {}).items():
        if not isinstance(table, dict):
            msg = f"{path}: constraints.{name} must be a mapping; write `subsystem.field: system.option`"
            raise ConfigError(msg)
        yield str(name), table


def _parse_option(content: object, location: str) -> Mapped:
    fields = {"option": content} if isinstance(content, str) else content
    if isinstance(fields, dict) and all(isinstance(it, str) for it in fields.values()):
        with contextlib.suppress(TypeError):
            return Mapped(**fields)
    msg = f"{location} must be an option such as slurm.constraint, or have option, value and join"
    raise ConfigError(msg)
