"""The directives for the jobs that a job depends on."""

from __future__ import annotations

from types import ModuleType

import attrs
import pytest

from jpsi.plugin import CommandResult, Dependency, DependencyKind, JobAttributes, JobSpec, ShellLine
from jpsi_lsf import hooks
from jpsi_lsf.fake import lsf, volclava
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeState, Invocation, Outcome, answer
from lsf_support import CONTEXT, directives, problems, site

OK, ANY, NOTOK = DependencyKind.OK, DependencyKind.ANY, DependencyKind.NOTOK
AFTER = (Dependency("7", OK), Dependency("8[3]", ANY), Dependency("9", NOTOK))


def test_all_dependencies_must_be_satisfied_or_the_job_ends() -> None:
    assert directives(JobSpec("/bin/true"), attrs.evolve(CONTEXT, after=AFTER))[1:] == [
        "-w 'done(7) && ended(8[3]) && exit(9)'",
        "-ti",
    ]


@pytest.mark.parametrize("native_id", ["7) || done(8", "0", "my job", "4@east"])
def test_an_invalid_job_id_is_refused(native_id: str) -> None:
    with pytest.raises(ValueError, match="is no job id of LSF's"):
        hooks.canonical_id(native_id)


def test_a_dependency_cannot_be_set_twice() -> None:
    attributes = JobAttributes(after=["7"], custom_attributes={"lsf.w": "done(8)"})

    assert any("lsf.w" in problem for problem in problems(JobSpec("/bin/true", attributes=attributes)))


def test_without_termination_of_orphans_dependencies_are_refused() -> None:
    assert hooks.capabilities(site()).dependencies == frozenset(DependencyKind)
    assert hooks.capabilities(site(orphan_termination=False)).dependencies == frozenset()


def _submit(scheduler: FakeScheduler, fake_system: ModuleType, *after: Dependency) -> CommandResult:
    text = attrs.evolve(
        hooks.render_script(JobSpec("/bin/true"), attrs.evolve(CONTEXT, after=after)), run=ShellLine("true")
    ).text
    return answer(scheduler, fake_system, Invocation(argv=["bsub"], stdin=text))


def test_the_fake_ends_jobs_that_can_never_start() -> None:
    clock = FakeClock()
    with FakeScheduler(clock, outcome=Outcome(seconds=1, exit_code=1)) as scheduler:
        _submit(scheduler, lsf)
        _submit(scheduler, lsf, Dependency("1", OK))
        waits = (scheduler.job("2").state, scheduler.job("2").why)
        clock.advance(1)

        assert waits == (FakeState.PENDING, "Job dependency condition not satisfied")
        assert scheduler.job("2").state is FakeState.CANCELLED


def test_the_fakes_refuse_what_real_systems_refuse() -> None:
    """LSF refuses an unknown job, and volclava reads -ti as a time."""
    with FakeScheduler(FakeClock(), outcome=Outcome()) as scheduler:
        unknown = _submit(scheduler, lsf, Dependency("999999", OK))
        old = _submit(scheduler, volclava, Dependency("999999", OK))

    assert unknown.stderr == "999999: No matching job found. Job not submitted.\n"
    assert old.stderr == "Bad time specification. Job not submitted.\n"
