"""`JobExecutor`: names, versions, configuration, and errors that no change of the job can fix."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState
from jpsi.contract.engine import InterruptedSubmission, Submission
from jpsi.registry import metadata

PATIENCE = 30


@pytest.mark.clause("executor-name", "executor-instance")
@pytest.mark.parametrize("name", ["local", "LOCAL", "Local"])
def test_names_ignore_case(name: str) -> None:
    assert JobExecutor(name).name == "local"
    assert JobExecutor.get_instance(name).name == "local"


@pytest.mark.clause("executor-instance")
def test_without_a_name_it_is_local() -> None:
    assert JobExecutor().name == "local"


@pytest.mark.clause("executor-version")
def test_the_version_is_that_of_the_distribution() -> None:
    executor = JobExecutor.get_instance("local", ">= 0.1")

    assert str(executor.version)
    assert executor.version.release >= (0, 1)


def test_a_missing_version_is_named_with_the_installed_ones() -> None:
    with pytest.raises(jpsi.PluginError, match=r"no executor 'local' with version > 99; installed: 0"):
        JobExecutor.get_instance("local", "> 99")


def test_an_invalid_constraint_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a version constraint"):
        JobExecutor.get_instance("local", "newest")


def test_the_error_for_a_missing_executor_names_the_installed_ones() -> None:
    with pytest.raises(jpsi.PluginError, match=r"no executor 'nonsense'; installed: .*local"):
        JobExecutor.get_instance("nonsense")


def test_a_url_needs_a_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    found = metadata.of_path
    monkeypatch.setattr(metadata, "of_path", lambda path: [it for it in found(path) if it.name != "jpsi-ssh"])

    with pytest.raises(jpsi.PluginError, match=r"no transport 'ssh'; .*try: .*install jpsi-ssh"):
        JobExecutor.get_instance("local", url="ssh://x")
    with pytest.raises(jpsi.ConfigError, match=r"a URL looks like ssh://.*; .* correct `url` of the target"):
        JobExecutor.get_instance("local", url="cluster.example.org")


def test_a_configuration_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="is configured by LocalConfig"):
        JobExecutor.get_instance("local", config={"work_directory": "/tmp"})  # type: ignore[arg-type]


def test_a_work_directory_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    executor = JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=tmp_path / "file" / "x"))
    job = Job(JobSpec("/bin/true"))

    with pytest.raises(jpsi.SubmitException, match="Not a directory") as caught:
        executor.submit(job)

    assert not caught.value.transient
    assert job.status.state is JobState.NEW


@pytest.mark.parametrize(
    ("number", "transient"), [(errno.ENOSPC, True), (errno.EMFILE, True), (errno.EACCES, False)]
)
def test_a_failing_disk_leaves_nothing_and_the_job_can_be_submitted_again(
    executor: JobExecutor,
    state_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    transient: bool,
) -> None:
    job = Job(JobSpec("/bin/true"))
    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.host.write_all", _failing(number))
        with pytest.raises(jpsi.SubmitException) as caught:
            executor.submit(job)

    assert caught.value.transient is transient
    assert os.strerror(number) in str(caught.value)
    assert list(state_home.glob("work/local/*/jobs/*")) == []
    executor.submit(job)
    status = job.wait(PATIENCE)
    assert status is not None
    assert status.state is JobState.COMPLETED


def _failing(number: int):  # noqa: ANN202  a stand-in
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_shell_that_does_not_exist_is_a_clear_error(tmp_path: Path) -> None:
    config = jpsi.ExecutorConfig(work_directory=tmp_path, shell="/no/such/sh")
    executor = JobExecutor("local", config=config)

    with pytest.raises(jpsi.SubmitException, match="could not be started"):
        executor.submit(Job(JobSpec("/bin/true")))

    assert executor.recover() == []


@pytest.mark.parametrize("nonsense", [JobSpec("/bin/true"), None, "job"])
def test_an_object_that_is_no_job_is_refused(nonsense: object) -> None:
    executor = JobExecutor("local")

    with pytest.raises(TypeError, match="a Job is needed"):
        executor.submit(nonsense)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a Job is needed"):
        executor.attach(nonsense, "1")  # type: ignore[arg-type]


def test_files_are_private(executor: JobExecutor, state_home: Path) -> None:
    before = os.umask(0)
    try:
        job = Job(JobSpec("/bin/true", environment={"PASSWORD": "secret"}))
        executor.submit(job)
        job.wait(PATIENCE)
    finally:
        os.umask(before)

    (root,) = state_home.glob("work/local/*")
    assert root.stat().st_mode & 0o777 == 0o700
    for path in root.rglob("*.json"):
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_a_directory_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    config = jpsi.ExecutorConfig(work_directory=tmp_path)
    first = JobExecutor("local", config=config)
    job = Job(JobSpec("/bin/true"))
    first.submit(job)
    job.wait(PATIENCE)
    (root,) = tmp_path.glob("local/*")
    root.chmod(0o777)

    with pytest.raises(jpsi.ConfigError, match="can be written by others"):
        JobExecutor("local", config=config).submit(Job(JobSpec("/bin/true")))


@pytest.mark.clause("python-core")
def test_importing_jpsi_imports_no_plugin_and_no_engine() -> None:
    program = (
        "import jpsi, sys\n"
        "jpsi.Job, jpsi.JobSpec\n"
        "bad = [m for m in sys.modules if m.startswith(('jpsi_engine', 'jpsi.registry', 'pluggy',"
        " 'importlib_metadata', 'yaml', 'packaging'))]\n"
        "assert not bad, bad\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_exported_names_are_pinned() -> None:
    assert set(jpsi.__all__) == {
        "Bind",
        "BulkException",
        "ConfigError",
        "Container",
        "Conversion",
        "Configuration",
        "Configured",
        "DocumentError",
        "DocumentWarning",
        "Dependency",
        "DependencyKind",
        "Evidence",
        "ExecutorConfig",
        "HeterogeneousResources",
        "InvalidJobException",
        "Job",
        "JobAttributes",
        "JobExecutor",
        "JobFiles",
        "JobSpec",
        "JobState",
        "JobStatus",
        "JobStatusCallback",
        "JobUsage",
        "JpsiError",
        "Launcher",
        "Output",
        "OutputPart",
        "Plugin",
        "PluginError",
        "Queue",
        "Reason",
        "ResourceSpec",
        "ResourceSpecV1",
        "StageIn",
        "StageOut",
        "StageOutFlags",
        "StagingMode",
        "StagingProgress",
        "Streams",
        "SubmitException",
        "System",
        "TransferError",
        "TransportError",
        "UnreachableStateException",
        "configuration",
        "document_command",
        "escape",
        "parse_duration",
        "plugins",
        "read_document",
        "read_script",
        "wait_all",
        "write_document",
    }
    assert all(getattr(jpsi, name) is not None for name in jpsi.__all__)
    assert set(jpsi.__all__) <= set(dir(jpsi))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        jpsi.nonsense  # noqa: B018  the access is the test


def test_a_job_has_the_native_id_that_it_turns_out_to_have(executor: JobExecutor) -> None:
    job = Job(JobSpec("/bin/sh", ["-c", "read line"], stdin_path=Path("/dev/zero")))
    executor.submit(job)

    executor._engine._setup.renamed(job.id, "777")  # type: ignore[attr-defined]  # as that of a batch system

    assert job.native_id == "777"
    job.cancel()
    assert job.wait(PATIENCE) is not None


def test_mistyped_custom_attributes_are_warned_of_once(
    executor: JobExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    custom = {"slrum.qos": "debug", "qos": 1, "SLURM.qos": 1, "local.x": 1, "ours.x": 1, "job.x": "a"}
    spec = JobSpec("/bin/true", attributes=jpsi.JobAttributes(custom_attributes=custom))

    jobs = [Job(spec), Job(spec)]
    for job in jobs:
        executor.submit(job)

    assert [record.getMessage() for record in caplog.records] == [
        "no plugin reads the custom attribute 'slrum.qos'; did you mean 'slurm.qos'?",
        "no plugin reads the custom attribute 'qos'; did you mean 'local.qos'?",
    ]
    assert [job.wait(PATIENCE) is not None for job in jobs] == [True, True]


def test_a_late_interrupt_is_raised_after_the_job_is_bound(
    executor: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, interrupt = executor._engine.submit, KeyboardInterrupt()

    def interrupted(submission: Submission) -> str:
        raise InterruptedSubmission(submit(submission), interrupt)

    monkeypatch.setattr(executor._engine, "submit", interrupted)
    job = Job(JobSpec("/bin/true"))

    with pytest.raises(KeyboardInterrupt) as caught:
        executor.submit(job)

    assert caught.value is interrupt
    assert job.native_id is not None
    status = job.wait(PATIENCE)
    assert status is not None
    assert status.state is JobState.COMPLETED
