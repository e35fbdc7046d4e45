"""What a job says to Slurm of the jobs that it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jpsi.plugin import Dependency, DependencyKind, JobSpec, custom_options, dependencies

from .ids import is_id

# sbatch(1), OPTIONS: --dependency
_WORDS: Mapping[DependencyKind, str] = {
    DependencyKind.OK: "afterok",
    DependencyKind.ANY: "afterany",
    DependencyKind.NOTOK: "afternotok",
}
#: The kinds that Slurm knows.
KINDS = frozenset(_WORDS)


def dependency_options(after: Iterable[Dependency]) -> dict[str, str | None]:
    """The options of sbatch for these dependencies; all of them must be satisfied."""
    words = [f"{_WORDS[dependency.kind]}:{dependency.native_id}" for dependency in after]
    if not words:
        return {}
    # Otherwise a job whose dependency cannot be satisfied any more stays pending for ever.
    return {"dependency": ",".join(words), "kill-on-invalid-dep": "yes"}


def dependency_problems(spec: JobSpec) -> Iterator[str]:
    """Why Slurm cannot be told of the jobs that a job waits for."""
    after = dependencies(spec)
    for native_id in [it.native_id for it in after if it.native_id is not None]:
        if not is_id(native_id):
            yield f"attributes.after: {native_id!r} is no job id of Slurm's"
    if after and "dependency" in {name.lower() for name in custom_options(spec, "slurm")}:
        yield "attributes.after and the custom attribute slurm.dependency cannot be given both"
