"""Executors by their names, their configuration, launchers, and jobs that other programs submitted."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from packaging.version import Version

import psij
from jpsi.plugin import CommandResult
from jpsi_psij.pbs_listing import parse_qstat
from jpsi_psij.slurm_listing import parse_squeue
from jpsi_testing import PluginDirectory
from psij import Job, JobExecutor, JobExecutorConfig, JobSpec, JobState, Launcher, ResourceSpecV1
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmExecutorConfig, SlurmJobExecutor
from psij.launchers import MultipleLauncher
from psij.serialize import JSONSerializer

SECONDS = timedelta(seconds=60)


@pytest.mark.parametrize(
    "name",
    ["local", "slurm", "slurm_single", "pbs", "pbspro", "pbs_classic", "torque", "lsf", "flux", "SLURM"],
)
def test_names_of_psij_are_known(name: str) -> None:
    executor = JobExecutor.get_instance(name, ">= 0.0.1")

    assert executor.name == name
    assert isinstance(executor.version, Version)
    assert isinstance(executor, BatchSchedulerExecutor) == (name not in {"local", "flux"})


@pytest.mark.parametrize("name", ["cobalt", "saga", "rp", "Cobalt", "nonsense"])
def test_names_that_jpsi_does_not_have_are_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match=r"jpsi has no executor|no executor 'nonsense'; installed: "):
        JobExecutor.get_instance(name, ">= 0.0.1")


def test_plugins_of_psij_python_are_named_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site may have published an executor by a descriptor."""
    (tmp_path / "psij-descriptors").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(ValueError, match=r"no executor 'site'.*; psij-python's plugins in .* are not read"):
        JobExecutor.get_instance("site")


def test_names_are_listed() -> None:
    assert JobExecutor.get_executor_names() >= {"local", "slurm", "pbs", "pbspro"}


def test_configurations_become_those_of_jpsi(tmp_path: Path) -> None:
    config = SlurmExecutorConfig(work_directory=tmp_path / "work", queue_polling_interval=5, keep_files=True)

    executor = JobExecutor.get_instance("slurm", config=config)

    settings = executor._executor.system.site().config
    assert settings.work_directory == tmp_path / "work"
    assert settings.longest_interval == timedelta(seconds=5)
    assert JobExecutorConfig.DEFAULT.settings_for_jpsi() == {}
    assert BatchSchedulerExecutorConfig().keep_files is False
    assert JobExecutor.get_instance("local", config=config).config is config


def test_the_submit_script_can_be_written(slurm: None, tmp_path: Path) -> None:
    executor, text = SlurmJobExecutor(), io.StringIO()
    job = Job(JobSpec("/bin/date", directory=tmp_path, resources=ResourceSpecV1()))

    executor.generate_submit_script(job, executor._create_script_context(job), text)

    assert "/bin/date" in text.getvalue()
    assert "--exclusive" not in text.getvalue()


@pytest.mark.parametrize(("name", "lines"), [("single", 1), ("multiple", 3)])
def test_a_launch_command_starts_the_processes(name: str, lines: int, tmp_path: Path) -> None:
    spec = JobSpec("/bin/echo", ["a b"], resources=ResourceSpecV1(process_count=3))
    launcher = Launcher.get_instance(name)

    found = subprocess.run(launcher.get_launch_command(Job(spec)), capture_output=True, text=True, check=True)
    spec.stdout_path = tmp_path / "out"
    subprocess.run(launcher.get_launch_command(Job(spec)), check=True)

    assert found.stdout == "a b\n" * lines
    assert (tmp_path / "out").read_text() == found.stdout


def test_a_launch_command_has_the_exit_code() -> None:
    job = Job(JobSpec("/bin/sh", ["-c", "exit 4"], resources=ResourceSpecV1(process_count=2)))

    assert subprocess.run(MultipleLauncher().get_launch_command(job), check=False).returncode == 4


def test_launchers_have_names() -> None:
    assert isinstance(Launcher.get_instance("multiple"), MultipleLauncher)
    assert Launcher.get_launcher_names() >= {"single", "multiple", "mpirun"}
    with pytest.raises(ValueError, match="no launcher 'nonsense'"):
        Launcher.get_instance("nonsense")


def test_classes_that_a_program_derives_do_not_replace_those_of_psij() -> None:
    class Mine(MultipleLauncher):
        """A launcher of a program."""

    class MyExecutor(SlurmJobExecutor):
        """An executor of a program."""

    assert type(Launcher.get_instance("multiple")) is MultipleLauncher
    assert type(JobExecutor.get_instance("slurm")) is SlurmJobExecutor
    assert (Mine().name, MyExecutor().name) == ("multiple", "slurm")


def submit_elsewhere(name: str) -> str:
    """Submit a job that waits, without jpsi."""
    if name == "slurm":
        command, script = (
            ["sbatch", "--parsable", "--hold", "--job-name=other", "--output=/dev/null"],
            "#!/bin/sh\nsleep 60\n",
        )
    else:
        command, script = ["qsub", "-h", "-N", "other", "-o", "/dev/null", "-e", "/dev/null"], "sleep 60\n"
    return subprocess.run(command, input=script, capture_output=True, text=True, check=True).stdout.strip()


def with_native_id(native_id: str) -> Job:
    job = Job()
    job._native_id = native_id
    return job


@pytest.mark.parametrize("name", ["slurm", "pbs"])
def test_jobs_of_other_programs_are_listed_held_released_and_cancelled(
    name: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(name)
    executor, native_id = JobExecutor.get_instance(name), submit_elsewhere(name)

    (held,) = executor.info([with_native_id(native_id)])
    assert held.status.state is JobState.HELD
    assert held.current_info.dispatch_time is None

    executor.release(with_native_id(native_id))
    until(lambda: executor.info()[0].status.state is JobState.ACTIVE)
    (running,) = executor.info()
    info = running.current_info
    assert running.native_id == native_id
    assert running.spec is not None
    assert running.spec.name == "other"
    assert info.owner is not None
    assert info.resourcelist[0]["procs"] == 1
    for moment in (info.submission_time, info.dispatch_time):
        assert moment is not None
        assert abs(datetime.now().astimezone() - moment) < timedelta(minutes=5)
    assert executor.info(owner=info.owner)
    assert executor.info(owner="nobody else") == []
    serialized = JSONSerializer()._from_spec(running.spec)
    assert json.dumps([serialized["attributes"], serialized["resources"], info.resourcelist])

    executor.cancel(with_native_id(native_id))
    until(lambda: executor.info() == [])


def until(is_true: Callable[[], bool]) -> None:
    for _ in range(300):
        if is_true():
            return
        subprocess.run(["/bin/sleep", "0.1"], check=True)
    pytest.fail("it did not happen")


def test_a_job_of_another_executor_of_this_machine_is_listed_and_cancelled() -> None:
    job = Job(JobSpec("/bin/sleep", ["60"], name="it", resources=ResourceSpecV1(process_count=2)))
    JobExecutor.get_instance("local").submit(job)
    job.wait(SECONDS, JobState.ACTIVE)
    executor = JobExecutor.get_instance("local")

    (listed,) = executor.info()
    assert listed.native_id == job.native_id
    assert listed.spec is not None
    assert listed.spec.name == "it"
    assert listed.current_info.resourcelist[0]["procs"] == 2

    assert job.native_id is not None
    executor.cancel(with_native_id(job.native_id))
    assert (status := job.wait(SECONDS)) is not None
    assert status.final
    assert executor.info() == []


def test_what_a_system_cannot_do_is_refused() -> None:
    executor = JobExecutor.get_instance("local")

    with pytest.raises(psij.SubmitException, match="the executor local cannot hold jobs"):
        executor.hold(with_native_id("1.2.3"))
    with pytest.raises(psij.SubmitException, match="has no native id"):
        executor.cancel(Job())


def test_what_a_site_does_not_offer_is_refused(slurm: None, plugin_directory: PluginDirectory) -> None:
    imports = "from jpsi.plugin import NOT_OFFERED, hookimpl"
    plugin_directory.add(
        "jpsi-site",
        entry_points={"jpsi.overrides": {"slurm": "jpsi_site"}},
        files={"jpsi_site.py": f"{imports}\nhold = hookimpl(lambda: NOT_OFFERED)\n"},
    )
    native_id = submit_elsewhere("slurm")

    with pytest.raises(psij.SubmitException, match="the executor slurm cannot hold jobs"):
        JobExecutor.get_instance("slurm").hold(with_native_id(native_id))


def test_a_refusal_of_the_batch_system_is_raised(slurm: None) -> None:
    with pytest.raises(psij.SubmitException, match="job 99"):
        JobExecutor.get_instance("slurm").hold(with_native_id("99"))


@pytest.mark.parametrize("action", ["hold", "release", "cancel"])
@pytest.mark.parametrize("native_id", ["--me", "1 OR job_id > 0", "1,2"])
def test_text_that_is_no_native_id_reaches_no_command(slurm: None, action: str, native_id: str) -> None:
    waiting = submit_elsewhere("slurm")
    executor = JobExecutor.get_instance("slurm")

    with pytest.raises(psij.SubmitException, match="is no native id of slurm"):
        getattr(executor, action)(with_native_id(native_id))

    assert [it.status.state for it in executor.info([with_native_id(waiting)])] == [JobState.HELD]


def test_listed_jobs_can_be_cancelled_but_not_submitted_again() -> None:
    job = Job(JobSpec("/bin/sleep", ["60"]))
    JobExecutor.get_instance("local").submit(job)
    job.wait(SECONDS, JobState.ACTIVE)
    executor = JobExecutor.get_instance("local")

    (listed,) = executor.info()
    with pytest.raises(psij.InvalidJobException, match="was submitted already"):
        executor.submit(listed)
    executor.cancel(listed)

    for it in (job, listed):
        assert (status := it.wait(SECONDS)) is not None
        assert status.state is JobState.CANCELED


def test_output_of_qstat_that_is_no_json_is_refused() -> None:
    with pytest.raises(psij.SubmitException, match="no valid JSON"):
        list(parse_qstat(CommandResult(returncode=0, stdout='{"a": "b\\c')))


def squeue_row(
    native_id: str, state: str, reason: str, tasks: str = "1", directory: str = "/", start: str = "N/A"
) -> str:
    first = [native_id, "me", state, reason, "(null)", tasks, "1", "10:00", "0:00", "debug"]
    return "|=|".join([*first, "N/A", start, directory, "", "login", "it|=|"])


@pytest.mark.parametrize(
    ("word", "reason", "state"),
    [
        ("SPECIAL_EXIT", "JobHeldUser", JobState.HELD),
        ("REQUEUE_HOLD", "JobHeldAdmin", JobState.HELD),
        ("RESV_DEL_HOLD", "None", JobState.QUEUED),
        ("PENDING", "Priority", JobState.QUEUED),
        ("RUNNING", "None", JobState.ACTIVE),
    ],
)
def test_held_jobs_of_slurm_are_held_in_each_of_its_states(word: str, reason: str, state: JobState) -> None:
    (listed,) = parse_squeue(CommandResult(returncode=0, stdout=squeue_row("1", word, reason)))

    assert listed.status.state is state


@pytest.mark.parametrize(("word", "is_known"), [("PENDING", False), ("RUNNING", True)])
def test_the_start_of_a_job_that_waits_is_an_estimate(word: str, is_known: bool) -> None:
    row = squeue_row("1", word, "Priority", start="2026-01-02T03:04:05")

    (listed,) = parse_squeue(CommandResult(returncode=0, stdout=row))

    assert (listed.info.dispatch_time is not None) == is_known


def test_a_row_that_cannot_be_read_costs_no_other_row(caplog: pytest.LogCaptureFixture) -> None:
    rows = [
        squeue_row("1", "RUNNING", "None", tasks="many"),
        squeue_row("2", "RUNNING", "None", directory="/a\x1cb"),
        squeue_row("3", "RUNNING", "None", tasks="*"),
    ]

    listed = list(parse_squeue(CommandResult(returncode=0, stdout="\n".join(rows))))

    assert [(it.native_id, str(it.spec.directory)) for it in listed] == [("2", "/a\x1cb")]
    assert len(caplog.records) == 1


def test_a_job_of_qstat_that_cannot_be_read_costs_no_other_job(caplog: pytest.LogCaptureFixture) -> None:
    good = {"job_state": "R", "Job_Name": "it"}
    jobs = {"1.h": good | {"ctime": "soon"}, "2.h": good, "3.h": good | {"Resource_List": {"ncpus": "many"}}}

    listed = list(parse_qstat(CommandResult(returncode=0, stdout=json.dumps({"Jobs": jobs}))))

    assert [it.native_id for it in listed] == ["2.h"]
    assert len(caplog.records) == 1


def test_each_job_with_one_native_id_is_filled(slurm: None) -> None:
    native_id = submit_elsewhere("slurm")
    jobs = [with_native_id(native_id), with_native_id(native_id)]

    found = JobExecutor.get_instance("slurm").info(jobs)

    assert found == jobs
    assert [it.status.state for it in jobs] == [JobState.HELD] * 2


def test_references_in_stored_jobs_are_as_the_user_wrote_them() -> None:
    executor = JobExecutor.get_instance("local")
    spec = JobSpec("/bin/sh", ["-c", "sleep 60", "${HOME}", "$${HOME}"], environment={"A": "${B}"})
    job = Job(spec)
    executor.submit(job)
    job.wait(SECONDS, JobState.ACTIVE)

    (listed,) = executor.info()
    job.cancel()

    assert listed.spec is not None
    assert listed.spec.arguments == spec.arguments


def test_elements_of_arrays_are_found_by_their_ids_and_by_that_of_the_array(slurm: None) -> None:
    command = ["sbatch", "--parsable", "--hold", "--array=1-3"]
    script = "#!/bin/sh\nsleep 60\n"
    array = subprocess.run(command, input=script, capture_output=True, text=True, check=True).stdout.strip()
    jobs = [with_native_id(array), with_native_id(f"{array}_2")]

    found = JobExecutor.get_instance("slurm").info(jobs)

    assert {it.native_id for it in found} == {array, f"{array}_2"}
    assert [it.status.state for it in jobs] == [JobState.HELD] * 2
