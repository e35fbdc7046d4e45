"""The whole of what a request says, as a value and as a document: what is computed, where, on what terms."""

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
    """Whether a request may be satisfied by an execution that is there, or by a new one."""

    #: By one that is there, else by a new one.
    PREFER = "prefer"
    #: By a new one alone.
    NEVER = "never"
    #: By one that is there alone.
    ONLY = "only"


def _tuples(filters: Any) -> Any:  # noqa: ANN401  what is wrong is found by `problems`
    if not isinstance(filters, list | tuple):
        return filters
    return tuple(tuple(it) if isinstance(it, list) else it for it in filters)


def _filters(filters: Any) -> Any:  # noqa: ANN401  as above
    """Filters in one form: one may stand by itself, and YAML reads a time as one."""
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
class Wish:
    """What somebody wants to know the outcome of, and on what terms."""

    computation: Computation
    placement: Placement = attrs.field(factory=Placement)
    #: What must hold where it runs or ran: true, false, a value, or [least, most] with null for no end.
    runtime_constraints: Mapping[str, Any] = attrs.field(factory=dict)
    reuse: Reuse = Reuse.PREFER
    #: The exit codes that count as success; with any other the execution has failed.
    success_exit_codes: tuple[int, ...] = attrs.field(default=(0,), converter=_sorted)
    #: Whether an execution that failed satisfies the request, too.
    accepts_failed: bool = False
    #: Seconds since its end after which an execution is too old; None is never.
    max_age: float | None = None
    #: The requests that must have ended well before.
    after: tuple[str, ...] = attrs.field(default=(), converter=_tuples)
    #: What must hold of the execution: `[attribute, operator, value]`, or several of that.
    filters: Any = attrs.field(default=(), converter=_filters)
    #: How many jobs may be tried, where what failed was not the computation.
    attempts: int = 3

    @property
    def predecessors(self) -> tuple[str, ...]:
        """The requests that it waits for: those it names, and those whose outputs are mounted."""
        mounted = (it.request for it in self.computation.mounts.values() if isinstance(it, Output))
        return tuple(dict.fromkeys([*self.after, *mounted]))

    @property
    def requested(self) -> Placement:
        """What a job is submitted with: the placement, and what the constraints ask for besides."""
        wanted, placement = self.runtime_constraints, self.placement
        memory, gpus = placement.memory, placement.gpus
        if memory is None:
            memory = runtime.memory_of(wanted.get("ram"))
        if gpus is None:
            gpus = runtime.count_of(wanted.get("gpus"), self._processes) // self._processes or None
        return attrs.evolve(placement, memory=memory, gpus=gpus)

    @property
    def recorded(self) -> dict[str, Any]:
        """What is recorded of a new execution, for constraints to be checked against."""
        requested = self.requested
        gpus = requested.gpus
        found = {
            "vcpus": self._vcpus,
            "ram": requested.memory,
            "gpus": None if gpus is None else gpus * self._processes,
            # the fingerprint has its digest alone
            "container_image": self.computation.container_image,
            "tmp": self.capacities or None,
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def capacities(self) -> dict[str, int]:
        """The bytes that must fit into temporary directories, by target, where that is said."""
        mounts = self.computation.mounts.items()
        return {name: it.capacity for name, it in mounts if isinstance(it, Tmp) and it.capacity is not None}

    @property
    def _processes(self) -> int:
        """How many there are: one where the number means nothing."""
        return 1 if self.computation.topology is Topology.ANY else self.computation.processes

    @property
    def _vcpus(self) -> int:
        wanted, given = self.runtime_constraints.get("vcpus"), self.computation.vcpus
        is_open = self.computation.topology is Topology.ANY and wanted is not None
        if is_open and any(runtime.unmet_constraints({"vcpus": wanted}, {"vcpus": given})):
            return max(1, runtime.count_of(wanted))
        return given


def problems(wish: Wish) -> list[str]:
    """Everything that is wrong with a wish by itself."""
    found = [*computations.problems(wish.computation), *placements.problems(wish.placement)]
    wrong = list(_constraints(wish.runtime_constraints))
    found += [*wrong, *execution_filters.problems(wish.filters)]
    if not found and wish.reuse is not Reuse.ONLY:
        found += [f"runtime_constraints: of a new execution {it}" for it in _unmet(wish)]
    after: Any = wish.after  # not yet checked
    if not isinstance(after, tuple) or not all(isinstance(it, str) for it in after):
        found.append(f"after must be a list of requests, not {after!r}")
    codes: Any = wish.success_exit_codes  # not yet checked
    if not isinstance(codes, tuple) or not codes or not all(type(it) is int and it >= 0 for it in codes):
        found.append(f"success_exit_codes must be a list of exit codes, not {codes!r}")
    if wish.max_age is not None and (
        isinstance(wish.max_age, bool) or not isinstance(wish.max_age, int | float)
    ):
        found.append(f"max_age must be a number of seconds, not {wish.max_age!r}")
    if type(wish.attempts) is not int or wish.attempts < 1:
        found.append(f"attempts must be a whole number above 0, not {wish.attempts!r}")
    if not found:
        found += _unsayable(wish)
    return found


def _unsayable(wish: Wish) -> Iterator[str]:
    """What no document could say, such as text that is not Unicode."""
    try:
        canonical(write_wish(wish))
    except ValueError as e:
        yield str(e)


def _constraints(constraints: Any) -> Iterator[str]:  # noqa: ANN401  not yet checked
    if isinstance(constraints, Mapping):
        yield from runtime.problems(constraints)
    else:
        yield f"runtime_constraints must be a mapping, not {constraints!r}"


def _unmet(wish: Wish) -> Iterator[str]:
    return runtime.unmet_constraints(wish.runtime_constraints, wish.recorded)


def with_absolute_urls(wish: Wish) -> Wish:
    """A wish in which the paths of repositories mean the same wherever it is read."""
    mounts = {
        target: attrs.evolve(it, url=absolute_url(it.url))
        if isinstance(it, GitTree) and isinstance(it.url, str) and it.url
        else it
        for target, it in wish.computation.mounts.items()
    }
    if mounts == wish.computation.mounts:
        return wish
    return attrs.evolve(wish, computation=attrs.evolve(wish.computation, mounts=mounts))


_COMPUTATION = {it.name for it in attrs.fields(Computation)}
_PLACEMENT = {it.name for it in attrs.fields(Placement)}
_TERMS = {
    *("runtime_constraints", "reuse", "success_exit_codes", "accepts_failed", "max_age", "after", "filters"),
    "attempts",
}
_ENUMS = {"topology": Topology, "purity": Purity, "reuse": Reuse}


def read_wish(document: Any) -> Wish:  # noqa: ANN401  whatever a file holds
    """The wish that a document describes.

    Raises:
        InvalidRequestError: it describes none; everything that is wrong is named.
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
    wish = Wish(
        computation=Computation(**{key: it for key, it in given.items() if key in _COMPUTATION}),
        placement=Placement(**placed),
        **{key: it for key, it in given.items() if key in _TERMS},
    )
    check_wish(wish)
    return wish


def _missing(given: Mapping[str, Any]) -> Iterator[str]:
    """What a document does not say, and has to."""
    if given.get("container_image") is None:
        if "command" not in given:
            yield "command is missing"
    elif isinstance(given.get("cwd"), str) and not given["cwd"].startswith("/"):
        yield "cwd: with a container image it is absolute, or left out, which is that of the image"


def check_wish(wish: Wish) -> None:
    """Raise `InvalidRequestError` if anything is wrong with a wish by itself."""
    if found := problems(wish):
        raise InvalidRequestError.of(found)


def _member(key: Any, value: Any, found: list[str]) -> Any:  # noqa: ANN401  whatever a file holds
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


def write_wish(wish: Wish) -> dict[str, Any]:
    """The document of a wish, without what needs not be said."""
    terms = _written(wish, _TERMS)
    placed = _written(wish.placement, _PLACEMENT)
    document = _written(wish.computation, _COMPUTATION)
    if wish.computation.mounts:
        document["mounts"] = {target: write_mount(it) for target, it in wish.computation.mounts.items()}
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
