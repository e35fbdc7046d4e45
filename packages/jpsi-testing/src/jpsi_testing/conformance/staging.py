"""Conformance tests of staging: stage in, stage out, and cleanup of a job's files."""

from __future__ import annotations

from pathlib import Path

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi_testing.conformance.base import ExecutorTestBase, Sign, shell

_COPY = 'cat in >out; cat "$1"'


class StagingTests(ExecutorTestBase):
    """Tests of staging from the client's side to the job's and back, on one machine or two."""

    @pytest.fixture
    def client_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return the working directory of the program that submits."""
        path = tmp_path / "here"
        path.mkdir()
        monkeypatch.chdir(path)
        return path

    @pytest.fixture
    def job_directory(self, tmp_path: Path) -> Path:
        """Return the directory of the job."""
        path = tmp_path / "there"
        path.mkdir()
        return path

    @pytest.mark.parametrize("mode", StagingMode)
    def test_files_are_staged_in_and_out(
        self, executor: JobExecutor, client_directory: Path, job_directory: Path, mode: StagingMode
    ) -> None:
        """Files and trees arrive in each mode, and cleanup removes files of the job."""
        (client_directory / "a b").write_text("text")
        (client_directory / "tree").mkdir()
        (client_directory / "tree/c").write_text("more")
        spec = shell(
            _COPY,
            "tree/c",
            directory=job_directory,
            stdout_path=Path("output"),
            stage_in=[
                StageIn("a b", Path("in"), mode),
                StageIn((client_directory / "tree").as_uri(), Path("tree"), mode),
            ],
            stage_out=[StageOut(Path("out"), "results/out", mode=mode), StageOut(Path("output"), "results/")],
            cleanup=[Path("output")],
        )

        status = self.run(executor, spec)

        assert (status.state, status.exit_code) == (JobState.COMPLETED, 0), status
        assert (client_directory / "results/out").read_text() == "text"
        assert (client_directory / "results/output").read_text() == "more"
        # between two machines every mode copies
        assert (client_directory / "a b").exists() is (self.is_remote or mode is not StagingMode.MOVE)
        assert (job_directory / "in").is_symlink() is (not self.is_remote and mode is StagingMode.LINK)
        assert not (job_directory / "output").exists()

    def test_a_missing_stage_in_source_is_refused_before_submission(
        self, executor: JobExecutor, client_directory: Path
    ) -> None:
        """The job is invalid, and one exception names all problems with its staging."""
        spec = JobSpec(
            "/bin/true",
            stage_in=[StageIn("missing", Path("a")), StageIn("https://example.org/a", Path("a"))],
            cleanup=[Path("../a")],
        )

        with pytest.raises(jpsi.InvalidJobException) as caught:
            executor.submit(Job(spec))
        spec.stage_in, spec.cleanup = [StageIn("missing", Path("a"))], None
        with pytest.raises(jpsi.InvalidJobException, match=f"{client_directory}/missing' does not exist"):
            executor.submit(Job(spec))

        assert "https: is not supported" in str(caught.value)
        assert "'../a' is not below the job's directory" in str(caught.value)

    def test_a_stage_in_that_fails_ends_the_job_before_it_runs(
        self, executor: JobExecutor, client_directory: Path, job_directory: Path
    ) -> None:
        """The job is FAILED for `Reason.STAGING` in the phase `stage_in`."""
        (client_directory / "a").write_text("text")
        (job_directory / "file").write_text("")
        spec = shell(
            'echo ran >"$1"',
            client_directory / "proof",
            directory=job_directory,
            stage_in=[StageIn("a", Path("file/below"))],
        )

        status = self.run(executor, spec)

        assert (status.state, status.reason) == (JobState.FAILED, jpsi.Reason.STAGING)
        assert status.metadata["phase"] == "stage_in"
        assert "file" in (status.message or "")
        assert not (client_directory / "proof").exists()

    @pytest.mark.parametrize("code", [0, 3])
    def test_a_stage_out_that_fails_does_not_hide_the_code(
        self, executor: JobExecutor, client_directory: Path, job_directory: Path, code: int
    ) -> None:
        """The job keeps the exit code, and its other files are staged out."""
        flags = StageOutFlags.ALWAYS
        spec = shell(
            f"echo >kept; exit {code}",
            directory=job_directory,
            stage_out=[StageOut(Path("missing"), "a", flags), StageOut(Path("kept"), "kept", flags)],
            cleanup=[Path("kept")],
        )

        status = self.run(executor, spec)

        reason = jpsi.Reason.EXIT_CODE if code else jpsi.Reason.STAGING
        assert (status.state, status.exit_code, status.reason) == (JobState.FAILED, code, reason)
        assert status.metadata["stage_out"] == "failed"
        assert "stage_out failed: missing: there is no such file or directory" in (status.message or "")
        assert (client_directory / "kept").exists()
        assert (job_directory / "kept").exists()

    def test_a_failed_cleanup_is_reported(
        self, executor: JobExecutor, client_directory: Path, job_directory: Path
    ) -> None:
        """The job is COMPLETED, and its metadata and message show the failure."""
        (client_directory / "precious").write_text("")

        status = self.run(
            executor,
            shell(
                'ln -s "$1" away', client_directory, directory=job_directory, cleanup=[Path("away/precious")]
            ),
        )

        assert (status.state, status.exit_code) == (JobState.COMPLETED, 0)
        assert status.metadata["cleanup"] == "failed"
        assert "away/precious: leads out of the job's directory" in (status.message or "")
        assert (client_directory / "precious").exists()

    @pytest.mark.parametrize("code", [0, 3])
    def test_flags_select_the_final_states_for_stage_out(
        self, executor: JobExecutor, client_directory: Path, job_directory: Path, code: int
    ) -> None:
        """A file is staged out only if its flags include the state in which the job ends."""
        flags = {"ok": StageOutFlags.ON_SUCCESS, "error": StageOutFlags.ON_ERROR, "all": StageOutFlags.ALWAYS}
        missing = StageOut(Path("missing"), "missing", StageOutFlags.ALWAYS | StageOutFlags.IF_PRESENT)
        spec = shell(
            f"echo >out; exit {code}",
            directory=job_directory,
            stage_out=[*(StageOut(Path("out"), name, flag) for name, flag in flags.items()), missing],
        )

        status = self.run(executor, spec)

        assert status.exit_code == code
        assert "stage_out" not in status.metadata
        assert sorted(path.name for path in client_directory.iterdir()) == ["all", "error" if code else "ok"]

    def test_a_cancelled_job_stages_out_files_flagged_for_it(
        self, executor: JobExecutor, tmp_path: Path, client_directory: Path, job_directory: Path
    ) -> None:
        """A job that is cancelled stages out files with `ON_CANCEL` alone."""
        sign = Sign(tmp_path / "sign")
        spec = shell(
            'trap "exit 7" TERM INT QUIT XCPU; echo log >log; echo >"$1"; while :; do sleep 0.05; done',
            sign.path,
            directory=job_directory,
            stage_out=[
                StageOut(Path("log"), "log", StageOutFlags.ON_CANCEL),
                StageOut(Path("log"), "ok", StageOutFlags.ON_SUCCESS | StageOutFlags.ON_ERROR),
            ],
        )
        job = self.submit(executor, spec)
        assert sign.wait(self.timeout_seconds)

        job.cancel()

        assert self.end(job).state is JobState.CANCELED
        assert [path.name for path in client_directory.iterdir()] == ["log"]

    def test_each_of_many_jobs_has_files_of_its_own(
        self, executor: JobExecutor, client_directory: Path, job_directory: Path
    ) -> None:
        """Jobs that are submitted together stage and clean up their own files."""
        for number in range(4):
            (client_directory / f"in {number}").write_text(str(number))
            (job_directory / str(number)).mkdir()
        jobs = [
            Job(
                shell(
                    "cat in - </dev/null >out",
                    directory=job_directory / str(number),
                    stage_in=[StageIn(f"in {number}", Path("in"))],
                    stage_out=[StageOut(Path("out"), f"out {number}", mode=StagingMode.MOVE)],
                    cleanup=[Path("in")],
                )
            )
            for number in range(4)
        ]
        plain = Job(shell("exit 3"))

        executor.submit_many([*jobs, plain])

        assert [self.end(job).exit_code for job in (*jobs, plain)] == [0, 0, 0, 0, 3]
        assert [(client_directory / f"out {number}").read_text() for number in range(4)] == [
            "0",
            "1",
            "2",
            "3",
        ]
        assert [list((job_directory / str(number)).iterdir()) for number in range(4)] == [[]] * 4
