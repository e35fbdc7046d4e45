"""Temporary directories of exactly the requested capacity."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_dispatcher import spec, start
from forked_jpsi import run_as_text
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.jobs import tmp_capacity
from jpsi_records.model.entities import Execution, ExecutionState
from jpsi_records.model.request_spec import RequestSpec
from jpsi_records.records.records import Records

TOO_MUCH = 10**18


def scratch(capacity: int | None, *command: str, **more: Any) -> RequestSpec:
    mount = {"kind": "tmp"} if capacity is None else {"kind": "tmp", "capacity": capacity}
    return spec(*command, mounts={"/scratch": mount}, cwd="/scratch", **more)


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Records]:
    with Records(tmp_path / "real", user="ca") as records:
        yield records


def executed(records: Records, request_spec: RequestSpec) -> Execution:
    request = records.submit(request_spec)
    dispatcher = Dispatcher(records)
    dispatcher.run(until_idle=True)
    dispatcher.close()
    return records.execution(request.execution or "")


@pytest.mark.clause("records-tmp")
@pytest.mark.parametrize(
    ("capacity", "size", "fits"), [(1000, 1000, True), (1000, 1001, False), (None, 1001, True)]
)
def test_an_execution_that_exceeds_the_capacity_is_no_result(
    real: Records, capacity: int | None, size: int, fits: bool
) -> None:
    execution = executed(real, scratch(capacity, "sh", "-c", f"mkdir d; head -c {size} /dev/zero >d/a"))

    if fits:
        assert (execution.state, execution.exit_code) == (ExecutionState.COMPLETE, 0)
        return
    assert (execution.state, execution.reason) == (ExecutionState.CANCELLED, "tmp_capacity")
    assert execution.status["error"] == "/scratch holds 1001 bytes, and its capacity is 1000"
    assert [it.outcome for it in real.requests()] == ["failed"]


def test_a_job_that_writes_more_than_fits_is_cancelled_while_it_runs(real: Records) -> None:
    execution = executed(real, scratch(1000, "sh", "-c", "head -c 1001 /dev/zero >a; exec sleep 600"))

    assert (execution.state, execution.reason) == (ExecutionState.CANCELLED, "tmp_capacity")
    assert len(real.attempts(execution.id)) == 1


def test_each_file_counts_once_and_links_count_nothing(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("12345")
    os.link(tmp_path / "d" / "a", tmp_path / "b")
    (tmp_path / "c").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")

    assert tmp_capacity.tree_size(tmp_path) == 5
    assert tmp_capacity.tree_size(tmp_path / "no such") == 0


def test_a_capacity_that_does_not_fit_is_reported_in_the_preview(records: Records) -> None:
    (warning,) = records.preview(scratch(TOO_MUCH, "a")).warnings

    assert warning.startswith(f"mounts: /scratch: {TOO_MUCH} bytes must fit, and ")
    assert records.preview(scratch(1, "a")).warnings == []
    records.submit(scratch(1, "a"))
    assert records.preview(scratch(1, "a")).warnings == ()


def test_several_directories_must_fit_together() -> None:
    found = list(tmp_capacity.shortages({"/a": 6, "/b": 6}, Path("/x"), lambda _: 11))

    assert found == ["mounts: /a, /b: 12 bytes must fit, and 11 are free in /x"]
    assert list(tmp_capacity.shortages({"/a": 6, "/b": 5}, Path("/x"), lambda _: 11)) == []


@pytest.mark.parametrize("command", ["preview", "submit", "run"])
def test_a_capacity_that_does_not_fit_is_refused_on_request(tmp_path: Path, command: str) -> None:
    mounts = {"/scratch": {"kind": "tmp", "capacity": TOO_MUCH}}
    (tmp_path / "a.json").write_text(json.dumps({"command": ["true"], "mounts": mounts}))
    words = ("request", command, "a.json", "--records", str(tmp_path / "r"))

    strict, plain = (run_as_text(*words, *more, cwd=tmp_path) for more in (["--strict"], []))

    assert (strict.returncode, plain.returncode) == (2, 0)
    assert "bytes must fit" in strict.stderr
    assert "warning: mounts: /scratch" in plain.stdout + plain.stderr


def test_a_reused_result_needs_no_capacity(tmp_path: Path) -> None:
    mounts = {"/scratch": {"kind": "tmp", "capacity": TOO_MUCH}}
    (tmp_path / "a.json").write_text(json.dumps({"command": ["true"], "mounts": mounts}))

    def run(*words: str) -> str:
        done = run_as_text("request", *words, "--records", str(tmp_path / "r"), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    draft = run("draft", "a.json").split()[0]
    assert "bytes must fit" in run("commit", draft)
    run("dispatch", "--until-idle")

    assert "bytes must fit" not in run("run", "a.json", "--strict") + run("submit", "a.json")


def test_a_rerun_has_the_same_capacity(records: Records) -> None:
    first = records.submit(scratch(10, "a")).execution or ""

    assert records.execution(records.rerun(first).execution or "").capacities == {"/scratch": 10}


def test_a_request_does_not_join_an_execution_with_less_space(records: Records) -> None:
    small = records.submit(scratch(10, "a"))
    start(records, small.execution or "")

    assert records.submit(scratch(5, "a")).execution == small.execution
    large = records.submit(scratch(11, "a")).execution
    assert large != small.execution
    assert records.execution(large or "").capacities == {"/scratch": 11}
