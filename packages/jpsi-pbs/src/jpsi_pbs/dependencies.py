"""What a job says of the jobs that it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jpsi.plugin import Dependency, DependencyKind, JobSpec, custom_options, dependencies

from .ids import is_id

# qsub(1B), -W depend=
_WORDS: Mapping[DependencyKind, str] = {
    DependencyKind.OK: "afterok",
    DependencyKind.ANY: "afterany",
    DependencyKind.NOTOK: "afternotok",
}
#: The kinds that PBS and Torque know.
KINDS = frozenset(_WORDS)


def dependency_options(after: Iterable[Dependency]) -> dict[str, str | None]:
    """The option of qsub for these dependencies; all of them must be satisfied."""
    found: dict[str, list[str]] = {}
    for dependency in after:
        found.setdefault(_WORDS[dependency.kind], []).append(dependency.native_id or "")
    # each kind once: a second list of one kind replaces the first
    words = [":".join([word, *native_ids]) for word, native_ids in found.items()]
    return {"-W depend": ",".join(words)} if words else {}


def dependency_problems(spec: JobSpec, system: str) -> Iterator[str]:
    """Why the batch system cannot be told of the jobs that a job waits for."""
    after = dependencies(spec)
    for native_id in [it.native_id for it in after if it.native_id is not None]:
        if not is_id(native_id):
            yield f"attributes.after: {native_id!r} is no job id of {system}'s"
    if after and "W.depend" in custom_options(spec, system):
        yield f"attributes.after and the custom attribute {system}.W.depend cannot be given both"
