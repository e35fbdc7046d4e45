"""Conformance tests of bulk submission: each job keeps its own outcome, and arrays need few requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState
from jpsi.plugin import Arrays, Capabilities, ExecutorConfig
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, Proof, shell
from jpsi_testing.conformance.hook_caller import Hooks
from jpsi_testing.conformance.hooks import HookTests
from jpsi_testing.conformance.recovery import client
from jpsi_testing.fake import FakeScheduler

# The number of elements of an array.
_COUNT = 12
# The largest length in bytes of a command about all elements of an array.
_MAX_COMMAND_BYTES = 600
# Notes that it ran, and fails until it has run as often as its second argument says.
_FAIL = 'echo ran >>"$1"; test "$(wc -l <"$1")" -ge "$2" || exit 75'


class ManyTests(ExecutorTestBase):
    """Tests of bulk requests for every executor."""

    def ends(self, jobs: Sequence[Job]) -> list[int | None]:
        """Wait for the end of jobs, and return their exit codes."""
        return [self.end(job).exit_code for job in jobs]

    def test_each_of_many_jobs_has_its_own_spec(self, executor: JobExecutor, tmp_path: Path) -> None:
        """Each job gets its arguments, environment, directory, streams and exit code."""
        (tmp_path / "in").write_text("in\n")
        jobs = [
            Job(
                shell(
                    'cat; echo "$1 $WHO"; exit $2',
                    f"argument {code}",
                    code,
                    environment={"WHO": f"a 'b' ${code}"},
                    stdin_path=tmp_path / "in",
                    stdout_path=tmp_path / f"out {code}",
                    directory=tmp_path if code % 2 else None,
                )
            )
            for code in range(6)
        ]

        executor.submit_many(jobs)

        assert len({job.native_id for job in jobs} | {None}) == len(jobs) + 1
        assert self.ends(jobs) == list(range(6))
        for code in range(6):
            output = (tmp_path / f"out {code}").read_text()
            assert output == f"in\nargument {code} a 'b' ${code}\n"

    def test_those_of_many_jobs_that_fail_are_submitted_again(
        self, executor: JobExecutor, tmp_path: Path
    ) -> None:
        """Each of them has its attempts until it succeeds, with one id and a native id for each attempt."""
        counts, proofs = (1, 2, 3, 2), [tmp_path / f"proof{number}" for number in range(4)]
        jobs = [
            Job(shell(_FAIL, proof, count, attributes=JobAttributes(retry={75: 2})))
            for proof, count in zip(proofs, counts, strict=True)
        ]

        executor.submit_many(jobs)
        first = [job.native_id for job in jobs]

        assert self.ends(jobs) == [0] * 4
        assert [len(proof.read_text().splitlines()) for proof in proofs] == list(counts)
        assert [job.native_id == it for job, it in zip(jobs, first, strict=True)] == [True, *[False] * 3]
        assert [job.status.metadata.get("attempt", 1) for job in jobs] == list(counts)

    def test_output_without_a_path_is_each_jobs_own(self, executor: JobExecutor) -> None:
        """Jobs without output paths write to files of their own."""
        jobs = [Job(shell('echo "$1"', number)) for number in range(3)]

        executor.submit_many(jobs)

        assert self.ends(jobs) == [0] * 3
        streams = [job.streams for job in jobs]
        assert [None if it is None else it.stdout.read_text() for it in streams] == ["0\n", "1\n", "2\n"]

    def test_an_invalid_job_does_not_prevent_the_others(self, executor: JobExecutor) -> None:
        """The invalid jobs stay NEW and can be submitted again; the valid job runs."""
        good, wrong, empty = Job(shell("exit 3")), Job(JobSpec("")), Job()

        with pytest.raises(jpsi.BulkException) as caught:
            executor.submit_many([wrong, good, empty])

        assert caught.value.done == (good,)
        assert list(caught.value.failed) == [wrong, empty]
        assert all(isinstance(it, jpsi.InvalidJobException) for it in caught.value.failed.values())
        assert [it.status.state for it in (wrong, empty)] == [JobState.NEW] * 2
        assert [it.native_id for it in (wrong, empty)] == [None] * 2
        assert self.end(good).exit_code == 3

        wrong.spec = shell("exit 4")
        executor.submit_many([wrong])
        assert self.end(wrong).exit_code == 4

    def test_one_of_many_jobs_is_cancelled_alone(self, executor: JobExecutor, tmp_path: Path) -> None:
        """The other jobs run on to their own exit codes."""
        gate = Gate(tmp_path / "gate")
        jobs = [Job(gate.job(code)) for code in range(3)]
        executor.submit_many(jobs)
        for job in jobs:
            self.active(job)

        jobs[1].cancel()

        assert self.end(jobs[1]).state is JobState.CANCELED
        gate.open()
        assert self.end(jobs[0]).exit_code == 0
        assert self.end(jobs[2]).exit_code == 2

    def test_many_jobs_are_cancelled_together(self, executor: JobExecutor, tmp_path: Path) -> None:
        """A job that was not submitted is reported, and the others are cancelled."""
        gate = Gate(tmp_path / "gate")
        jobs, other = [Job(gate.job()) for _ in range(3)], Job()
        executor.submit_many(jobs)

        with pytest.raises(jpsi.BulkException) as caught:
            executor.cancel_many([*jobs, other])

        assert caught.value.done == tuple(jobs)
        assert list(caught.value.failed) == [other]
        assert [self.end(job).state for job in jobs] == [JobState.CANCELED] * 3
        executor.cancel_many(jobs)

    def test_many_jobs_are_attached_together(
        self, executor: JobExecutor, config: ExecutorConfig, tmp_path: Path
    ) -> None:
        """A second executor attaches all jobs by their native ids and gets their exit codes."""
        gate = Gate(tmp_path / "gate")
        jobs = [Job(gate.job(code)) for code in range(3)]
        executor.submit_many(jobs)

        with self.new_executor(config) as fresh:
            others = [Job() for _ in jobs]
            fresh.attach_many((other, job.native_id or "") for other, job in zip(others, jobs, strict=True))
            gate.open()
            assert self.ends(others) == [0, 1, 2]
            assert [it.native_id for it in others] == [it.native_id for it in jobs]


class BulkTests(ManyTests, HookTests):
    """Tests for batch systems; they are skipped if the backend submits jobs only one by one."""

    @pytest.fixture
    def offered(self, hooks: Hooks) -> Capabilities | None:
        """Return the backend's capabilities; None if it declares none."""
        offered: Capabilities | None = hooks.get("capabilities")
        return offered

    @pytest.fixture
    def at_once(self, offered: Capabilities | None) -> int:
        """Return the largest number of jobs in one submission."""
        if offered is not None and offered.arrays is not None:
            return offered.arrays.largest
        if offered is None or offered.jobs_per_submission == 1:
            pytest.skip("it takes jobs one by one")
        return offered.jobs_per_submission

    def test_a_job_sees_the_index_of_its_user_in_the_variable_of_the_batch_system(
        self, executor: JobExecutor, offered: Capabilities | None, tmp_path: Path
    ) -> None:
        """Elements do, whose own indices begin at 1, and so does a job that repeats one of them."""
        if offered is None or offered.arrays is None:
            pytest.skip("it has no arrays")
        (variable, *_) = offered.arrays.index_variable.split()

        def job(index: int, name: str) -> Job:
            environment = {"JPSI_ARRAY_INDEX": str(index)}
            return Job(shell('printenv "$1"', variable, environment=environment, stdout_path=tmp_path / name))

        jobs = [job(40, "first"), job(43, "second"), job(43, "again")]
        executor.submit_many(jobs[:2])
        executor.submit(jobs[2])

        assert self.ends(jobs) == [0, 0, 0]
        assert [(tmp_path / it).read_text() for it in ("first", "second", "again")] == [
            "40\n",
            "43\n",
            "43\n",
        ]

    def test_a_job_that_repeats_an_element_alone_has_an_id_of_its_array(
        self, executor: JobExecutor, offered: Capabilities | None, tmp_path: Path
    ) -> None:
        """The variable in which elements have the id of their array has the own id of the job."""
        if offered is None or offered.arrays is None:
            pytest.skip("it has no arrays")
        names = offered.id_variable, offered.arrays.id_variable
        if names[0] == names[1] or any(len(it.split()) != 1 for it in names):
            pytest.skip("no variable has the id of an array alone")

        def job(index: int, name: str) -> Job:
            environment = {"JPSI_ARRAY_INDEX": str(index)}
            return Job(shell('printenv "$@"', *names, environment=environment, stdout_path=tmp_path / name))

        jobs = [job(40, "first"), job(43, "second"), job(43, "again")]
        executor.submit_many(jobs[:2])
        executor.submit(jobs[2])

        assert self.ends(jobs) == [0, 0, 0]
        first, second, again = ((tmp_path / it).read_text().split() for it in ("first", "second", "again"))
        assert first[1] == second[1]
        assert again[0] == again[1] != first[1]

    def test_a_job_sees_how_the_array_of_its_user_is_numbered(
        self, executor: JobExecutor, offered: Capabilities | None, tmp_path: Path
    ) -> None:
        """The variables of the batch system say what those of jpsi say, also to a job that repeats one."""
        if offered is None or offered.arrays is None:
            pytest.skip("it has no arrays")
        known = dict(offered.arrays.range_variables)
        if not known:
            pytest.skip("its elements know nothing of their array")
        numbered = {f"JPSI_ARRAY_{it}": str(40 + i) for i, it in enumerate(("COUNT", "MIN", "MAX", "STEP"))}

        def job(index: int, name: str) -> Job:
            environment = {"JPSI_ARRAY_INDEX": str(index), **numbered}
            shown = shell('printenv "$@"', *known, environment=environment, stdout_path=tmp_path / name)
            return Job(shown)

        jobs = [job(40, "first"), job(43, "second"), job(43, "again")]
        executor.submit_many(jobs[:2])
        executor.submit(jobs[2])

        assert self.ends(jobs) == [0, 0, 0]
        expected = [numbered[it] for it in known.values()]
        assert [(tmp_path / it).read_text().split() for it in ("first", "second", "again")] == [expected] * 3

    def test_similar_jobs_are_submitted_as_one_array(
        self, executor: JobExecutor, at_once: int, fake: FakeScheduler
    ) -> None:
        """A single submit command submits all of them."""
        jobs = [Job(shell(f"exit {code}")) for code in range(_COUNT)]

        executor.submit_many(jobs)

        assert self.submissions(fake) == 1
        assert self.ends(jobs) == list(range(_COUNT))
        assert len(fake.jobs) == _COUNT

    def test_arrays_are_no_larger_than_configured(
        self, at_once: int, fake: FakeScheduler, config: ExecutorConfig
    ) -> None:
        """`array_size` limits the elements of each array."""
        jobs = [Job(shell(f"exit {code}")) for code in range(11)]

        with self.new_executor(attrs.evolve(config, array_size=5)) as other:  # type: ignore[call-arg]  # a BatchConfig
            other.submit_many(jobs)

        assert self.submissions(fake) == 3
        assert self.ends(jobs) == list(range(11))

    def test_different_jobs_are_not_put_into_one_array(
        self, executor: JobExecutor, at_once: int, fake: FakeScheduler
    ) -> None:
        """Jobs with different durations need an array each."""
        limits = [jpsi.parse_duration(f"00:{minutes}:00") for minutes in (10, 20)]
        jobs = [
            Job(shell("exit 0", attributes=JobAttributes(duration=limits[number % 2]))) for number in range(4)
        ]

        executor.submit_many(jobs)

        assert self.submissions(fake) == 2
        assert self.ends(jobs) == [0] * 4

    def test_one_pending_array_element_is_cancelled_alone(
        self, executor: JobExecutor, at_once: int, fake: FakeScheduler
    ) -> None:
        """The other elements run to their own exit codes."""
        fake.slots = 0
        jobs = [Job(shell(f"exit {code}")) for code in range(4)]
        executor.submit_many(jobs)

        jobs[1].cancel()

        assert self.end(jobs[1]).state is JobState.CANCELED
        fake.slots = 8
        fake.settle()
        assert [self.end(jobs[index]).exit_code for index in (0, 2, 3)] == [0, 2, 3]

    def test_one_array_element_is_held_and_released_alone(
        self, executor: JobExecutor, at_once: int, fake: FakeScheduler
    ) -> None:
        """The other elements run meanwhile; skipped if the batch system holds whole arrays only."""
        fake.slots = 0
        jobs = [Job(shell(f"exit {code}")) for code in range(3)]
        executor.submit_many(jobs)
        try:
            executor.hold(jobs[1])
        except jpsi.SubmitException as e:
            pytest.skip(str(e))
        fake.slots = 8
        fake.settle()

        assert [self.end(jobs[index]).exit_code for index in (0, 2)] == [0, 2]
        assert jobs[1].status.state is JobState.QUEUED
        executor.release(jobs[1])
        assert self.end(jobs[1]).exit_code == 1

    @pytest.mark.parametrize("trouble", ["accept_and_hang", "cut"])
    @pytest.mark.parametrize("lag", [0, 3600], ids=["shows", "never shows"])
    def test_jobs_of_an_ambiguous_submission_run_once(
        self,
        short_timeout_executor: JobExecutor,
        at_once: int,
        fake: FakeScheduler,
        tmp_path: Path,
        trouble: str,
        lag: float,
    ) -> None:
        """The batch system has the array, but its submit command hangs or is killed."""
        proofs = [Proof(tmp_path / f"proof{code}") for code in range(4)]
        fake.lag = lag
        # the job may start before or after its submitter gives up
        fake.slots = 0 if lag else 8
        jobs = [Job(proof.job(code)) for code, proof in enumerate(proofs)]
        getattr(fake.faults, trouble)(self.submit_command)

        try:
            short_timeout_executor.submit_many(jobs)
        except jpsi.BulkException as e:
            assert e.transient  # noqa: PT017  it need not be raised
            assert {it.status.state for it in e.failed} == {JobState.NEW}  # noqa: PT017
            short_timeout_executor.submit_many(e.failed)
        fake.lag, fake.slots = 0, 8
        fake.settle()

        assert self.ends(jobs) == list(range(4))
        assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), self.timeout_seconds)
        assert [proof.runs for proof in proofs] == [1] * 4

    def test_jobs_of_a_refused_array_stay_new(
        self, executor: JobExecutor, at_once: int, fake: FakeScheduler
    ) -> None:
        """While the batch system is down no job is submitted, and all can be submitted later."""
        jobs = [Job(shell("exit 3")) for _ in range(3)]
        fake.faults.down()

        with pytest.raises(jpsi.BulkException) as caught:
            executor.submit_many(jobs)

        assert list(caught.value.failed) == jobs
        assert [it.status.state for it in jobs] == [JobState.NEW] * 3
        fake.faults.up()
        executor.submit_many(jobs)
        assert self.ends(jobs) == [3] * 3

    @pytest.mark.parametrize("lag", [0, 3600], ids=["shows", "never shows"])
    def test_a_client_killed_while_it_submits_many_loses_nothing(
        self,
        short_timeout_config: ExecutorConfig,
        at_once: int,
        tmp_path: Path,
        fake: FakeScheduler,
        lag: float,
    ) -> None:
        """The next client finds all jobs, or can submit them again; each runs once."""
        proofs = [Proof(tmp_path / f"proof{code}") for code in range(3)]
        fake.lag = lag
        fake.faults.accept_and_hang(self.submit_command)
        specs = [proof.job(code) for code, proof in enumerate(proofs)]
        with client(self.executor_name, short_timeout_config, specs, url=self.url, at_once=True) as process:
            assert fake.wait_for(lambda: fake.jobs, self.timeout_seconds)
            process.kill()

        fake.lag = 0
        with self.new_executor(short_timeout_config) as executor:
            assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), self.timeout_seconds)
            jobs = executor.recover()
            executor.submit_many(it for it in jobs if it.status.state is JobState.NEW)
            assert sorted(code or 0 for code in self.ends(jobs)) in ([], [0, 1, 2])
        assert [proof.runs for proof in proofs] == [1] * 3

    def test_a_client_killed_before_jobs_are_submitted_again_loses_nothing(
        self, config: ExecutorConfig, at_once: int, tmp_path: Path, fake: FakeScheduler
    ) -> None:
        """Jobs that may be submitted again are one array; the next client makes each further attempt once."""
        gate, proofs = Gate(tmp_path / "gate"), [tmp_path / f"proof{number}" for number in range(3)]
        text = f"{Gate.WAIT}; shift; {_FAIL}"
        retry = JobAttributes(retry={75: 2})
        specs = [
            shell(text, gate.path, proof, count, attributes=retry) for count, proof in enumerate(proofs, 1)
        ]
        with client(self.executor_name, config, specs, url=self.url, at_once=True) as process:
            assert process.stdout is not None
            assert process.stdout.read(1)
            process.kill()
        assert self.submissions(fake) == 1

        with self.new_executor(config) as executor:
            jobs = executor.recover()
            gate.open()

            assert self.ends(jobs) == [0] * 3
            assert executor.recover() == []
        assert [len(proof.read_text().splitlines()) for proof in proofs] == [1, 2, 3]

    def submissions(self, fake: FakeScheduler) -> int:
        """Return the number of submissions; override it if the submit command does other things, too."""
        return fake.log.count(self.submit_command)


class ArrayTests(BulkTests):
    """Tests for batch systems; they are skipped if the backend has no arrays."""

    @pytest.fixture
    def arrays(self, offered: Capabilities | None) -> Arrays:
        """Return the backend's description of its arrays."""
        if offered is None or offered.arrays is None:
            pytest.skip("it has no arrays")
        return offered.arrays

    @pytest.mark.clause("bulk-status")
    def test_queries_do_not_grow_with_the_size_of_an_array(
        self, executor: JobExecutor, arrays: Arrays, fake: FakeScheduler
    ) -> None:
        """No command names each element of an array."""
        fake.slots = 0
        jobs = [Job(shell("exit 0")) for _ in range(min(arrays.largest, 100))]
        executor.submit_many(jobs)
        call_count = len(fake.log)
        assert fake.wait_for(lambda: len(fake.log) > call_count + 1, self.timeout_seconds)
        assert {executor.info(job) is None for job in jobs[:3]} == {False}

        lengths = [len(" ".join(call.invocation.argv)) for call in fake.log[call_count:]]
        executor.cancel_many(jobs)

        assert max(lengths) < _MAX_COMMAND_BYTES
        assert [self.end(job).state for job in jobs] == [JobState.CANCELED] * len(jobs)
