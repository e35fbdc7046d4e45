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
from jpsi_testing.conformance.hook_caller import Hooks
from jpsi_testing.conformance.launcher_base import LauncherTestBase, processes_of
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.plugin_directory import PluginDirectory

# The variables that a shell adds to its environment.
_SHELL_VARIABLES = {"PWD", "OLDPWD", "SHLVL", "_"}
_JPSI_VARIABLES = {"JPSI_JOB_ID", "JPSI_NODEFILE", "PSIJ_NODEFILE"}
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
        assert status.state is JobState.COMPLETED, status
        return job

    @pytest.mark.clause("resources-processes", "python-launcher-starts")
    def test_every_process_runs_once(self, executor: JobExecutor, directory: Path) -> None:
        """The number of processes is the one that the resources ask for."""
        self.run_to_completion(executor, self.spec('echo here >"$1/$$"', directory))

        assert self.read_outputs(directory) == ["here\n"] * self.max_processes

    def test_a_process_starts_in_each_slot_of_every_kind(
        self, executor: JobExecutor, hooks: Hooks, directory: Path
    ) -> None:
        """A job with several kinds of slots is refused if the launcher does not declare `heterogeneous`."""
        spec = self.spec('echo here >"$1/$$"', directory)
        spec.resources = HeterogeneousResources(
            [ResourceSpecV1(), self.resources(max(1, self.max_processes - 1))]
        )
        if not (hooks.get("heterogeneous")):
            with pytest.raises(InvalidJobException, match="starts processes of one kind"):
                executor.submit(Job(spec))
            return

        self.run_to_completion(executor, spec)

        assert self.read_outputs(directory) == ["here\n"] * self.max_processes

    def test_a_process_that_fails_fails_the_job(self, executor: JobExecutor, directory: Path) -> None:
        """The job is FAILED with the exit code of the process."""
        status, _ = self.run(executor, self.spec('mkdir "$1/first" 2>&- && exit 7; exit 0', directory))

        assert (status.state, status.exit_code) == (JobState.FAILED, 7)

    def test_of_processes_that_fail_differently_one_gives_the_code(
        self, executor: JobExecutor, directory: Path
    ) -> None:
        """The job's exit code is that of one of the processes that failed."""
        text = 'mkdir "$1/first" 2>&- && exit 3; mkdir "$1/second" 2>&- && exit 5; exit 0'

        status, _ = self.run(executor, self.spec(text, directory))

        assert status.state is JobState.FAILED
        assert status.exit_code in {3, 5}

    def test_a_process_that_a_signal_ends_fails_the_job_with_the_code_of_that(
        self, executor: JobExecutor, directory: Path
    ) -> None:
        """The exit code is 128 plus the number of the signal."""
        status, _ = self.run(
            executor, self.spec('mkdir "$1/first" 2>&- && kill -s KILL $$; exit 0', directory)
        )

        assert (status.state, status.exit_code) == (JobState.FAILED, 128 + signal.SIGKILL)

    def test_a_missing_launcher_program_is_a_launch_failure(
        self, executor: JobExecutor, directory: Path
    ) -> None:
        """The job is FAILED, and the message names the program."""
        if self.program is None:
            pytest.skip("it needs no program")

        status, _ = self.run(executor, self.spec(":", directory, environment={"PATH": "/nonexistent"}))

        assert (status.state, status.reason) == (JobState.FAILED, Reason.LAUNCH)
        assert self.program in str(status.message)

    def test_output_is_that_of_the_processes(self, executor: JobExecutor, directory: Path) -> None:
        """Nothing but the output of the processes is in the job's streams."""
        job = self.run_to_completion(executor, self.spec("echo out; echo err >&2", directory))

        assert job.streams is not None
        assert job.streams.stdout.read_text() == "out\n" * self.max_processes
        assert job.streams.stderr.read_text() == "err\n" * self.max_processes

    def test_input_goes_to_the_first_process(
        self, executor: JobExecutor, directory: Path, tmp_path: Path
    ) -> None:
        """The other processes read an empty standard input."""
        (tmp_path / "in").write_text("put in\n")

        self.run_to_completion(executor, self.spec('cat >"$1/$$"', directory, stdin_path=tmp_path / "in"))

        assert self.read_outputs(directory) == [""] * (self.max_processes - 1) + ["put in\n"]

    def test_paths_may_have_any_characters(self, executor: JobExecutor, directory: Path) -> None:
        """Blanks, quotes and other special characters in paths do no harm."""
        program = directory / 'my "prog" it\'s'
        program.write_text('#!/bin/sh\npwd\necho "$1" >&2\ncat\n')
        program.chmod(0o755)
        (directory / "in $x").write_text("")
        spec = JobSpec(
            str(program),
            ['it\'s an "argument" \\ $x'],
            directory=directory,
            stdin_path=Path("in $x"),
            stdout_path=Path("out 'put"),
            stderr_path=directory / 'err "or',
            launcher=self.launcher_name,
            resources=self.resources(self.max_processes),
        )

        self.run_to_completion(executor, self.with_launcher_attributes(spec))

        assert (directory / "out 'put").read_text() == f"{directory}\n" * self.max_processes
        assert (directory / 'err "or').read_text() == 'it\'s an "argument" \\ $x\n' * self.max_processes

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

        assert proof.read_text() == "once\n"
        assert self.read_outputs(directory) == ['it\'s a "value" 1 2\n'] * self.max_processes

    def test_a_pre_launch_that_fails_starts_no_process(
        self, executor: JobExecutor, directory: Path, tmp_path: Path
    ) -> None:
        """The job is FAILED, and no process of it has run."""
        pre = tmp_path / "pre.sh"
        pre.write_text("exit 3\n")

        status, _ = self.run(executor, self.spec('echo >"$1/$$"', directory, pre_launch=pre))

        assert status.state is JobState.FAILED
        assert self.read_outputs(directory) == []

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
        assert len([name for name in seen if name.startswith("done.")]) == self.max_processes

    def test_a_process_without_inheritance_has_its_own_environment(
        self, executor: JobExecutor, hooks: Hooks, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With `inherit_environment=False` no variable of the client arrives."""
        monkeypatch.setenv("FROM_OUTSIDE", "x")
        environment: dict[str, str | None] = {"A": "it's", "PATH": "/usr/bin:/bin"}
        spec = self.spec('env >"$1/$$"', directory, environment=environment, inherit_environment=False)

        self.run_to_completion(executor, spec)

        patterns = hooks.get("rank_variables") or ()
        assert len(self.read_outputs(directory)) == self.max_processes
        for text in self.read_outputs(directory):
            found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
            unexpected = found.keys() - environment.keys() - _SHELL_VARIABLES - _JPSI_VARIABLES
            assert found["A"] == "it's"
            assert [name for name in unexpected if not any(fnmatchcase(name, it) for it in patterns)] == []

    def test_every_process_has_its_node_in_a_file(self, executor: JobExecutor, directory: Path) -> None:
        """`JPSI_NODEFILE` has a line for each process."""
        if self.max_processes == 1:
            pytest.skip("it starts one process")
        self.run_to_completion(executor, self.spec('cat "$JPSI_NODEFILE" >"$1/$$"', directory))

        for text in self.read_outputs(directory):
            assert len(text.splitlines()) == self.max_processes

    def test_a_cancelled_job_leaves_no_process_behind(self, executor: JobExecutor, directory: Path) -> None:
        """Every process of the job ends."""
        job = Job(self.spec('echo >"$1/$$"; exec sleep 1000', directory))
        executor.submit(job)
        self.wait_until(lambda: len(self.read_outputs(directory)) == self.max_processes, "every process runs")

        job.cancel()
        status = job.wait(self.timeout_seconds)

        assert status is not None
        assert status.state is JobState.CANCELED
        self.wait_until(lambda: processes_of(job.id) == [], "nothing is left")
