"""Reads, checks and writes the request spec: what to compute, where, and on what terms.

It is the document that users write in YAML or JSON, and that requests hold.
"""

from __future__ import annotations

import difflib
import enum
import math
import warnings
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import attrs

from jpsi import DocumentWarning

from ..errors import InvalidRequestError
from . import computation as computations
from . import constraints as runtime
from . import filters as execution_filters
from . import placement as placements
from .canonical_json import canonical
from .computation import Computation, Purity, Topology
from .field_checks import FieldChecks, are_texts, as_tuple, field_problems, is_count, is_number, is_whole
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


def _filters(filters: Any) -> Any:  # noqa: ANN401  as above
    """Return filters as a list of tuples: a single filter becomes a list, and a YAML date becomes text."""
    is_one = isinstance(filters, list | tuple) and len(filters) > 1 and isinstance(filters[0], str)
    conditions = _timeless([filters] if is_one else filters)
    return tuple(map(as_tuple, conditions)) if isinstance(conditions, list) else conditions


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
    after: tuple[str, ...] = attrs.field(default=(), converter=as_tuple)
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
        if gpus is None:
            gpus = math.ceil(runtime.count_of(wanted.get("gpus")) / self._processes) or None
        if placement.memory_per_cpu is not None:
            memory = placement.memory_per_cpu * self._vcpus
        elif placement.memory_per_gpu is not None:
            memory = placement.memory_per_gpu * (gpus or 0) * self._processes
        elif memory is None:
            memory = runtime.memory_of(wanted.get("ram"))
        return attrs.evolve(placement, memory=memory, gpus=gpus, memory_per_cpu=None, memory_per_gpu=None)

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
        wanted, vcpus = self.runtime_constraints.get("vcpus"), self.computation.vcpus
        is_open = self.computation.topology is Topology.ANY and wanted is not None
        if is_open and any(runtime.unmet_constraints({"vcpus": wanted}, {"vcpus": vcpus})):
            return max(1, runtime.count_of(wanted))
        return vcpus


_CHECKS: FieldChecks = {
    "after": (are_texts, "a list of requests"),
    "success_exit_codes": (
        lambda it: isinstance(it, tuple) and it != () and all(map(is_whole, it)),
        "a list of exit codes",
    ),
    "max_age": (is_number, "a number of seconds"),
    "attempts": (is_count, "a whole number above 0"),
    "runtime_constraints": (lambda it: isinstance(it, Mapping), "a mapping"),
}


def problems(spec: RequestSpec) -> list[str]:
    """Return every problem of a request spec that can be found without the records."""
    found = [*computations.problems(spec.computation), *placements.problems(spec.placement)]
    constraints: Any = spec.runtime_constraints  # not yet checked
    found += runtime.problems(constraints) if isinstance(constraints, Mapping) else ()
    found += [*execution_filters.problems(spec.filters), *field_problems(spec, _CHECKS)]
    if found:
        return found
    if spec.placement.memory_per_gpu is not None and not spec.requested.gpus:
        found.append("placement: memory_per_gpu is given, and the job has no GPUs")
    if spec.reuse is not Reuse.ONLY:
        unmet = runtime.unmet_constraints(constraints, spec.recorded)
        found += [f"runtime_constraints: of a new execution {it}" for it in unmet]
    try:
        canonical(write_request_spec(spec))
    except ValueError as e:
        # Such as text that is not Unicode.
        found.append(str(e))
    return found


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
_TERMS = {it.name for it in attrs.fields(RequestSpec)} - {"computation", "placement"}
# Fields of jobs that no request has, and why.
_ELSEWHERE = {
    "container": "write container_image, beside the command",
    "environment_setup": "name a container_image, or set it up in the command: a result depends on it",
}
_ENUMS = {"topology": Topology, "purity": Purity, "reuse": Reuse}


def read_request_spec(document: Any, *, lenient: bool = False) -> RequestSpec:  # noqa: ANN401  any YAML
    """Return the request spec that a document describes.

    Args:
        document: the document; it is not changed.
        lenient: True to ignore unknown keys, each with a DocumentWarning.

    Raises:
        InvalidRequestError: the document is not valid; the message names every problem.
    """
    from jpsi import document_command  # noqa: PLC0415  a list of requests reads no document

    command = document_command(document)
    if command not in {None, "jpsi request run"}:
        raise InvalidRequestError.of([f"this is no request; `{command}` takes it"])
    if lenient and isinstance(document, Mapping):
        document = _without_unknown_keys(document)
    spec = recorded_request_spec(document)
    check_request_spec(spec)
    return spec


def recorded_request_spec(document: Any) -> RequestSpec:  # noqa: ANN401  as above
    """Return the request spec in a document of the records, which an earlier version may have checked less.

    Raises:
        InvalidRequestError: the document has no form of a request spec.
    """
    if not isinstance(document, Mapping):
        raise InvalidRequestError.of([f"a request is a mapping, not {document!r}"])
    found: list[str] = []
    members = {key: _member(key, value, found) for key, value in document.items()}
    placement = members.pop("placement", {})
    found += _missing(members)
    found += [sentence for _, sentence in _unknown_keys(document)]
    if found:
        raise InvalidRequestError.of(found)
    return RequestSpec(
        computation=Computation(**{key: it for key, it in members.items() if key in _COMPUTATION}),
        placement=Placement(**placement),
        **{key: it for key, it in members.items() if key in _TERMS},
    )


def _without_unknown_keys(document: Mapping[Any, Any]) -> Mapping[Any, Any]:
    known = dict(document)
    for path, sentence in _unknown_keys(document):
        warnings.warn(sentence, DocumentWarning, stacklevel=3)
        if len(path) == 1:
            del known[path[0]]
        else:
            known[path[0]] = {key: it for key, it in known[path[0]].items() if key != path[1]}
    return known


def _unknown_keys(document: Mapping[Any, Any]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield the path of each key of a document that a request does not have, with a sentence about it."""
    placement = document.get("placement")
    for prefix, content, known in (
        ((), document, _COMPUTATION | _TERMS | {"placement"}),
        (("placement",), placement if isinstance(placement, Mapping) else {}, _PLACEMENT),
    ):
        for key in content:
            if key not in known:
                path = (*prefix, key)
                closest = difflib.get_close_matches(str(key), sorted(known), n=1)
                hint = f"did you mean {closest[0]!r}?" if closest else f"known are {', '.join(sorted(known))}"
                says = f"is not a key of a request; {_ELSEWHERE.get(key, hint)}"
                yield path, f"{'.'.join(map(str, path))} {says}"


def _missing(members: Mapping[str, Any]) -> Iterator[str]:
    """Yield which required fields a document lacks."""
    if members.get("container_image") is None:
        if "command" not in members:
            yield "command is missing"
    elif isinstance(members.get("cwd"), str) and not members["cwd"].startswith("/"):
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


def requested_placement(spec: RequestSpec) -> Mapping[str, Any]:
    """Return the placement that a new execution for a request spec gets, as a document."""
    document = write_request_spec(attrs.evolve(spec, placement=spec.requested))
    placement: Mapping[str, Any] = document.get("placement", {})
    return placement


def _written(value: attrs.AttrsInstance, names: set[str]) -> dict[str, Any]:
    """Return the fields with these names, without those at their defaults."""
    document = {}
    for field in attrs.fields(type(value)):
        it = getattr(value, field.name)
        default: Any = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class, to mypy a function
            default = default.factory(*([value] if default.takes_self else []))
        if field.name in names and it != default:
            plain = it.value if isinstance(it, enum.Enum) else it
            document[field.name] = list(plain) if isinstance(plain, tuple) else plain
    return document
