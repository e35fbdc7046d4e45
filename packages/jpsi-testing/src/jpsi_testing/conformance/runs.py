"""Conformance tests of a job's run: its states, exit code, streams, environment and arguments."""

from __future__ import annotations

import copy
import os
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import jpsi
from jpsi import Container, Job, JobExecutor, JobSpec, JobState, JobStatus
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, shell

_ORDER = [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
_SECOND = timedelta(seconds=1)
# Stands for a container runtime: it runs the command on the host, in its directory and with its variable.
_RUNTIME = """\
#!/bin/sh
[ "$1" = exec ] && shift || exit 9
while :; do
  case $1 in
  --pwd) cd -- "$2" || exit 9; shift 2 ;;
  --mount) mounts="$mounts $2"; shift 2 ;;
  *) break ;;
  esac
done
export IMAGE="$1" MOUNTS="$mounts" INSIDE="$APPTAINERENV_INSIDE" A="$APPTAINERENV_A"
shift
exec "$@"
"""
# More bytes than any kernel passes to a program, whatever the stack limit is.
_TOO_LARGE = 7 << 20


class RunTests(ExecutorTestBase):
    """Tests of a job that runs to its end, as its user sees it."""

    @pytest.mark.clause(
        "layer-local",
        "submit-accepted",
        "state-model",
        "job-native-id",
        "job-callback",
        "python-submit-command",
    )
    def test_a_job_passes_through_its_states_in_order(self, executor: JobExecutor) -> None:
        """Its callback gets QUEUED, ACTIVE and COMPLETED, with times that never go back."""
        seen: list[JobStatus] = []
        job = Job(JobSpec("/bin/true"))
        job.set_job_status_callback(lambda _, status: seen.append(status))
        before = job.status

        executor.submit(job)
        assert job.native_id
        final = self.end(job)

        assert before.state is JobState.NEW
        assert [status.state for status in seen] == _ORDER
        assert all(status.time.utcoffset() is not None for status in seen)
        assert all(a.time <= b.time for a, b in pairwise([before, *seen]))
        assert (final.exit_code, final.evidence is not None) == (0, True)

    @pytest.mark.clause("state-failed", "status-exit-code")
    @pytest.mark.parametrize("code", [0, 1, 7, 126, 255])
    def test_the_exit_code_is_the_jobs(self, executor: JobExecutor, code: int) -> None:
        """The job is COMPLETED with 0, and FAILED with any other code."""
        status = self.run(executor, shell(f"exit {code}"))

        assert status.exit_code == code
        assert status.state is (JobState.FAILED if code else JobState.COMPLETED)

    @pytest.mark.clause("status-metadata")
    def test_a_signal_is_reported(self, executor: JobExecutor) -> None:
        """The exit code is 128 plus the number of the signal, which the metadata has too."""
        status = self.run(executor, shell("kill -KILL $$"))

        assert (status.state, status.exit_code) == (JobState.FAILED, 137)
        assert status.metadata["signal"] == 9
        assert status.reason is jpsi.Reason.SIGNAL

    @pytest.mark.skipif(sys.platform != "linux", reason="the runner reads /proc")
    @pytest.mark.parametrize("count", [1, 2], ids=["single", "several"])
    def test_the_cpu_time_of_a_job_is_measured(self, executor: JobExecutor, count: int) -> None:
        """The final status has it, measured in the job."""
        program = "import time\nwhile time.process_time() < 0.2: pass"
        # a launcher of the batch system may start it as no child of the runner
        jobs = [Job(JobSpec(sys.executable, ["-c", program], launcher="single")) for _ in range(count)]

        executor.submit_many(jobs)

        used = [self.end(job).metadata["used.cpu"] for job in jobs]
        assert all(0.15 < it < 2 for it in used), used

    @pytest.mark.parametrize("count", [1, 2], ids=["single", "several"])
    def test_a_job_is_warned_before_its_end(self, executor: JobExecutor, count: int) -> None:
        """The job gets the signal that it asked for. The runner gets none, so the exit code is final."""
        attributes = jpsi.JobAttributes(duration=600 * _SECOND, warn=("USR1", 599))
        text = 'trap "exit 7" USR1; while :; do sleep 0.05; done'
        jobs = [Job(shell(text, attributes=attributes)) for _ in range(count)]

        executor.submit_many(jobs)

        assert [self.end(job).exit_code for job in jobs] == [7] * count

    @pytest.mark.parametrize("count", [1, 2], ids=["single", "several"])
    @pytest.mark.parametrize("runtime", ["apptainer", "auto"])
    def test_a_job_runs_in_a_container(
        self, executor: JobExecutor, tmp_path: Path, count: int, runtime: str
    ) -> None:
        """The runtime gets the image, the binds, the directory, the variables and the command."""
        programs, directory = tmp_path / "bin", tmp_path / "a, b"
        programs.mkdir()
        directory.mkdir()
        (programs / "apptainer").write_text(_RUNTIME)
        (programs / "apptainer").chmod(0o755)
        container = Container("/a b.sif", runtime, ["${HOME}:/in:ro"], environment={"INSIDE": "1, ${A}"})
        text = 'pwd; echo "$IMAGE" "$INSIDE" "$A" "$MOUNTS"; exit 7'
        spec = shell(
            text,
            directory=directory,
            container=container,
            environment={"PATH": f"{programs}:{os.environ['PATH']}", "A": 'a "${JPSI_JOB_ID}"'},
        )
        jobs = [Job(copy.deepcopy(spec)) for _ in range(count)]

        executor.submit_many(jobs)

        for job in jobs:
            assert self.end(job).exit_code == 7
            assert job.streams is not None
            here, rest = job.streams.stdout.read_text().splitlines()
            given = f'a "{job.id}"'
            assert here == str(directory)
            assert rest.startswith(f"/a b.sif 1, {given} {given}  type=bind,"), rest
            assert f'"source={directory}","target={directory}"' in rest
            assert "target=/in,readonly" in rest

    @pytest.mark.parametrize("count", [1, 2], ids=["single", "several"])
    def test_the_environment_is_set_up(self, executor: JobExecutor, tmp_path: Path, count: int) -> None:
        """Scripts are sourced before pre_launch, and a program that they put on PATH is found."""
        programs = tmp_path / "a b" / "bin"
        programs.mkdir(parents=True)
        (programs / "xyzzy").write_text('#!/bin/sh\necho "$A $B"\n')
        (programs / "xyzzy").chmod(0o755)
        (programs / "activate").write_text(f"PATH='{programs}':$PATH A=1; export PATH A\n")
        (tmp_path / "pre").write_text("export B=$A$A\n")
        setup = [f"venv:{programs.parent}", f"source:{programs / 'activate'}"]
        spec = JobSpec("xyzzy", environment_setup=setup, pre_launch=tmp_path / "pre")
        jobs = [Job(copy.deepcopy(spec)) for _ in range(count)]

        executor.submit_many(jobs)

        for job in jobs:
            assert self.end(job).exit_code == 0
            assert job.streams is not None
            assert job.streams.stdout.read_text() == "1 11\n"

    def test_an_environment_that_cannot_be_set_up_is_reported(
        self, executor: JobExecutor, tmp_path: Path
    ) -> None:
        """The job fails with the reason SETUP, and its message names what failed; nothing runs."""
        (tmp_path / "bad").write_text("false\n")
        setup = [f"source:{tmp_path / 'bad'}", "module:never"]

        status = self.run(executor, shell(f"echo >'{tmp_path}/ran'", environment_setup=setup))

        assert (status.state, status.exit_code) == (JobState.FAILED, 125)
        assert status.reason is jpsi.Reason.SETUP
        assert f"source:{tmp_path / 'bad'}" in (status.message or "")
        assert not (tmp_path / "ran").exists()

    def test_a_container_runtime_that_is_missing_is_reported(
        self, executor: JobExecutor, tmp_path: Path
    ) -> None:
        """The job fails with the reason SETUP, and its message says what is missing."""
        container = Container("debian", "podman")

        status = self.run(
            executor, JobSpec("/bin/true", container=container, environment={"PATH": str(tmp_path)})
        )

        assert (status.state, status.exit_code) == (JobState.FAILED, 127)
        assert status.reason is jpsi.Reason.SETUP
        assert "container" in (status.message or "")

    def test_a_job_is_submitted_again_until_it_succeeds(self, executor: JobExecutor, tmp_path: Path) -> None:
        """The attempts of a job have one id and one history, and a native id each."""
        proof = tmp_path / "proof"
        text = f'echo ran >>{proof}; test "$(wc -l <{proof})" -ge 3 || exit 75'
        job = Job(shell(text, attributes=jpsi.JobAttributes(retry={75: 2})))

        executor.submit(job)
        first, status = job.native_id, self.end(job)

        assert (status.exit_code, status.metadata["attempt"]) == (0, 3)
        assert (proof.read_text(), job.native_id == first) == ("ran\n" * 3, False)

    @pytest.mark.parametrize("field", ["argument", "variable"])
    def test_arguments_too_large_for_the_kernel_are_refused(self, executor: JobExecutor, field: str) -> None:
        """Such a job is invalid, and the problem names the argument or the variable."""
        job = Job(JobSpec("/bin/true"))
        assert job.spec is not None
        if field == "argument":
            job.spec.arguments = ["x" * _TOO_LARGE]
        else:
            job.spec.environment = {"BIG": "x" * _TOO_LARGE}

        with pytest.raises(jpsi.InvalidJobException) as caught:
            executor.submit(job)

        (problem,) = caught.value.problems
        assert ("arguments[0]" if field == "argument" else "'BIG'") in problem
        assert job.status.state is JobState.NEW

    def test_an_exec_failure_on_the_node_has_reason_executable(
        self, executor: JobExecutor, tmp_path: Path
    ) -> None:
        """The environment may become too large only on the node, such as by pre_launch."""
        (tmp_path / "pre").write_text(f"BIG=$(printf '%0{_TOO_LARGE}d' 0)\nexport BIG\n")

        status = self.run(executor, JobSpec("/bin/true", pre_launch=tmp_path / "pre"))

        assert (status.state, status.exit_code) == (JobState.FAILED, 126)
        assert status.reason is jpsi.Reason.EXECUTABLE
        assert "arguments and environment" in (status.message or "")

    def test_output_is_where_the_streams_say(self, executor: JobExecutor) -> None:
        """`job.streams` reads the output of a job without paths."""
        job = self.submit(executor, shell("echo out; echo err >&2"))
        self.end(job)

        assert job.streams is not None
        assert job.streams.stdout.read_text() == "out\n"
        assert job.streams.stderr.read_text() == "err\n"

    @pytest.mark.clause("spec-directory", "spec-streams", "path")
    def test_streams_and_directory_are_those_of_the_spec(self, executor: JobExecutor, tmp_path: Path) -> None:
        """Relative paths are relative to the job's directory."""
        (tmp_path / "in").write_text("put in")
        spec = shell(
            "pwd; cat; echo err >&2",
            directory=tmp_path,
            stdin_path=tmp_path / "in",
            stdout_path=Path("out put"),
            stderr_path=tmp_path / "err",
        )

        assert self.run(executor, spec).state is JobState.COMPLETED
        assert (tmp_path / "out put").read_text() == f"{tmp_path}\nput in"
        assert (tmp_path / "err").read_text() == "err\n"

    @pytest.mark.clause("spec-inherit-false", "spec-inherit-true")
    def test_the_environment_is_inherited_or_not(
        self, executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`inherit_environment` decides, and the job's own variables are always set."""
        monkeypatch.setenv("FROM_OUTSIDE", "inherited")
        text = 'echo "$FROM_OUTSIDE,$GIVEN" > "$1"'
        for name, inherits in {"True": {}, "False": {"inherit_environment": False}}.items():
            spec = shell(text, tmp_path / name, environment={"GIVEN": "a"}, **inherits)
            assert self.run(executor, spec).state is JobState.COMPLETED

        assert (tmp_path / "True").read_text() == "inherited,a\n"
        assert (tmp_path / "False").read_text() == ",a\n"

    @pytest.mark.clause("submit-accepted", "executor-callback", "callbacks-in-order")
    def test_callbacks_of_job_and_executor_get_every_status_once(self, executor: JobExecutor) -> None:
        """Each job's statuses arrive in order, at both callbacks."""
        received: dict[str, list[JobState]] = {}
        executor.set_job_status_callback(
            lambda job, status: received.setdefault(job.id, []).append(status.state)
        )
        own: dict[str, list[JobState]] = {}
        jobs = [Job(JobSpec("/bin/true")) for _ in range(3)]
        for job in jobs:
            job.set_job_status_callback(lambda job, status: own.setdefault(job.id, []).append(status.state))
            executor.submit(job)
        for job in jobs:
            self.end(job)

        assert own == {job.id: _ORDER for job in jobs}
        assert received == own

    @pytest.mark.clause("wait-timeout")
    def test_wait_returns_at_the_state_or_the_timeout(self, executor: JobExecutor, tmp_path: Path) -> None:
        """`wait` raises UnreachableStateException for a state that cannot be reached any more."""
        gate = Gate(tmp_path / "gate")
        job = self.submit(executor, gate.job(3))

        active = job.wait(self.timeout_seconds, target_states=[JobState.ACTIVE])
        assert active is not None
        assert active.state is JobState.ACTIVE
        assert job.wait(0.01) is None
        assert job.wait(timedelta(0)) is None
        gate.open()
        assert job.wait(self.timeout_seconds * _SECOND) == job.status
        assert job.wait(target_states=JobState.QUEUED), "it has passed through it"
        with pytest.raises(jpsi.UnreachableStateException):
            job.wait(target_states=JobState.COMPLETED)
        assert job.status.exit_code == 3

    @pytest.mark.clause("list-unique", "list-non-final", "list-final")
    def test_list_returns_jobs_that_have_not_ended(self, executor: JobExecutor, tmp_path: Path) -> None:
        """`list` returns the native id of a job until the job ends."""
        gate = Gate(tmp_path / "gate")
        job = self.submit(executor, gate.job())

        assert executor.list() == [job.native_id]
        gate.open()
        self.end(job)

        assert executor.list() == []

    def test_several_jobs_keep_their_own_codes(self, executor: JobExecutor) -> None:
        """Jobs that run at the same time have native ids and exit codes of their own."""
        jobs = [Job(shell(f"exit {code}")) for code in range(8)]
        for job in jobs:
            executor.submit(job)

        assert [self.end(job).exit_code for job in jobs] == list(range(8))
        assert len({job.native_id for job in jobs}) == len(jobs)

    @pytest.mark.clause("pre-launch-sourced")
    def test_pre_and_post_launch_surround_the_job(self, executor: JobExecutor, tmp_path: Path) -> None:
        """Both run in the job's shell, and the exit code is that of the command."""
        (tmp_path / "pre").write_text("export FROM_PRE=x\necho pre\n")
        (tmp_path / "post").write_text("echo post\n")
        spec = shell(
            "echo job $FROM_PRE; exit 4",
            pre_launch=tmp_path / "pre",
            post_launch=tmp_path / "post",
            stdout_path=tmp_path / "out",
        )

        assert self.run(executor, spec).exit_code == 4
        assert (tmp_path / "out").read_text() == "pre\njob x\npost\n"

    def test_a_missing_executable_is_reported(self, executor: JobExecutor) -> None:
        """The job is FAILED with 127, for `Reason.EXECUTABLE`."""
        status = self.run(executor, JobSpec("/no/such/program"))

        assert (status.state, status.exit_code) == (JobState.FAILED, 127)
        assert status.reason is jpsi.Reason.EXECUTABLE

    def test_changes_after_submission_do_not_affect_the_job(
        self, executor: JobExecutor, tmp_path: Path
    ) -> None:
        """The executor submits a copy of the spec."""
        spec = shell('echo "$1" > "$2"', "before", tmp_path / "out")
        job = self.submit(executor, spec)
        assert spec.arguments is not None
        spec.arguments[-2] = "after"

        self.end(job)

        assert (tmp_path / "out").read_text() == "before\n"
