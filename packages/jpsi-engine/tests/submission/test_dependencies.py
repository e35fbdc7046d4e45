"""The sorting of dependencies into open, never met and unclear ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jpsi import Dependency, DependencyKind, JobAttributes, JobSpec, JobState
from jpsi.contract.spec_values import dependencies
from jpsi_engine.submission.dependency_states import sort_dependencies

OK, ANY, NOTOK = DependencyKind.OK, DependencyKind.ANY, DependencyKind.NOTOK

wanted = st.lists(st.builds(Dependency, st.sampled_from("12345"), st.sampled_from(DependencyKind)))
known = st.dictionaries(st.sampled_from("12345"), st.none() | st.sampled_from(JobState))


def test_a_dependency_on_a_job_that_has_not_ended_is_open() -> None:
    sorted_dependencies = sort_dependencies([Dependency("1", OK)], {"1": JobState.ACTIVE})

    assert sorted_dependencies == ([Dependency("1", OK)], [], [])


def test_a_dependency_on_a_job_that_ended_as_required_is_met() -> None:
    ended = {"1": JobState.COMPLETED, "2": JobState.FAILED}
    sorted_dependencies = sort_dependencies(
        [Dependency("1", OK), Dependency("2", NOTOK), Dependency("2", ANY)], ended
    )

    assert sorted_dependencies == ([], [], [])


def test_a_dependency_on_a_job_that_ended_otherwise_is_never_met() -> None:
    _, never, _ = sort_dependencies([Dependency("1", OK)], {"1": JobState.CANCELED})

    assert never == ["attributes.after waits for the job 1 to complete, but it is CANCELED"]


def test_a_dependency_on_an_unknown_job_is_never_met() -> None:
    _, (sentence,), _ = sort_dependencies([Dependency("1", ANY)], {})

    assert "names the job 1, which is not known" in sentence


def test_a_job_in_no_known_state_is_unclear() -> None:
    assert sort_dependencies([Dependency("1", ANY)], {"1": None}) == ([], [], ["1"])


@given(wanted, known)
def test_every_dependency_is_met_or_accounted_for(
    wanted: list[Dependency], known: dict[str, JobState | None]
) -> None:
    still_open, never, unclear = sort_dependencies(wanted, known)

    for dependency in wanted:
        state = known.get(str(dependency.job))
        if dependency not in still_open and state is not None and not never:
            assert dependency.kind.is_met(state)
        assert dependency not in still_open or (state is not None and not state.final)
    assert len(still_open) + len(never) + len(unclear) <= len(wanted)


def test_the_dependencies_of_a_spec() -> None:
    spec = JobSpec("/bin/true", attributes=JobAttributes(after=["1", Dependency("2", ANY)]))

    assert dependencies(spec) == [Dependency("1", OK), Dependency("2", ANY)]
    assert dependencies(JobSpec("/bin/true")) == []
