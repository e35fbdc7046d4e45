"""The spec of a job as psij has it, and its translation to the spec of jpsi."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any, TypeVar

import attrs

import jpsi

from . import first_node
from .converted import Converted
from .job_attributes import JobAttributes
from .paths import to_path
from .resource_spec import ResourceSpec, ResourceSpecV1
from .staging import StageIn, StageOut

T = TypeVar("T")
_Value = str | int | float | PurePath


def _environment(given: Mapping[str, _Value] | None) -> dict[str, str] | None:
    """Return variables whose values are text.

    Raises:
        TypeError: a name is no text, or a value is neither text, nor a number, nor a path.
    """
    if given is None:
        return None
    for name, value in given.items():
        if not isinstance(name, str):
            raise TypeError(f"environment has the name {name!r}, which must be text")
        if not isinstance(value, _Value):
            raise TypeError(f"environment[{name!r}] must be text, a number or a path, not {value!r}")
    return {name: str(value) for name, value in given.items()}


def _attributes(given: JobAttributes | None) -> JobAttributes:
    return JobAttributes() if given is None else given


@attrs.define(slots=False, init=False, eq=False)
class JobSpec:
    """A job's program, and everything about its execution. All arguments may be positional."""

    executable: str | None
    arguments: list[str] | None
    directory: Converted[Path | None, str | Path | None] = attrs.field(converter=to_path)
    inherit_environment: bool
    environment: Converted[dict[str, str] | None, Mapping[str, _Value] | None] = attrs.field(
        converter=_environment
    )
    stdin_path: Converted[Path | None, str | Path | None] = attrs.field(converter=to_path)
    stdout_path: Converted[Path | None, str | Path | None] = attrs.field(converter=to_path)
    stderr_path: Converted[Path | None, str | Path | None] = attrs.field(converter=to_path)
    resources: ResourceSpec | None
    #: Never None.
    attributes: Converted[JobAttributes, JobAttributes | None] = attrs.field(converter=_attributes)
    pre_launch: Converted[Path | None, str | Path | None] = attrs.field(converter=to_path)
    post_launch: Converted[Path | None, str | Path | None] = attrs.field(converter=to_path)
    launcher: str | None
    stage_in: Iterable[StageIn] | None
    stage_out: Iterable[StageOut] | None
    cleanup: Iterable[str | Path] | None
    cleanup_flags: jpsi.StageOutFlags

    def __init__(
        self,
        executable: str | None = None,
        arguments: list[str] | None = None,
        directory: str | Path | None = None,
        name: str | None = None,
        inherit_environment: bool = True,  # noqa: FBT001, FBT002  psij's may be positional
        environment: dict[str, Any] | None = None,
        stdin_path: str | Path | None = None,
        stdout_path: str | Path | None = None,
        stderr_path: str | Path | None = None,
        resources: ResourceSpec | None = None,
        attributes: JobAttributes | None = None,
        pre_launch: str | Path | None = None,
        post_launch: str | Path | None = None,
        launcher: str | None = None,
        stage_in: Iterable[StageIn] | None = None,
        stage_out: Iterable[StageOut] | None = None,
        cleanup: Iterable[str | Path] | None = None,
        cleanup_flags: jpsi.StageOutFlags = jpsi.StageOutFlags.ALWAYS,
    ) -> None:
        self._name = name
        self.executable = executable
        self.arguments = arguments
        self.directory = directory
        self.inherit_environment = inherit_environment
        self.environment = environment
        self.stdin_path = stdin_path
        self.stdout_path = stdout_path
        self.stderr_path = stderr_path
        self.resources = resources
        self.attributes = attributes
        self.pre_launch = pre_launch
        self.post_launch = post_launch
        self.launcher = launcher
        self.stage_in = stage_in
        self.stage_out = stage_out
        self.cleanup = cleanup
        self.cleanup_flags = cleanup_flags

    @property
    def name(self) -> str | None:
        """The name of the job; that of its program unless one is set."""
        return self.executable if self._name is None else self._name

    @name.setter
    def name(self, value: str | None) -> None:
        self._name = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobSpec) and vars(self) == vars(other)

    __hash__ = object.__hash__


#: The custom attributes of psij's executors begin with these, and those of jpsi's with the others.
_PREFIXES = {"pbs_classic": "torque", "pbspro": "pbs", "slurm_single": "slurm"}


def spec_for_jpsi(spec: JobSpec, executor: str) -> jpsi.JobSpec:
    """Return the spec with which jpsi does what psij-python would do with this one on an executor.

    Raises:
        InvalidJobException: the resources are of a class that jpsi does not have.
        TypeError: the environment has a name or value that psij-python refuses.
    """
    for part in (spec, spec.attributes, spec.resources):
        _warn_of_unknown_names(part)
    environment = _environment(spec.environment) or {}
    if spec.resources is not None and not isinstance(spec.resources, ResourceSpecV1):
        raise jpsi.InvalidJobException(f"resources must be a ResourceSpecV1, not {spec.resources!r}")
    # psij-python runs the processes of several nodes on this machine
    resources = None if spec.resources is None else spec.resources.for_jpsi(on_one_node=executor == "local")
    return jpsi.JobSpec(
        None if spec.executable is None else str(spec.executable),
        None if spec.arguments is None else [jpsi.escape(str(it)) for it in spec.arguments],
        # psij-python expands no references to variables
        environment={name: jpsi.escape(value) for name, value in environment.items()} or None,
        # the whole path can be longer than the names of a batch system
        name=PurePath(spec.name).name if spec._name is None and spec.name else spec.name,
        directory=None if spec.directory is None else _absolute(spec.directory),
        inherit_environment=spec.inherit_environment,
        stdin_path=spec.stdin_path,
        stdout_path=spec.stdout_path,
        stderr_path=spec.stderr_path,
        resources=resources,
        attributes=_attributes_for_jpsi(spec.attributes, executor),
        pre_launch=spec.pre_launch,
        post_launch=spec.post_launch,
        launcher=_launcher(spec.launcher, resources),
        stage_in=_list(jpsi.StageIn(it.source, it.target, it.mode) for it in spec.stage_in or ()),
        stage_out=_list(
            jpsi.StageOut(it.source, it.target, it.flags, it.mode) for it in spec.stage_out or ()
        ),
        cleanup=_list(Path(it) for it in spec.cleanup or ()),
        cleanup_flags=spec.cleanup_flags,
    )


def _launcher(name: str | None, resources: jpsi.ResourceSpecV1 | None) -> str:
    has_nodes = resources is not None and resources.computed_node_count > 1
    # with psij-python, a launcher of several processes is one that is named
    return first_node.NAME if name == "multiple" and has_nodes else name or "single"


def _absolute(directory: Path) -> Path:
    return directory if directory.parts[:1] == ("~",) else Path.cwd() / directory


def _list(items: Iterable[T]) -> list[T] | None:
    return list(items) or None


def _attributes_for_jpsi(attributes: JobAttributes, executor: str) -> jpsi.JobAttributes:
    custom = attributes.custom_attributes or {}
    # processes of this machine have no walltime with psij-python
    duration = None if executor == "local" else attributes.duration
    return jpsi.JobAttributes(
        duration=duration,
        queue_name=attributes.queue_name,
        account=attributes.account,
        reservation_id=attributes.reservation_id,
        # Open OnDemand gives an option without a value an empty one
        custom_attributes={_custom_name(name): it if it != "" else True for name, it in custom.items()}
        or None,
    )


def _custom_name(name: str) -> str:
    prefix, dot, option = name.partition(".")
    return f"{_PREFIXES.get(prefix, prefix)}{dot}{option}"


_warned: set[tuple[str, str]] = set()


def _warn_of_unknown_names(part: JobSpec | JobAttributes | ResourceSpec | None) -> None:
    """Warn once of each attribute that was assigned and that psij does not have; it has no effect."""
    kind = type(part)
    if part is None or not attrs.has(kind):
        return
    for name in vars(part).keys() - {field.name for field in attrs.fields(kind)} - {"_name"}:
        if (kind.__name__, name) not in _warned:
            _warned.add((kind.__name__, name))
            warnings.warn(f"{kind.__name__} has no attribute {name}, which has no effect", stacklevel=2)
