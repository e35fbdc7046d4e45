"""Runtime constraints, requested from the batch system or refused, and the recorded resources of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from fake_dispatcher import Clock, spec
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.errors import InvalidRequestError
from jpsi_records.jobs.attempt_job import AttemptFiles, job_spec
from jpsi_records.model.entities import Execution, ExecutionState
from jpsi_records.records.records import Records
from jpsi_records.store import executions


def requested_resources(records: Records, document: dict[str, Any]) -> dict[str, Any]:
    """Return the resources that the job of a new execution requests."""
    execution = records.execution(records.submit(spec("a", **document)).execution or "")
    resources = job_spec(execution, AttemptFiles(Path("/x"))).resources
    return {} if resources is None else {k: v for k, v in attrs.asdict(resources).items() if v}


@pytest.mark.clause("records-constraints")
@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"runtime_constraints": {"gpus": 2}}, {"gpu_cores_per_process": 2}),
        ({"runtime_constraints": {"gpus": True}}, {"gpu_cores_per_process": 1}),
        ({"runtime_constraints": {"gpus": False}}, {}),
        ({"runtime_constraints": {"gpus": 0}}, {}),
        ({"runtime_constraints": {"gpus": [None, 2]}}, {}),
        ({"runtime_constraints": {"gpus": [2, None]}}, {"gpu_cores_per_process": 2}),
        (
            {"runtime_constraints": {"gpus": 4}, "processes": 2},
            {"gpu_cores_per_process": 2, "process_count": 2},
        ),
        (
            {"runtime_constraints": {"gpus": [3, None]}, "processes": 2},
            {"gpu_cores_per_process": 2, "process_count": 2},
        ),
        (
            {"runtime_constraints": {"gpus": True}, "processes": 2},
            {"gpu_cores_per_process": 1, "process_count": 2},
        ),
        (
            {"runtime_constraints": {"gpus": 3}, "processes": 2, "topology": "any"},
            {"gpu_cores_per_process": 3, "cpu_cores_per_process": 2},
        ),
        ({"runtime_constraints": {"gpus": True}, "placement": {"gpus": 3}}, {"gpu_cores_per_process": 3}),
        ({"runtime_constraints": {"ram": 12e9}}, {"memory": 12_000_000_000}),
        (
            {"processes": 2, "threads": 3, "placement": {"memory_per_cpu": 10 << 20}},
            {"process_count": 2, "cpu_cores_per_process": 3, "memory": 60 << 20},
        ),
        (
            {"processes": 2, "placement": {"gpus": 2, "memory_per_gpu": 10 << 20}},
            {"process_count": 2, "gpu_cores_per_process": 2, "memory": 40 << 20},
        ),
        ({"runtime_constraints": {"ram": [10.5, None]}}, {"memory": 11}),
        ({"runtime_constraints": {"ram": [None, 8]}}, {"memory": 8}),
        ({"runtime_constraints": {"ram": True, "vcpus": True}}, {}),
        ({"runtime_constraints": {"vcpus": [1, None]}}, {}),
        ({"runtime_constraints": {"vcpus": [4, None]}, "topology": "any"}, {"cpu_cores_per_process": 4}),
    ],
    ids=str,
)
def test_constraints_are_requested_from_the_batch_system(
    records: Records, document: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert requested_resources(records, document) == expected


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"runtime_constraints": {"gpus": 3}, "processes": 2}, "gpus is 4, not 3"),
        ({"runtime_constraints": {"gpus": [3, 3]}, "processes": 2}, "gpus is 4, not"),
        ({"runtime_constraints": {"gpus": 1.5}}, "gpus is 2, not 1.5"),
        ({"runtime_constraints": {"gpus": False}, "placement": {"gpus": 1}}, "gpus is 1, not False"),
        ({"runtime_constraints": {"gpus": 2}, "placement": {"gpus": 1}}, "gpus is 1, not 2"),
        ({"runtime_constraints": {"gpus": True}, "placement": {"gpus": 0}}, "gpus is 0, not True"),
        ({"runtime_constraints": {"ram": False}}, "ram is not recorded, not False"),
        ({"runtime_constraints": {"ram": -1}}, "ram is 1, not -1"),
        ({"runtime_constraints": {"vcpus": False}}, "vcpus is 1, not False"),
        ({"runtime_constraints": {"vcpus": [2, None]}}, "vcpus is 1"),
        ({"runtime_constraints": {"vcpus": [1.2, 1.8]}, "topology": "any"}, "vcpus is 2"),
        ({"runtime_constraints": {"ram": ["8e9", None]}}, "8e9 is text in YAML, 8000000000 is a number"),
        ({"runtime_constraints": {"internet": True}}, "'internet' is not recorded"),
    ],
    ids=str,
)
def test_constraints_that_no_job_can_meet_are_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        spec("a", **document)


@pytest.mark.parametrize(
    ("constraints", "is_hit"),
    [
        ({"gpus": False}, True),
        ({"gpus": [0, 2]}, True),
        ({"gpus": True}, False),
        ({"gpus": [1, None]}, False),
        ({"ram": True}, True),
        ({"ram": [1, None]}, False),
    ],
    ids=str,
)
def test_resources_that_were_not_requested_are_not_recorded(
    records: Records, constraints: dict[str, Any], is_hit: bool
) -> None:
    records.submit(spec("a"))

    assert (records.find(spec("a", runtime_constraints=constraints)) is not None) is is_hit


def test_gpus_that_an_older_version_recorded_without_a_request_do_not_count(records: Records) -> None:
    execution = records.submit(spec("a")).execution or ""
    with records.database.writing() as tx:
        executions.change(tx, execution, recorded={"vcpus": 1, "gpus": 2})

    assert records.find(spec("a", runtime_constraints={"gpus": 2})) is None
    assert records.find(spec("a", runtime_constraints={"gpus": False})) is not None


def test_a_request_does_not_join_an_execution_with_fewer_resources(records: Records, clock: Clock) -> None:
    first = records.submit(spec("a")).execution
    clock.advance(1)

    second = records.submit(spec("a", runtime_constraints={"gpus": 2})).execution

    assert second != first
    assert records.execution(second or "").granted["gpus"] == 2
    assert records.submit(spec("a", runtime_constraints={"gpus": 2})).execution == second
    assert records.submit(spec("a")).execution == first


def test_a_rerun_requests_the_same_resources(records: Records) -> None:
    first = records.submit(spec("a", runtime_constraints={"gpus": 2, "ram": [7 << 20, None]})).execution or ""

    again = records.execution(records.rerun(first).execution or "")

    assert again.recorded == records.execution(first).recorded == {"vcpus": 1, "ram": 7 << 20, "gpus": 2}
    assert again.placement == {"memory": 7 << 20, "gpus": 2}


@pytest.fixture
def dispatched(tmp_path: Path) -> Any:
    with Records(tmp_path / "real", user="ca") as records:

        def run(**document: Any) -> Execution:
            request = records.submit(spec("true", **document))
            dispatcher = Dispatcher(records)
            dispatcher.run(until_idle=True)
            dispatcher.close()
            return records.execution(request.execution or "")

        yield run


def test_the_executor_local_refuses_gpus(dispatched: Any) -> None:
    refused = dispatched(runtime_constraints={"gpus": 1})
    unrecorded = dispatched(placement={"gpus": 1})

    assert (refused.state, refused.reason) == (ExecutionState.CANCELLED, "invalid")
    assert "local gives out no GPUs" in refused.status["error"]
    assert unrecorded.state is ExecutionState.COMPLETE
    assert "gpus" not in unrecorded.recorded
