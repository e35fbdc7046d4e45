"""The directives for the jobs that a job depends on."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from jpsi.plugin import Dependency, DependencyKind, JobAttributes, JobSpec, ShellLine
from jpsi_slurm import fake, hooks
from jpsi_slurm.fake.submit import are_dependencies
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeState, Invocation, Outcome, answer
from slurm_support import CONTEXT, SITE

OK, ANY, NOTOK = DependencyKind.OK, DependencyKind.ANY, DependencyKind.NOTOK
AFTER = (Dependency("7", OK), Dependency("8_3", ANY), Dependency("9", NOTOK))


def _spec(after: Any, **custom: Any) -> JobSpec:
    named = {f"slurm.{name}": value for name, value in custom.items()}
    return JobSpec("/bin/true", attributes=JobAttributes(after=after, custom_attributes=named or None))


def _directives(*after: Dependency) -> list[str]:
    lines = hooks.render_script(_spec(None), attrs.evolve(CONTEXT, after=after)).text.splitlines()
    return [line for line in lines if "depend" in line or "invalid-dep" in line]


def test_all_dependencies_must_be_satisfied() -> None:
    assert _directives(*AFTER) == [
        "#SBATCH --dependency=afterok:7,afterany:8_3,afternotok:9",
        "#SBATCH --kill-on-invalid-dep=yes",
    ]


def test_a_job_without_dependencies_has_no_dependency_option() -> None:
    assert _directives() == []


def test_an_invalid_job_id_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'7\?afterany:8' is no job id of Slurm's"):
        hooks.canonical_id("7?afterany:8")


@pytest.mark.parametrize("name", ["dependency", "DEPENDENCY"])
def test_a_dependency_cannot_be_set_twice(name: str) -> None:
    spec = JobSpec(
        "/bin/true",
        attributes=JobAttributes(after=["7"], custom_attributes={f"slurm.{name}": "singleton"}),
    )

    assert any(f"slurm.{name}" in problem for problem in hooks.check_spec(spec, SITE))
    assert hooks.check_spec(_spec(None, dependency="singleton"), SITE) == []


def _submitted(scheduler: FakeScheduler, *after: Dependency, **custom: Any) -> str:
    text = attrs.evolve(
        hooks.render_script(_spec(None, **custom), attrs.evolve(CONTEXT, after=after)), run=ShellLine("true")
    ).text
    call = Invocation(argv=["sbatch", "--parsable"], stdin=text)
    return answer(scheduler, fake, call).stdout.strip()


def test_the_fake_takes_a_forgotten_job_for_one_that_ended_well() -> None:
    """Slurm does so too; jpsi must not depend on it."""
    clock = FakeClock()
    with FakeScheduler(clock, outcome=Outcome(seconds=1, exit_code=1), keep=10) as scheduler:
        first = _submitted(scheduler)
        clock.advance(60)
        second = _submitted(scheduler, Dependency(first, OK))

        assert scheduler.job(first).state is FakeState.FAILED
        assert scheduler.job(second).state is FakeState.RUNNING


def test_the_fake_cancels_jobs_that_can_never_start() -> None:
    clock = FakeClock()
    with FakeScheduler(clock, outcome=Outcome(seconds=1, exit_code=1)) as scheduler:
        first = _submitted(scheduler)
        second = _submitted(scheduler, Dependency(first, OK))
        third = _submitted(scheduler, Dependency(first, OK), **{"kill-on-invalid-dep": "no"})
        waits = (scheduler.job(second).state, scheduler.job(second).why)
        clock.advance(1)

        assert waits == (FakeState.PENDING, "Dependency")
        assert scheduler.job(second).state is FakeState.CANCELLED
        assert (scheduler.job(third).state, scheduler.job(third).why) == (
            FakeState.PENDING,
            "DependencyNeverSatisfied",
        )


@pytest.mark.parametrize(
    ("text", "is_sound"),
    [
        ("afterok:17", True),
        ("afterany:17_3:18", True),
        ("afterok:17_", False),
        ("afterok", False),
        ("", True),
    ],
)
def test_the_fake_knows_dependencies_on_jobs_and_elements(text: str, is_sound: bool) -> None:
    assert (are_dependencies(text)) == is_sound
