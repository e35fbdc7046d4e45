"""The request spec as a value and as a document: what to compute, where, and on what terms."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import attrs

from ..errors import InvalidRequestError
from . import computation as computations
from . import constraints as runtime
from . import filters as execution_filters
from . import placement as placements
from .canonical_json import canonical
from .computation import Computation, Purity, Topology
from .mounts import GitTree, Output, Tmp, absolute_url, read_mount, write_mount
from .placement import Placement


class Reuse(enum.Enum):
    """The policy for a request: reuse an execution, or start a new one."""

    #: Reuse an execution if one matches, else start a new one.
    PREFER = "prefer"
    #: Always start a new one.
    NEVER = "never"
    #: Reuse an execution, and start none.
    ONLY = "only"


def _tuples(filters: Any) -> Any:  # noqa: ANN401  any YAML value; `problems` checks it
    if not isinstance(filters, list | tuple):
        return filters
    return tuple(tuple(it) if isinstance(it, list) else it for it in filters)


def _filters(filters: Any) -> Any:  # noqa: ANN401  as above
    """Return filters as a list of tuples: a single filter becomes a list, and a YAML date becomes text."""
    is_one = isinstance(filters, list | tuple) and len(filters) > 1 and isinstance(filters[0], str)
    return _tuples(_timeless([filters] if is_one else filters))


def _timeless(value: Any) -> Any:  # noqa: ANN401  as above
    if isinstance(value, list | tuple):
        return [_timeless(it) for it in value]
    return value.isoformat() if isinstance(value, date) else value


def _sorted(codes: Any) -> Any:  # noqa: ANN401  as above
    is_whole = isinstance(codes, list | tuple) and all(type(it) is int for it in codes)
    return tuple(sorted(set(codes))) if is_whole else codes


@attrs.frozen(slots=True, kw_only=True)
class RequestSpec:
    """A request spec: a computation, and the terms on which an execution of it is reused or started."""

    computation: Computation
    placement: Placement = attrs.field(factory=Placement)
    #: Limits on recorded resources: true, false, a value, or [least, most] with null for an open end.
    runtime_constraints: Mapping[str, Any] = attrs.field(factory=dict)
    reuse: Reuse = Reuse.PREFER
    #: The exit codes that mean success; any other means that the execution failed.
    success_exit_codes: tuple[int, ...] = attrs.field(default=(0,), converter=_sorted)
    #: True if a failed execution satisfies the request, too.
    accepts_failed: bool = False
    #: The largest age of a reused execution, in seconds since its end; None is no limit.
    max_age: float | None = None
    #: The requests that must have succeeded before.
    after: tuple[str, ...] = attrs.field(default=(), converter=_tuples)
    #: Conditions on a reused execution: `[attribute, operator, value]`, or a list of these.
    filters: Any = attrs.field(default=(), converter=_filters)
    #: The largest number of attempts: a job is retried after a failure that was not the computation's.
    attempts: int = 3

    @property
    def predecessors(self) -> tuple[str, ...]:
        """The requests that must succeed before: those in `after`, and those whose outputs are mounted."""
        mounted = (it.request for it in self.computation.mounts.values() if isinstance(it, Output))
        return tuple(dict.fromkeys([*self.after, *mounted]))

    @property
    def requested(self) -> Placement:
        """The resources to submit a job with: the placement, completed from the runtime constraints."""
        wanted, placement = self.runtime_constraints, self.placement
        memory, gpus = placement.memory, placement.gpus
        if memory is None:
            memory = runtime.memory_of(wanted.get("ram"))
        if gpus is None:
            gpus = runtime.count_of(wanted.get("gpus"), self._processes) // self._processes or None
        return attrs.evolve(placement, memory=memory, gpus=gpus)

    @property
    def recorded(self) -> dict[str, Any]:
        """The resources recorded with a new execution, against which later constraints are checked."""
        requested = self.requested
        gpus = requested.gpus
        found = {
            "vcpus": self._vcpus,
            "ram": requested.memory,
            "gpus": None if gpus is None else gpus * self._processes,
            # The fingerprint contains the digest only, not the name.
            "container_image": self.computation.container_image,
            "tmp": self.capacities or None,
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def capacities(self) -> dict[str, int]:
        """The required capacities of temporary directories in bytes, by target, where the spec has one."""
        mounts = self.computation.mounts.items()
        return {name: it.capacity for name, it in mounts if isinstance(it, Tmp) and it.capacity is not None}

    @property
    def _processes(self) -> int:
        """The number of processes; 1 if the topology is `any`."""
        return 1 if self.computation.topology is Topology.ANY else self.computation.processes

    @property
    def _vcpus(self) -> int:
        wanted, given = self.runtime_constraints.get("vcpus"), self.computation.vcpus
        is_open = self.computation.topology is Topology.ANY and wanted is not None
        if is_open and any(runtime.unmet_constraints({"vcpus": wanted}, {"vcpus": given})):
            return max(1, runtime.count_of(wanted))
        return given


def problems(spec: RequestSpec) -> list[str]:
    """Return every problem of a request spec that can be found without the records."""
    found = [*computations.problems(spec.computation), *placements.problems(spec.placement)]
    wrong = list(_constraints(spec.runtime_constraints))
    found += [*wrong, *execution_filters.problems(spec.filters)]
    if not found and spec.reuse is not Reuse.ONLY:
        found += [f"runtime_constraints: of a new execution {it}" for it in _unmet(spec)]
    after: Any = spec.after  # not yet checked
    if not isinstance(after, tuple) or not all(isinstance(it, str) for it in after):
        found.append(f"after must be a list of requests, not {after!r}")
    codes: Any = spec.success_exit_codes  # not yet checked
    if not isinstance(codes, tuple) or not codes or not all(type(it) is int and it >= 0 for it in codes):
        found.append(f"success_exit_codes must be a list of exit codes, not {codes!r}")
    if spec.max_age is not None and (
        isinstance(spec.max_age, bool) or not isinstance(spec.max_age, int | float)
    ):
        found.append(f"max_age must be a number of seconds, not {spec.max_age!r}")
    if type(spec.attempts) is not int or spec.attempts < 1:
        found.append(f"attempts must be a whole number above 0, not {spec.attempts!r}")
    if not found:
        found += _unsayable(spec)
    return found


def _unsayable(spec: RequestSpec) -> Iterator[str]:
    """Yield why a request spec cannot be written as a document, such as text that is not Unicode."""
    try:
        canonical(write_request_spec(spec))
    except ValueError as e:
        yield str(e)


def _constraints(constraints: Any) -> Iterator[str]:  # noqa: ANN401  not yet checked
    if isinstance(constraints, Mapping):
        yield from runtime.problems(constraints)
    else:
        yield f"runtime_constraints must be a mapping, not {constraints!r}"


def _unmet(spec: RequestSpec) -> Iterator[str]:
    return runtime.unmet_constraints(spec.runtime_constraints, spec.recorded)


def with_absolute_urls(spec: RequestSpec) -> RequestSpec:
    """Return the request spec with absolute paths of repositories, valid in any working directory."""
    mounts = {
        target: attrs.evolve(it, url=absolute_url(it.url))
        if isinstance(it, GitTree) and isinstance(it.url, str) and it.url
        else it
        for target, it in spec.computation.mounts.items()
    }
    if mounts == spec.computation.mounts:
        return spec
    return attrs.evolve(spec, computation=attrs.evolve(spec.computation, mounts=mounts))


_COMPUTATION = {it.name for it in attrs.fields(Computation)}
_PLACEMENT = {it.name for it in attrs.fields(Placement)}
_TERMS = {
    *("runtime_constraints", "reuse", "success_exit_codes", "accepts_failed", "max_age", "after", "filters"),
    "attempts",
}
_ENUMS = {"topology": Topology, "purity": Purity, "reuse": Reuse}


def read_request_spec(document: Any) -> RequestSpec:  # noqa: ANN401  any YAML value
    """Return the request spec that a document describes.

    Raises:
        InvalidRequestError: the document is not valid; the message names every problem.
    """
    if not isinstance(document, Mapping):
        raise InvalidRequestError.of([f"a request is a mapping, not {document!r}"])
    found: list[str] = []
    given = {key: _member(key, value, found) for key, value in document.items()}
    placed = given.pop("placement", {})
    found += _missing(given)
    unknown = [key for key in given if key not in _COMPUTATION | _TERMS]
    unknown += [f"placement.{key}" for key in placed if key not in _PLACEMENT]
    found += [f"{key!r} is nothing that a request says" for key in unknown]
    if found:
        raise InvalidRequestError.of(found)
    spec = RequestSpec(
        computation=Computation(**{key: it for key, it in given.items() if key in _COMPUTATION}),
        placement=Placement(**placed),
        **{key: it for key, it in given.items() if key in _TERMS},
    )
    check_request_spec(spec)
    return spec


def _missing(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield which required fields a document lacks."""
    if given.get("container_image") is None:
        if "command" not in given:
            yield "command is missing"
    elif isinstance(given.get("cwd"), str) and not given["cwd"].startswith("/"):
        yield "cwd: with a container image it is absolute, or left out, which is that of the image"


def check_request_spec(spec: RequestSpec) -> None:
    """Raise `InvalidRequestError` if a request spec is invalid."""
    if found := problems(spec):
        raise InvalidRequestError.of(found)


def _member(key: Any, value: Any, found: list[str]) -> Any:  # noqa: ANN401  any YAML value
    if key in _ENUMS:
        try:
            return _ENUMS[key](value)
        except ValueError:
            found.append(f"{key} must be one of {', '.join(it.value for it in _ENUMS[key])}, not {value!r}")
    elif key in {"mounts", "placement"} and not isinstance(value, Mapping):
        found.append(f"{key} must be a mapping, not {value!r}")
        return {}
    elif key == "mounts":
        return _mounts(value, found)
    return value


def _mounts(value: Mapping[Any, Any], found: list[str]) -> dict[Any, Any]:
    mounts = {}
    for target, document in value.items():
        try:
            mounts[target] = read_mount(document)
        except ValueError as e:
            found.append(f"mounts: {target} {e}")
    return mounts


def write_request_spec(spec: RequestSpec) -> dict[str, Any]:
    """Return the document of a request spec, without fields at their defaults."""
    terms = _written(spec, _TERMS)
    placed = _written(spec.placement, _PLACEMENT)
    document = _written(spec.computation, _COMPUTATION)
    if spec.computation.mounts:
        document["mounts"] = {target: write_mount(it) for target, it in spec.computation.mounts.items()}
    return {**document, **terms, **({"placement": placed} if placed else {})}


def _written(value: attrs.AttrsInstance, names: set[str]) -> dict[str, Any]:
    document = {}
    for field in attrs.fields(type(value)):
        it = getattr(value, field.name)
        if field.name in names and it != _default(field, value):
            document[field.name] = (
                it.value if isinstance(it, enum.Enum) else list(it) if isinstance(it, tuple) else it
            )
    return document


def _default(field: attrs.Attribute[Any], value: attrs.AttrsInstance) -> Any:  # noqa: ANN401  of any type
    default: Any = field.default
    if not isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class, to mypy a function
        return default
    return default.factory(value) if default.takes_self else default.factory()
