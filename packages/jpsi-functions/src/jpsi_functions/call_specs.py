"""Makes the specs of the jobs that make calls."""

from __future__ import annotations

import copy
import re
from datetime import timedelta
from pathlib import Path

import attrs

from jpsi import (
    Bind,
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    ResourceSpec,
    ResourceSpecV1,
    StageIn,
    StageOut,
    StageOutFlags,
    escape,
    parse_duration,
)

from .sessions import OUTPUTS, StoredCall

_SIZE = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?) ?(?P<unit>[KMGTP]?)(i?B)?", re.IGNORECASE)
#: The directory of calls on a remote host.
REMOTE = "~/.local/state/jpsi-functions"
_KEPT_FILES = StageOutFlags.ALWAYS | StageOutFlags.IF_PRESENT
# What every batch system takes for the name of a job.
_NO_NAME = re.compile(r"[^A-Za-z0-9_]+")
_NAME_LENGTH = 15
# The launcher that starts one process.
_SINGLE = "single"


@attrs.frozen(kw_only=True)
class CallSpec:
    """The parts of a spec that all jobs of an executor have in common."""

    template: JobSpec
    #: The interpreter that makes the calls.
    python: str
    #: True if the files travel to another host and back.
    is_remote: bool
    #: The working directory of the calls.
    directory: str

    def make(self, stored: StoredCall, function: str) -> JobSpec:
        """Return the spec of the job that makes these calls."""
        folder = f"{REMOTE}/{stored.folder.name}" if self.is_remote else str(stored.folder)
        name = self.template.name or _NO_NAME.sub("_", function).strip("_")[:_NAME_LENGTH] or "function"
        spec = attrs.evolve(self.template, executable=self.python, name=name)
        if not self.is_remote:
            spec.arguments = ["-u", escape(f"{folder}/worker.py"), escape(folder)]
            if spec.container is not None:
                binds = [*(spec.container.binds or ()), Bind(escape(folder))]
                spec.container = attrs.evolve(spec.container, binds=binds)
                # the job's directory is visible in the container, too
                spec.directory = Path(self.directory)
            return spec
        # relative to the directory, which the shell of that host has found
        spec.arguments = ["-u", f"{stored.folder.name}/worker.py", stored.folder.name]
        here = stored.folder
        spec.directory, spec.create_directory = Path(REMOTE), True
        spec.stage_in = [StageIn(str(here), Path(here.name)), *(self.template.stage_in or ())]
        spec.stage_out = [
            *(StageOut(Path(here.name, it), str(here / it), _KEPT_FILES) for it in OUTPUTS),
            *(self.template.stage_out or ()),
        ]
        spec.cleanup = [Path(here.name), *(self.template.cleanup or ())]
        return spec


def template(  # noqa: PLR0913  each by its name
    spec: JobSpec | None,
    *,
    attributes: JobAttributes | None,
    resources: ResourceSpec | None,
    cores: int | None,
    memory: int | str | None,
    gpus: int | None,
    walltime: timedelta | str | None,
) -> JobSpec:
    """Return a spec with these attributes and resources instead of those that it has.

    Raises:
        TypeError: the resources are of another kind.
        ValueError: its launcher would start several processes, each of which made the calls.
    """
    spec = attrs.evolve(spec or JobSpec())
    spec.attributes = attrs.evolve(attributes or spec.attributes)
    spec.resources = resources or spec.resources
    if walltime is not None:
        spec.attributes.duration = parse_duration(walltime) if isinstance(walltime, str) else walltime
    processes = _process_count(spec.resources)
    if processes > 1 and spec.launcher not in {None, _SINGLE}:
        msg = f"launcher {spec.launcher} would make each call in all {processes} processes; leave it out: "
        raise ValueError(f"{msg}one process makes the calls, and has the resources of all")
    spec.launcher = spec.launcher or _SINGLE
    if (cores, memory, gpus) == (None, None, None):
        return spec
    if spec.resources is not None and not isinstance(spec.resources, ResourceSpecV1):
        msg = "cores, memory and gpus are those of ResourceSpecV1; give other resources without them"
        raise TypeError(msg)
    given = {
        "cpu_cores_per_process": cores,
        "memory": parse_memory(memory) if isinstance(memory, str) else memory,
        "gpu_cores_per_process": gpus,
    }
    spec.resources = copy.copy(spec.resources or ResourceSpecV1())
    for name, value in given.items():
        if value is not None:
            setattr(spec.resources, name, value)
    return spec


def _process_count(resources: object) -> int:
    parts = resources.components if isinstance(resources, HeterogeneousResources) else [resources]
    return sum(it.computed_process_count for it in parts if isinstance(it, ResourceSpecV1))


def parse_memory(text: str) -> int:
    """Return a number of bytes; K, M, G, T and P are powers of 1024.

    >>> parse_memory("8GiB") == parse_memory("8 G") == parse_memory("8192MB") == 8 * 1024**3
    True
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 8GiB, 512M or 1073741824 (bytes)")
    power = " KMGTP".index(match["unit"].upper() or " ")
    return round(float(match["number"]) * (1 << 10 * power))
