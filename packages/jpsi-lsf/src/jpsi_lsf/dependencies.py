"""What a job says to LSF of the jobs that it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jpsi.plugin import Dependency, DependencyKind, JobSpec, custom_options, dependencies

from .ids import is_id

# bsub of LSF 10.1, -w: dependency conditions
_CONDITIONS: Mapping[DependencyKind, str] = {
    DependencyKind.OK: "done",
    DependencyKind.ANY: "ended",
    DependencyKind.NOTOK: "exit",
}
#: The kinds that LSF knows.
KINDS = frozenset(_CONDITIONS)


def dependency_options(after: Iterable[Dependency]) -> dict[str, str | None]:
    """The options of bsub for these dependencies; all of them must be satisfied."""
    conditions = [f"{_CONDITIONS[dependency.kind]}({dependency.native_id})" for dependency in after]
    if not conditions:
        return {}
    # Otherwise a job whose condition cannot be satisfied any more stays pending for ever.
    return {"w": " && ".join(conditions), "ti": None}


def dependency_problems(spec: JobSpec) -> Iterator[str]:
    """Why LSF cannot be told of the jobs that a job waits for."""
    after = dependencies(spec)
    for native_id in [it.native_id for it in after if it.native_id is not None]:
        if not is_id(native_id):
            yield f"attributes.after: {native_id!r} is no job id of LSF's"
    if after and "w" in custom_options(spec, "lsf"):
        yield "attributes.after and the custom attribute lsf.w cannot be given both"
