"""The names of the specification: each method is there, as a method or as what Python has instead."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, JobStatus, aio
from jpsi_testing import PluginDirectory

PATIENCE = 60.0
FINAL = [JobState.COMPLETED, JobState.FAILED, JobState.CANCELED]

#: What the specification calls the methods of a class, and what jpsi has.
NAMES: dict[type, dict[str, str]] = {
    JobExecutor: {
        "getName": "name",
        "getVersion": "version",
        "submit": "submit",
        "cancel": "cancel",
        "setJobStatusCallback": "set_job_status_callback",
        "list": "list",
        "attach": "attach",
        "getInstance": "get_instance",
    },
    Job: {
        "getId": "id",
        "getNativeId": "native_id",
        "setSpec, getSpec": "spec",
        "getStatus": "get_status",
        "wait": "wait",
        "cancel": "cancel",
        "setStatusCallback": "set_status_callback",
    },
    JobStatus: {
        "getState": "state",
        "getTime": "time",
        "getMetadata": "metadata",
        "getExitCode": "exit_code",
        "getMessage": "message",
        "isFinal": "final",
    },
    JobState: {"isGreaterThan": "is_greater_than", "isFinal": "final"},
    jpsi.JobStatusCallback: {"jobStatusChanged": "job_status_changed"},
    jpsi.InvalidJobException: {"getMessage": "message", "getException": "exception"},
    jpsi.SubmitException: {
        "getMessage": "message",
        "getException": "exception",
        "isTransient": "is_transient",
    },
    jpsi.UnreachableStateException: {"getStatus": "get_status"},
    jpsi.ResourceSpecV1: {
        "getVersion": "version",
        "setNodeCount, getNodeCount": "node_count",
        "setExclusiveNodeUse, getExclusiveNodeUse": "exclusive_node_use",
        "setProcessCount, getProcessCount": "process_count",
        "setProcessesPerNode, getProcessesPerNode": "processes_per_node",
        "setCPUCoresPerProcess, getCPUCoresPerProcess": "cpu_cores_per_process",
        "setGPUCoresPerProcess, getGPUCoresPerProcess": "gpu_cores_per_process",
    },
    JobSpec: {
        "setName, getName": "name",
        "setDirectory, getDirectory": "directory",
        "setExecutable, getExecutable": "executable",
        "setArguments, getArguments": "arguments",
        "setInheritEnvironment, getInheritEnvironment": "inherit_environment",
        "setEnvironment, getEnvironment": "environment",
        "setStdinPath, getStdinPath": "stdin_path",
        "setStdoutPath, getStdoutPath": "stdout_path",
        "setStderrPath, getStderrPath": "stderr_path",
        "setPreLaunch, getPreLaunch": "pre_launch",
        "setPostLaunch, getPostLaunch": "post_launch",
        "setResources, getResources": "resources",
        "setAttributes, getAttributes": "attributes",
    },
    JobAttributes: {
        "setDuration, getDuration": "duration",
        "setQueueName, getQueueName": "queue_name",
        "setProjectName, getProjectName": "project_name",
        "setReservationId, getReservationId": "reservation_id",
        "setCustomAttribute": "set_custom_attribute",
        "getCustomAttribute": "get_custom_attribute",
    },
}
EXAMPLES: dict[type, object] = {
    jpsi.InvalidJobException: jpsi.InvalidJobException("wrong"),
    jpsi.SubmitException: jpsi.SubmitException("busy"),
    jpsi.UnreachableStateException: jpsi.UnreachableStateException("gone", JobStatus(JobState.FAILED)),
}


@pytest.mark.clause("method-names")
@pytest.mark.parametrize(
    ("owner", "name"),
    [(owner, name) for owner, names in NAMES.items() for name in names.values()],
    ids=lambda it: it if isinstance(it, str) else it.__name__,
)
def test_each_method_of_the_specification_exists(owner: type, name: str) -> None:
    assert hasattr(EXAMPLES.get(owner, owner), name)


@pytest.mark.clause("method-names")
def test_the_page_lists_each_method_that_is_an_attribute() -> None:
    documents = yaml.safe_load((Path(__file__).parents[3] / "docs/conformance.yaml").read_text())
    clauses = [it for document in documents for section in document["sections"] for it in section["clauses"]]
    (deviation,) = (it["deviates"] for it in clauses if it["id"] == "method-names")

    for names in NAMES.values():
        for theirs, ours in names.items():
            if theirs[:3] in {"get", "set"} and "get_" not in ours and "set_" not in ours:
                assert f"`{ours}`" in deviation, (theirs, ours)


@pytest.mark.clause("method-names")
def test_methods_of_the_specification_behave_as_ours() -> None:
    job, states = Job(), list[JobState]()
    job.set_status_callback(lambda _, status: states.append(status.state))
    job._publish(JobStatus(JobState.QUEUED))
    job.wait(JobState.QUEUED)
    job.set_status_callback(None)
    job._publish(JobStatus(JobState.FAILED))

    with pytest.raises(jpsi.UnreachableStateException) as caught:
        job.wait(JobState.COMPLETED)

    assert states == [JobState.QUEUED]
    assert job.get_status() is job.status
    assert caught.value.get_status() is job.status
    assert [jpsi.SubmitException("x", transient=it).is_transient() for it in (True, False)] == [True, False]


WAITS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "one": ((JobState.QUEUED,), {}),
    "several": ((JobState.ACTIVE, JobState.QUEUED, JobState.COMPLETED), {}),
    "a list": (([JobState.ACTIVE, JobState.QUEUED],), {}),
    "a timeout before": ((PATIENCE, JobState.QUEUED, JobState.ACTIVE), {}),
    "a timeout after": ((JobState.QUEUED, JobState.ACTIVE, timedelta(seconds=PATIENCE)), {}),
    "a list and a timeout after": (([JobState.QUEUED], PATIENCE), {}),
    "a timeout and a list": ((PATIENCE, [JobState.QUEUED]), {}),
    "no timeout before": ((None, JobState.QUEUED), {}),
    "no timeout, and a list": ((None, [JobState.QUEUED]), {}),
    "a timeout by name": ((JobState.QUEUED, JobState.ACTIVE), {"timeout": PATIENCE}),
    "states by name": ((PATIENCE,), {"target_states": [JobState.QUEUED]}),
    "both by name": ((), {"timeout": PATIENCE, "target_states": JobState.QUEUED}),
    "some by name": ((JobState.ACTIVE,), {"target_states": JobState.QUEUED}),
}


@pytest.mark.clause("wait-target", "wait-timeout")
@pytest.mark.parametrize(("waited", "named"), WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("way", ["job", "aio"])
def test_any_number_of_states_is_waited_for(way: str, waited: tuple[Any, ...], named: dict[str, Any]) -> None:
    job = Job()
    job._publish(JobStatus(JobState.QUEUED))

    status = job.wait(*waited, **named) if way == "job" else asyncio.run(aio.wait(job, *waited, **named))

    assert status is not None
    assert status.state is JobState.QUEUED


@pytest.mark.clause("wait-timeout")
@pytest.mark.parametrize(
    ("waited", "named"),
    [((0,), {}), ((JobState.ACTIVE, 0), {}), ((0, *FINAL), {}), (FINAL, {"timeout": 0}), ((FINAL, 0.0), {})],
    ids=repr,
)
def test_a_timeout_is_accepted_in_each_form(waited: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert Job().wait(*waited, **named) is None


@pytest.mark.parametrize(
    ("waited", "named"),
    [((1, 2), {}), ((1,), {"timeout": 2}), (("QUEUED",), {}), (([],), {}), ((True,), {}), ((7, "x"), {})],
    ids=repr,
)
def test_wait_refuses_an_argument_that_is_neither_a_time_nor_a_state(
    waited: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"^wait\(\) takes"):
        Job().wait(*waited, **named)


@pytest.mark.clause("spec-attributes")
@pytest.mark.parametrize("made", [JobSpec(), JobSpec(attributes=None), JobSpec("/bin/true")], ids=repr)
def test_attributes_can_be_set(made: JobSpec) -> None:
    made.attributes.queue_name = "debug"

    assert made.attributes.queue_name == "debug"
    made.attributes = None  # type: ignore[assignment]  # as programs may
    assert made.attributes == JobAttributes()
    assert JobSpec().attributes is not JobSpec().attributes


@pytest.mark.clause("spec-attributes")
def test_a_job_runs_with_attributes_that_were_only_looked_at(executor: JobExecutor) -> None:
    spec = JobSpec("/bin/true")
    assert spec.attributes.duration is None
    job = Job(spec)

    executor.submit(job)

    status = job.wait(PATIENCE)
    assert status is not None
    assert status.state is JobState.COMPLETED


LAUNCHER = """
from jpsi.plugin import ShellLine, hookimpl

@hookimpl
def launch():
    return [ShellLine('"$@"')]
"""


@pytest.mark.clause("python-side-loading", "python-versions")
def test_a_launcher_is_obtained_by_its_name_and_version(plugin_directory: PluginDirectory) -> None:
    plugin_directory.add(
        "test-launchers",
        "0.3",
        entry_points={"jpsi.launchers": {"twice": "test_launchers"}},
        files={"test_launchers.py": LAUNCHER},
    )

    launcher = jpsi.Launcher.get_instance("Twice", ">= 0.2")

    assert (launcher.name, str(launcher.version)) == ("twice", "0.3")
    assert jpsi.Launcher.get_instance("single").name == "single"
    with pytest.raises(jpsi.PluginError, match=r"0\.3"):
        jpsi.Launcher.get_instance("twice", "< 0.2")
    with pytest.raises(jpsi.PluginError, match="'nosuch'"):
        jpsi.Launcher.get_instance("nosuch")


@pytest.mark.clause("python-errors-kept", "python-errors-alone")
def test_a_broken_launcher_is_an_error_for_jobs_that_name_it(
    plugin_directory: PluginDirectory,
) -> None:
    plugin_directory.add(
        "test-launchers",
        entry_points={"jpsi.launchers": {"broken": "test_launchers"}},
        files={"test_launchers.py": "raise RuntimeError('out of order')"},
    )

    assert jpsi.Launcher.get_instance("single").name == "single"
    for _ in range(2):
        with pytest.raises(jpsi.PluginError, match="out of order"):
            jpsi.Launcher.get_instance("broken")
