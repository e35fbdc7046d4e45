"""Conformance tests of dependencies: jobs that wait for other jobs."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi import Dependency, DependencyKind, Job, JobAttributes, JobExecutor, JobSpec, JobState, Reason
from jpsi.plugin import Capabilities
from jpsi_testing.conformance.base import Gate, Proof
from jpsi_testing.conformance.hook_caller import Hooks
from jpsi_testing.conformance.hooks import HookTests
from jpsi_testing.fake import FakeScheduler

Kinds = frozenset[DependencyKind]
_OK, _ANY, _NOTOK = DependencyKind.OK, DependencyKind.ANY, DependencyKind.NOTOK


def _waiting(spec: JobSpec, job: Job | str, kind: DependencyKind = _OK) -> Job:
    return Job(attrs.evolve(spec, attributes=JobAttributes(after=[Dependency(job, kind)])))


class DependencyTests(HookTests):
    """Tests for a backend whose capabilities name kinds of dependencies."""

    @pytest.fixture
    def kinds(self, hooks: Hooks) -> Kinds:
        """Return the kinds of dependencies that the backend supports."""
        kinds = self._offered_kinds(hooks)
        if not kinds:
            pytest.skip("its capabilities name no dependencies")
        return kinds

    @staticmethod
    def _offered_kinds(hooks: Hooks) -> Kinds:
        offered: Capabilities | None = hooks.get("capabilities")
        return frozenset() if offered is None else offered.dependencies

    def test_a_kind_that_is_not_offered_is_refused(self, executor: JobExecutor, hooks: Hooks) -> None:
        """A dependency of a kind that the capabilities do not list makes the job invalid."""
        offered = self._offered_kinds(hooks)
        for kind in set(DependencyKind) - offered:
            with pytest.raises(jpsi.InvalidJobException, match="after"):
                executor.submit(_waiting(JobSpec("/bin/true"), "1", kind))

    @pytest.mark.parametrize(
        ("kind", "code", "runs"),
        [(_OK, 0, 1), (_ANY, 0, 1), (_ANY, 3, 1), (_NOTOK, 3, 1), (_OK, 3, 0), (_NOTOK, 0, 0)],
        ids=str,
    )
    def test_a_job_runs_if_the_other_ends_as_it_should(
        self,
        executor: JobExecutor,
        tmp_path: Path,
        kinds: Kinds,
        kind: DependencyKind,
        code: int,
        runs: int,
    ) -> None:
        """Otherwise it is CANCELED for `Reason.DEPENDENCY`, and never runs."""
        if kind not in kinds:
            pytest.skip(f"it does not offer {kind.value}")
        gate, proof = Gate(tmp_path / "gate"), Proof(tmp_path / "proof")
        first = self.submit(executor, gate.job(code))
        second = _waiting(proof.job(5), first, kind)
        executor.submit(second)
        self.active(first)

        assert (second.status.state, proof.runs) == (JobState.QUEUED, 0)
        gate.open()

        status = self.end(second)
        never = (JobState.CANCELED, Reason.DEPENDENCY, None)
        expected = (JobState.FAILED, Reason.EXIT_CODE, 5) if runs else never
        assert (status.state, status.reason, status.exit_code) == expected
        assert self.end(first).exit_code == code
        assert proof.runs == runs

    def test_a_dependency_that_has_already_ended_counts(
        self, executor: JobExecutor, tmp_path: Path, kinds: Kinds
    ) -> None:
        """A job is refused if its dependency has failed, and starts if any end is enough."""
        proof = Proof(tmp_path / "proof")
        first = self.submit(executor, JobSpec("/bin/false"))
        self.end(first)

        for job in (first, first.native_id or ""):
            refused = _waiting(proof.job(), job, _OK)
            why = "FAILED" if _OK in kinds else "cannot wait for others"
            with pytest.raises(jpsi.InvalidJobException, match=why):
                executor.submit(refused)
            assert refused.status.state is JobState.NEW
            after = _waiting(proof.job(), job, _ANY)
            if _ANY in kinds:
                executor.submit(after)
                assert self.end(after).state is JobState.COMPLETED
        assert proof.runs == (2 if _ANY in kinds else 0)

    def test_an_unknown_dependency_never_counts_as_completed(
        self, executor: JobExecutor, tmp_path: Path, kinds: Kinds
    ) -> None:
        """A job that depends on a native id without a job is refused and stays NEW."""
        proof = Proof(tmp_path / "proof")
        for kind in kinds:
            job = _waiting(proof.job(), self.unknown_id, kind)
            with pytest.raises(jpsi.InvalidJobException, match=self.unknown_id):
                executor.submit(job)
            assert job.status.state is JobState.NEW
        assert proof.runs == 0

    @pytest.mark.parametrize("code", [0, 3])
    def test_a_forgotten_dependency_counts_by_its_end(
        self,
        executor: JobExecutor,
        fake: FakeScheduler,
        tmp_path: Path,
        kinds: Kinds,
        code: int,
    ) -> None:
        """Some batch systems treat a dependency on a job that they have forgotten as satisfied."""
        if _OK not in kinds:
            pytest.skip(f"it does not offer {_OK.value}")
        proof = Proof(tmp_path / "proof")
        first = self.submit(executor, Gate(tmp_path / "gate").job(code))
        Gate(tmp_path / "gate").open()
        self.end(first)
        fake.vanish(first.native_id or "")
        second = _waiting(proof.job(), first.native_id or "")

        if code:
            with pytest.raises(jpsi.InvalidJobException, match="FAILED"):
                executor.submit(second)
        else:
            executor.submit(second)
            assert self.end(second).state is JobState.COMPLETED
        assert proof.runs == (0 if code else 1)

    def test_a_job_that_was_not_submitted_cannot_be_waited_for(
        self, executor: JobExecutor, kinds: Kinds
    ) -> None:
        """A dependency on a NEW job makes the job invalid."""
        first = Job(JobSpec("/bin/true"))

        for kind in kinds:
            with pytest.raises(jpsi.InvalidJobException, match=f"{first.id}.*submitted first"):
                executor.submit(_waiting(JobSpec("/bin/true"), first, kind))
