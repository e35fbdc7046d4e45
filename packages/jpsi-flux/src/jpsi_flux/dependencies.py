"""What a job says to Flux of the jobs that it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jpsi.plugin import Dependency, DependencyKind, JobSpec, dependencies

from .ids import decimal

# flux-submit(1): what stands before the id, in the section DEPENDENCIES
_WORDS: Mapping[DependencyKind, str] = {
    DependencyKind.OK: "afterok",
    DependencyKind.ANY: "afterany",
    DependencyKind.NOTOK: "afternotok",
}
#: The kinds that Flux knows.
KINDS = frozenset(_WORDS)


def dependency_options(after: Iterable[Dependency]) -> Iterator[tuple[str, str | None]]:
    """The options for these dependencies; all of them must be satisfied."""
    for dependency in after:
        yield "dependency", f"{_WORDS[dependency.kind]}:{dependency.native_id}"


def dependency_problems(spec: JobSpec) -> Iterator[str]:
    """Why Flux cannot be told of the jobs that a job waits for."""
    for native_id in [it.native_id for it in dependencies(spec) if it.native_id is not None]:
        try:
            decimal(native_id)
        except ValueError as e:
            yield f"attributes.after: {e}"
