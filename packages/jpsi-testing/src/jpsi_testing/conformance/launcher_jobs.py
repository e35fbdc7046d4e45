"""Conformance tests of a launcher in whole jobs of several processes, under `local` and a batch system."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import jpsi
from jpsi import InvalidJobException, Job, JobExecutor, JobSpec, JobState, JobStatus
from jpsi.plugin import BatchConfig, ExecutorConfig, HeterogeneousResources, Reason, ResourceSpecV1
from jpsi_testing import toy
from jpsi_testing.conformance.base import Gate
from jpsi_testing.conformance.hook_caller import Hooks
from jpsi_testing.conformance.launcher_base import LauncherTestBase, processes_of, started_processes
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.plugin_directory import PluginDirectory
from jpsi_testing.waiting import eventually

# The variables that a shell adds to its environment.
_SHELL_VARIABLES = {"PWD", "OLDPWD", "SHLVL", "_"}
_JPSI_VARIABLES = {"JPSI_JOB_ID", "JPSI_NODEFILE", "PSIJ_NODEFILE"}
# The time that a process may take from its start to its first line, in seconds.
_STARTUP_SECONDS = 2.0
_QUICK: dict[str, Any] = {
    "shortest_interval": timedelta(seconds=0.1),
    "longest_interval": timedelta(seconds=0.3),
    "grace": timedelta(seconds=1),
}


class JobTests(LauncherTestBase):
    """Tests of the guarantees that users have with every launcher."""

    @pytest.fixture(params=["local", "toy"])
    def executor(
        self,
        request: pytest.FixtureRequest,
        tmp_path: Path,
        plugin_directory: PluginDirectory,
        fake_commands: Callable[..., FakeScheduler],
    ) -> Iterator[JobExecutor]:
        """Yield an executor: that of this machine, and one of a batch system."""
        self.need_program()
        work = tmp_path / "work"
        config = ExecutorConfig(work_directory=work, kill_delay=timedelta(seconds=1))
        if request.param == "toy":
            plugin_directory.add(
                "jpsi-toy",
                entry_points={"jpsi.executors": {"toy": "jpsi_toy"}},
                files={"jpsi_toy.py": Path(toy.__file__).read_text()},
            )
            fake_commands("toy")
            config = BatchConfig(work_directory=work, **_QUICK)
        with JobExecutor.get_instance(request.param, config=config) as executor:
            yield executor

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        """Return a directory for the files of processes, with a name full of quotes and blanks."""
        path = tmp_path / 'a "place" of it\'s own'
        path.mkdir()
        return path

    def spec(self, text: str, directory: Path, **fields: Any) -> JobSpec:  # noqa: ANN401  the fields of a spec
        """Return the spec of a job whose processes each run this shell text, with the directory as `$1`."""
        return self.with_launcher_attributes(
            JobSpec(
                "/bin/sh",
                ["-c", jpsi.escape(text), "sh", str(directory)],
                launcher=self.launcher_name,
                resources=self.resources(self.max_processes),
                **fields,
            )
        )

    def run(self, executor: JobExecutor, spec: JobSpec) -> tuple[JobStatus, Job]:
        """Submit a job and wait for its end."""
        job = Job(spec)
        executor.submit(job)
        status = job.wait(self.timeout_seconds)
        assert status is not None, f"{job!r} has not ended in {self.timeout_seconds:g} s"
        return status, job

    def read_outputs(self, directory: Path) -> list[str]:
        """Return the contents of the files that the processes have written, sorted."""
        return sorted(path.read_text() for path in directory.iterdir())

    def run_to_completion(self, executor: JobExecutor, spec: JobSpec) -> Job:
        """Run a job, check that it has completed, and return it."""
        status, job = self.run(executor, spec)
        _assert_completed(status)
        return job

    def assert_each_process_wrote(self, directory: Path, text: str) -> None:
        """Check that each process has written this text into a file of its own."""
        expected, found = [text] * self.max_processes, self.read_outputs(directory)
        assert found == expected, (
            f"each of {self.max_processes} processes should have written {text!r}; they wrote {found}"
        )

    @pytest.mark.clause("resources-processes", "python-launcher-starts")
    def test_every_process_runs_once(self, executor: JobExecutor, directory: Path, tmp_path: Path) -> None:
        """A process too many may be slow to write, and the end of the job may kill it before it does."""
        gate = Gate(tmp_path / "gate")
        text = f'echo >"$1/$$"; set -- "$GATE"; {Gate.WAIT}'
        job = Job(self.spec(text, directory, environment={"GATE": str(gate.path)}))
        executor.submit(job)
        self.wait_until(
            lambda: len(self.read_outputs(directory)) >= self.max_processes,
            f"the launcher has started {self.max_processes} processes",
        )
        # a program of the launcher itself may stay beside the processes
        eventually(lambda: started_processes(job.id) <= _pids(directory), _STARTUP_SECONDS)

        gate.open()
        status = job.wait(self.timeout_seconds)

        assert status is not None, f"{job!r} has not ended in {self.timeout_seconds:g} s"
        _assert_completed(status)
        count = len(self.read_outputs(directory))
        assert count == self.max_processes, (
            f"the launcher started {count} processes for a job of {self.max_processes}"
        )

    def test_a_process_starts_in_each_slot_of_every_kind(
        self, executor: JobExecutor, hooks: Hooks, directory: Path
    ) -> None:
        """A job with several kinds of slots is refused if the launcher does not declare `heterogeneous`."""
        spec = self.spec('echo here >"$1/$$"', directory)
        spec.resources = HeterogeneousResources(
            [ResourceSpecV1(), self.resources(max(1, self.max_processes - 1))]
        )
        if not (hooks.get("heterogeneous")):
            with pytest.raises(InvalidJobException, match="cannot start several kinds of processes"):
                executor.submit(Job(spec))
            return

        self.run_to_completion(executor, spec)

        self.assert_each_process_wrote(directory, "here\n")

    def test_a_process_that_fails_fails_the_job(self, executor: JobExecutor, directory: Path) -> None:
        """The job is FAILED with the exit code of the process."""
        status, _ = self.run(executor, self.spec('mkdir "$1/first" 2>&- && exit 7; exit 0', directory))

        assert (status.state, status.exit_code) == (JobState.FAILED, 7), (
            f"a process exited with 7, and the others with 0; the job {_describe(status)}"
        )

    def test_of_processes_that_fail_differently_one_gives_the_code(
        self, executor: JobExecutor, directory: Path
    ) -> None:
        """The job's exit code is that of one of the processes that failed."""
        text = 'mkdir "$1/first" 2>&- && exit 3; mkdir "$1/second" 2>&- && exit 5; exit 0'

        status, _ = self.run(executor, self.spec(text, directory))

        expected = {3} if self.max_processes == 1 else {3, 5}
        assert status.state is JobState.FAILED, f"processes failed; the job {_describe(status)}"
        assert status.exit_code in expected, (
            f"processes exited with {expected}, and the others with 0; the job {_describe(status)}"
        )

    def test_output_before_a_failing_exit_is_kept(self, executor: JobExecutor, directory: Path) -> None:
        """All processes write, and then fail: each line is in the job's output."""
        wait = 'until set -- "$PLACE"/* && [ "$#" -ge "$COUNT" ]; do sleep 0.05; done'
        environment: dict[str, str | None] = {"PLACE": str(directory), "COUNT": str(self.max_processes)}

        status, job = self.run(
            executor,
            self.spec(f'echo out; echo >"$1/$$"; {wait}; exit 7', directory, environment=environment),
        )

        assert (status.state, status.exit_code) == (JobState.FAILED, 7), (
            f"every process exited with 7; the job {_describe(status)}"
        )
        assert job.streams is not None
        found = job.streams.stdout.read_text().count("out\n")
        assert found == self.max_processes, (
            f"each of {self.max_processes} processes printed a line and failed; {found} lines were kept"
        )

    def test_a_process_that_a_signal_ends_fails_the_job_with_the_code_of_that(
        self, executor: JobExecutor, directory: Path
    ) -> None:
        """The exit code is 128 plus the number of the signal."""
        status, _ = self.run(
            executor, self.spec('mkdir "$1/first" 2>&- && kill -s KILL $$; exit 0', directory)
        )

        assert (status.state, status.exit_code) == (JobState.FAILED, 128 + signal.SIGKILL), (
            f"a process was killed by signal 9, which is the exit code 137; the job {_describe(status)}"
        )

    def test_a_missing_launcher_program_is_a_launch_failure(
        self, executor: JobExecutor, directory: Path
    ) -> None:
        """The job is FAILED, and the message names the program."""
        if self.program is None:
            pytest.skip("it needs no program")

        status, _ = self.run(executor, self.spec(":", directory, environment={"PATH": "/nonexistent"}))

        assert (status.state, status.reason) == (JobState.FAILED, Reason.LAUNCH), (
            f"without {self.program} the job should fail with Reason.LAUNCH; it {_describe(status)}"
        )
        assert self.program in str(status.message), (
            f"{self.program} is missing, and the message does not name it: {status.message!r}"
        )

    def test_output_is_that_of_the_processes(self, executor: JobExecutor, directory: Path) -> None:
        """Nothing but the output of the processes is in the job's streams."""
        job = self.run_to_completion(executor, self.spec("echo out; echo err >&2", directory))

        assert job.streams is not None
        for path, text in ((job.streams.stdout, "out\n"), (job.streams.stderr, "err\n")):
            found = path.read_text()
            assert found == text * self.max_processes, (
                f"each of {self.max_processes} processes printed {text!r}; the job's {path.name} is {found!r}"
            )

    def test_input_goes_to_the_first_process(
        self, executor: JobExecutor, directory: Path, tmp_path: Path
    ) -> None:
        """The other processes read an empty standard input."""
        (tmp_path / "in").write_text("put in\n")

        self.run_to_completion(executor, self.spec('cat >"$1/$$"', directory, stdin_path=tmp_path / "in"))

        found = self.read_outputs(directory)
        assert found == [""] * (self.max_processes - 1) + ["put in\n"], (
            f"one process should read the job's input 'put in\\n', and the others nothing; they read {found}"
        )

    def test_paths_may_have_any_characters(self, executor: JobExecutor, directory: Path) -> None:
        """Blanks, quotes and other special characters in paths do no harm."""
        program = directory / 'my "prog" it\'s'
        program.write_text('#!/bin/sh\npwd\necho "$1" >&2\ncat\n')
        program.chmod(0o755)
        (directory / "in $x").write_text("")
        argument = 'it\'s an "argument" \\ $x'
        spec = JobSpec(
            str(program),
            [argument],
            directory=directory,
            stdin_path=Path("in $x"),
            stdout_path=Path("out 'put"),
            stderr_path=directory / 'err "or',
            launcher=self.launcher_name,
            resources=self.resources(self.max_processes),
        )

        self.run_to_completion(executor, self.with_launcher_attributes(spec))

        for path, text in ((directory / "out 'put", str(directory)), (directory / 'err "or', argument)):
            found = path.read_text()
            assert found == f"{text}\n" * self.max_processes, (
                f"each of {self.max_processes} processes printed {text!r}; {path.name!r} has {found!r}"
            )

    @pytest.mark.clause("pre-launch-sourced", "pre-launch-exports", "pre-launch-forwarded")
    def test_what_pre_launch_exports_reaches_every_process(
        self, executor: JobExecutor, directory: Path, tmp_path: Path
    ) -> None:
        """A variable that pre_launch exports is in the environment of each process."""
        pre = tmp_path / "pre it's.sh"
        exported = 'export FROM_PRE="it\'s a \\"value\\"" PLAIN=1\n'
        pre.write_text(exported + 'echo once >>"$PROOF"\n[ -z "$(ls "$PLACE")" ]\ncd /\n')
        proof = tmp_path / "proof"
        environment = {"A": "2", "PROOF": str(proof), "PLACE": str(directory)}

        self.run_to_completion(
            executor,
            self.spec(
                'echo "$FROM_PRE" $PLAIN $A >"$1/$$"', directory, pre_launch=pre, environment=environment
            ),
        )

        count = len(proof.read_text().splitlines())
        assert count == 1, f"pre_launch should run once; it ran {count} times"
        self.assert_each_process_wrote(directory, 'it\'s a "value" 1 2\n')

    def test_a_pre_launch_that_fails_starts_no_process(
        self, executor: JobExecutor, directory: Path, tmp_path: Path
    ) -> None:
        """The job is FAILED, and no process of it has run."""
        pre = tmp_path / "pre.sh"
        pre.write_text("exit 3\n")

        status, _ = self.run(executor, self.spec('echo >"$1/$$"', directory, pre_launch=pre))

        count = len(self.read_outputs(directory))
        assert status.state is JobState.FAILED, f"pre_launch failed; the job {_describe(status)}"
        assert count == 0, f"pre_launch failed, and the launcher started {count} processes"

    @pytest.mark.clause("post-launch-waits")
    def test_post_launch_runs_after_every_process(
        self, executor: JobExecutor, directory: Path, tmp_path: Path
    ) -> None:
        """post_launch begins when all processes have ended."""
        post = tmp_path / "post.sh"
        post.write_text('for it in "$PLACE"/*; do echo "${it##*/}"; done >"$PLACE"/post\n')
        # one of the processes is late
        text = 'mkdir "$1/late" 2>&- && sleep 0.3; echo >"$1/done.$$"'
        spec = self.spec(text, directory, post_launch=post, environment={"PLACE": str(directory)})

        self.run_to_completion(executor, spec)

        seen = (directory / "post").read_text().split()
        count = len([name for name in seen if name.startswith("done.")])
        assert count == self.max_processes, (
            f"post_launch ran when {count} of {self.max_processes} processes had ended"
        )

    def test_a_process_without_inheritance_has_its_own_environment(
        self, executor: JobExecutor, hooks: Hooks, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With `inherit_environment=False` no variable of the client arrives."""
        monkeypatch.setenv("FROM_OUTSIDE", "x")
        environment: dict[str, str | None] = {"A": "it's", "PATH": "/usr/bin:/bin"}
        spec = self.spec('env >"$1/$$"', directory, environment=environment, inherit_environment=False)

        self.run_to_completion(executor, spec)

        patterns = hooks.get("rank_variables") or ()
        count = len(self.read_outputs(directory))
        assert count == self.max_processes, f"{count} of {self.max_processes} processes ran"
        for text in self.read_outputs(directory):
            found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
            others = found.keys() - environment.keys() - _SHELL_VARIABLES - _JPSI_VARIABLES
            unexpected = [name for name in others if not any(fnmatchcase(name, it) for it in patterns)]
            assert found["A"] == "it's", f'the spec sets A to "it\'s"; a process has {found.get("A")!r}'
            assert unexpected == [], (
                "with inherit_environment=False a process has variables that rank_variables does not name: "
                f"{unexpected}"
            )

    def test_every_process_has_its_node_in_a_file(self, executor: JobExecutor, directory: Path) -> None:
        """`JPSI_NODEFILE` has a line for each process."""
        if self.max_processes == 1:
            pytest.skip("it starts one process")
        self.run_to_completion(executor, self.spec('cat "$JPSI_NODEFILE" >"$1/$$"', directory))

        for text in self.read_outputs(directory):
            count = len(text.splitlines())
            assert count == self.max_processes, (
                f"the node file should have a line for each of {self.max_processes} processes; it has {count}"
            )

    def test_a_cancelled_job_leaves_no_process_behind(self, executor: JobExecutor, directory: Path) -> None:
        """Every process of the job ends."""
        job = Job(self.spec('echo >"$1/$$"; exec sleep 1000', directory))
        executor.submit(job)
        self.wait_until(
            lambda: len(self.read_outputs(directory)) == self.max_processes,
            f"the launcher has started {self.max_processes} processes",
        )

        job.cancel()
        status = job.wait(self.timeout_seconds)

        assert status is not None, f"{job!r} was cancelled, and has not ended in {self.timeout_seconds:g} s"
        assert status.state is JobState.CANCELED, f"the job was cancelled; it {_describe(status)}"
        self.wait_until(lambda: processes_of(job.id) == [], "the cancelled job has left no process")


def _describe(status: JobStatus) -> str:
    """Return the rest of a sentence about a job."""
    code = "without an exit code" if status.exit_code is None else f"with exit code {status.exit_code}"
    return f"is {status.state.name} {code}{f' ({status.message})' if status.message else ''}"


def _assert_completed(status: JobStatus) -> None:
    assert status.state is JobState.COMPLETED, f"every process exited with 0; the job {_describe(status)}"


def _pids(directory: Path) -> set[int]:
    """Return the pids after which processes have named their files."""
    return {int(path.name) for path in directory.iterdir()}
