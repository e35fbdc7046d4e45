"""Jobs in containers, by fake engines, as tests have none of the real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_engines import InstallEngine, container_spec
from jpsi_engine import job_store
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.jobs.containers import ENGINES
from jpsi_records.records.records import Records


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    with Records(tmp_path / "records") as opened:
        yield opened


def dispatched(records: Records) -> None:
    dispatcher = Dispatcher(records)
    dispatcher.run(until_idle=True)
    dispatcher.close()


@pytest.mark.clause("records-places")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_runs_in_a_container(records: Records, on_path: InstallEngine, engine: str) -> None:
    on_path(engine)
    text = (
        "cat ${JPSI_ROOT}/in > ${JPSI_ROOT}/out/a; test -w ${JPSI_ROOT}/.jpsi/inbox || exit 1;"
        'echo "$A" "$JPSI_ROOT" $${JPSI_PROGRESS} $${JPSI_INBOX}; cat'
    )
    spec = container_spec(
        *("sh", "-c", text),
        environment={"A": "1, ${HOME}"},
        mounts={
            "/in": {"kind": "text", "content": "words"},
            "/out": {"kind": "collection"},
            "stdin": {"kind": "text", "content": "read"},
        },
        output_path="/out",
    )

    execution = records.submit(spec).execution or ""
    dispatched(records)

    ended = records.execution(execution)
    log = records.blobs.manifest(ended.log or "")
    stdout = records.blobs.path(log["stdout"].digest).read_text()
    assert (ended.exit_code, stdout) == (0, "1, ${HOME}  /.jpsi/progress /.jpsi/inbox\nread"), ended
    output = records.blobs.manifest(ended.output or "")
    assert records.blobs.path(output["a"].digest).read_text() == "words"
    # `jpsi explain` recognises the job by it
    (job,) = job_store.jobs()
    assert (job.spec.environment or {})["JPSI_EXECUTION"] == execution


def test_a_missing_container_engine_is_reported(records: Records, on_path: InstallEngine) -> None:
    folder = on_path("podman")
    execution = records.submit(container_spec("a", attempts=1)).execution or ""
    (folder / "podman").unlink()

    dispatched(records)

    ended = records.execution(execution)
    assert ended.state.value == "cancelled"
    assert "none of apptainer, podman, docker" in ended.status["error"]
    assert len(records.attempts(execution)) == 1
