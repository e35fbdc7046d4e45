"""Clauses of the specification that belong to no module more than to another."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

import jpsi
from documents import DOCUMENT, document_problems, system
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, JobStatus, read_document
from jpsi.contract.hookspecs import ExecutorHooks
from jpsi.layers import layer as hook_checks
from jpsi_testing import toy
from manual_executor import PATIENCE, ManualExecutor


@pytest.mark.clause("submit-refused")
def test_a_refused_submission_publishes_no_status(executor: JobExecutor) -> None:
    statuses: list[JobStatus] = []
    job, other = Job(JobSpec()), Job(JobSpec("/bin/true"))
    for it in (job, other):
        it.set_job_status_callback(lambda _, status: statuses.append(status))
    executor.set_job_status_callback(lambda it, status: statuses.append(status) if it is job else None)

    with pytest.raises(jpsi.InvalidJobException):
        executor.submit(job)
    executor.submit(other)
    other.wait(PATIENCE)

    assert [status.state for status in statuses] == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]


@pytest.mark.clause("attach-callback")
def test_a_callback_of_an_attached_job_gets_its_native_id_and_executor(executor: JobExecutor) -> None:
    calls: list[tuple[str | None, JobExecutor | None, JobState]] = []
    job = Job()
    job.set_job_status_callback(lambda it, _: calls.append((it.native_id, it.executor, it.status.state)))
    process = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)

    executor.attach(job, str(process.pid))
    process.communicate(b"")
    job.wait(PATIENCE)

    assert calls
    assert all(it[:2] == (job.native_id, executor) for it in calls)
    assert all(state is not JobState.NEW for _, _, state in calls)


@pytest.mark.clause("job-id")
def test_ids_of_jobs_of_several_processes_differ() -> None:
    program = "import jpsi; print(*(jpsi.Job().id for _ in range(100)))"
    processes = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]

    ids = [it for process in processes for it in process.communicate()[0].split()]

    assert len(ids) == 200
    assert len(set(ids)) == 200


@pytest.mark.clause("spec-constructor")
def test_positional_arguments_of_a_spec_are_executable_and_arguments() -> None:
    fields: dict[str, Any] = {
        "name": "a",
        "executable": "/bin/b",
        "arguments": ["c"],
        "directory": Path("/d"),
        "inherit_environment": False,
        "environment": {"E": "e"},
        "stdin_path": Path("/f"),
        "stdout_path": Path("/g"),
        "stderr_path": Path("/h"),
        "resources": jpsi.ResourceSpecV1(),
        "attributes": JobAttributes(),
    }

    by_name = JobSpec(**fields)

    assert all(getattr(by_name, name) == value for name, value in fields.items())
    assert JobSpec("/bin/b", ["c"]) == JobSpec(executable="/bin/b", arguments=["c"])
    with pytest.raises(TypeError):
        JobSpec("/bin/b", ["c"], Path("/d"))  # type: ignore[misc]  # the mistake


@pytest.mark.clause("callback-status")
def test_a_callback_may_see_a_later_status_than_its_own() -> None:
    job = Job()
    manual = ManualExecutor(job)
    has_ended = threading.Event()
    calls: list[tuple[JobState, JobState]] = []

    def callback(job: Job, status: JobStatus) -> None:
        assert has_ended.wait(PATIENCE)
        calls.append((status.state, job.status.state))

    job.set_job_status_callback(callback)
    manual.publish(JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED)
    has_ended.set()
    job.wait(PATIENCE)

    assert calls[0] == (JobState.QUEUED, JobState.COMPLETED)


@pytest.mark.clause("attributes-custom")
def test_custom_attributes_are_set_and_read_by_name() -> None:
    attributes = JobAttributes()

    attributes.set_custom_attribute("slurm.qos", "high")

    assert attributes.get_custom_attribute("slurm.qos") == "high"
    assert attributes.get_custom_attribute("slurm.constraint") is None


@pytest.mark.clause("python-batch-class")
def test_a_backend_inherits_nothing_and_has_the_hooks_of_a_batch_system() -> None:
    hooks = ("render_script", "submit", "parse_submit", "cancel", "query", "parse_status")

    assert [name for name in hooks if not hasattr(ExecutorHooks, name)] == []
    assert hook_checks.find_hook_problems(toy, [ExecutorHooks]) == []
    assert [name for name in hooks if not callable(getattr(toy, name, None))] == []


@pytest.mark.clause("python-work-directory")
def test_files_of_jobs_are_in_the_work_directory_that_is_configured(tmp_path: Path) -> None:
    config = jpsi.ExecutorConfig(work_directory=tmp_path / "work")
    job = Job(JobSpec("/bin/true"))

    JobExecutor.get_instance("local", config=config).submit(job)
    job.wait(PATIENCE)

    assert job.streams is not None
    assert job.streams.stdout.is_relative_to(tmp_path / "work/local")


@pytest.mark.clause("python-work-directory")
def test_by_default_files_of_jobs_are_in_the_state_directory_of_the_user(state_home: Path) -> None:
    job = Job(JobSpec("/bin/true"))

    JobExecutor("local").submit(job)
    job.wait(PATIENCE)

    assert job.streams is not None
    assert job.streams.stdout.is_relative_to(state_home / "jpsi/work/local")


# --------------------------------------------------------------------------------- the job document


def without(*path: str | int) -> str:
    """Return DOCUMENT without the key at this path."""
    *outer, key = path
    document = value = yaml.safe_load(DOCUMENT)
    for step in outer:
        value = value[step]
    del value[key]
    return json.dumps(document)


def with_value(value: object, *path: str | int) -> str:
    """Return DOCUMENT with another value at this path."""
    *outer, key = path
    document = place = yaml.safe_load(DOCUMENT)
    for step in outer:
        place = place[step]
    place[key] = value
    return json.dumps(document)


@pytest.mark.clause("document-keys-required")
@pytest.mark.parametrize("key", ["resources", "tasks", "attributes", "version"])
def test_each_missing_required_key_of_a_document_is_a_problem(key: str) -> None:
    assert f"1: {key}: is missing" in document_problems(without(key))


@pytest.mark.clause("document-task")
@pytest.mark.parametrize("key", ["command", "slot", "count"])
def test_each_missing_required_key_of_a_task_is_a_problem(key: str) -> None:
    assert f"1: tasks[0].{key}: is missing" in document_problems(without("tasks", 0, key))


@pytest.mark.clause("document-task")
def test_a_task_is_a_dictionary() -> None:
    assert document_problems(with_value("simulate", "tasks", 0)) == [
        "1: tasks[0]: must be a mapping, not 'simulate'"
    ]


@pytest.mark.clause("document-resources-list", "document-tasks-list")
@pytest.mark.parametrize("key", ["resources", "tasks"])
def test_resources_and_tasks_are_lists(key: str) -> None:
    (vertex,) = yaml.safe_load(DOCUMENT)[key]

    assert f"1: {key}: must be a list, not a mapping" in document_problems(with_value(vertex, key))


@pytest.mark.clause("document-slot-with")
@pytest.mark.parametrize("is_there", [False, True])
def test_a_slot_contains_something(is_there: bool) -> None:
    path = ("resources", 0, "with")

    problems = document_problems(with_value([], *path) if is_there else without(*path))

    assert any(it.startswith("1: resources[0].with: ") for it in problems)


@pytest.mark.clause("document-attributes")
@pytest.mark.parametrize("path", [("attributes",), ("attributes", "system"), ("attributes", "user")])
def test_attributes_are_dictionaries(path: tuple[str, ...]) -> None:
    assert f"1: {'.'.join(path)}: must be a mapping, not a list" in document_problems(with_value([], *path))


@pytest.mark.clause("document-cwd")
@pytest.mark.parametrize("directory", ["/work", "~/work"])
def test_the_directory_of_a_document_may_be_in_the_home_directory(directory: str) -> None:
    assert str(read_document(system(f"cwd: {directory}")).directory) == directory
