"""Calls that go wrong in every way that we know."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import functions_to_call as calls
import jpsi
from jpsi.plugin import line
from jpsi_functions import CallError, FunctionExecutor, JobEndedError, UnpicklableError
from jpsi_functions.payload import describe_client, pickle_arguments, pickle_function
from jpsi_functions.records import Records
from jpsi_functions.sessions import Session


def test_an_argument_that_cannot_be_pickled_is_named_before_anything_is_submitted(
    executor: FunctionExecutor,
) -> None:
    lock = threading.Lock()
    with pytest.raises(
        TypeError, match=r"the argument 2 \(lock\) of square cannot be pickled, so that nothing"
    ):
        executor.submit(calls.square, 1, lock)  # type: ignore[call-arg]  it is never called
    with pytest.raises(TypeError, match=r"the argument number \(lock\) of square"):
        executor.submit(calls.square, number=lock)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"the argument 1 \(lock\) in call 1 of square"):
        executor.map(calls.square, [1, lock, 2], chunksize=3)
    with pytest.raises(TypeError, match=r"the function .*<lambda> cannot be pickled"):
        executor.submit(lambda: lock)

    assert not (Path.home() / "state/jpsi/work/functions").exists()


def test_a_result_that_cannot_be_pickled_is_named(executor: FunctionExecutor) -> None:
    with pytest.raises(CallError, match="the result, of type lock, cannot be pickled: TypeError"):
        executor.submit(calls.return_a_lock).result(60)


def test_a_result_too_large_for_the_disk_is_an_error_that_says_so(executor: FunctionExecutor) -> None:
    with pytest.raises(
        CallError, match=r"the result has 10\d{5} bytes, which cannot be written: .*too large"
    ):
        executor.submit(calls.fill_the_disk).result(60)


def test_a_function_that_kills_its_process_has_a_job_that_says_so(executor: FunctionExecutor) -> None:
    future = executor.submit(calls.kill_itself)

    with pytest.raises(
        JobEndedError, match="ended before its call of kill_itself did: FAILED, exit code 137"
    ):
        future.result(60)
    error = future.exception()
    assert isinstance(error, JobEndedError)
    assert error.job is future.job
    assert error.status.exit_code == 137


def test_a_function_that_leaves_has_the_end_of_standard_error_in_the_message(
    executor: FunctionExecutor,
) -> None:
    with pytest.raises(JobEndedError, match=r"(?s)exit code 3.*its standard error:\nabout to leave"):
        executor.submit(calls.leave, 3).result(60)


def test_even_exit_code_0_is_no_result(executor: FunctionExecutor) -> None:
    with pytest.raises(JobEndedError, match="COMPLETED, exit code 0"):
        executor.submit(calls.leave, 0).result(60)


def test_of_a_chunk_that_was_killed_the_calls_before_have_results(executor: FunctionExecutor) -> None:
    results = executor.map(calls.leave_at, range(4), [2] * 4, chunksize=4)

    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(JobEndedError, match="exit code 3"):
        next(results)


def test_sys_exit_is_an_exception_of_the_call(executor: FunctionExecutor) -> None:
    with pytest.raises(SystemExit, match="enough"):
        executor.submit(calls.call_sys_exit).result(60)


def test_megabytes_of_output_are_in_the_file_of_the_job(executor: FunctionExecutor) -> None:
    future = executor.submit(calls.print_megabytes, 5)

    assert future.result(60) == 5
    assert future.job.streams is not None
    assert future.job.streams.stdout.stat().st_size == 5 * (2**20 + 1)


def test_a_forked_child_that_returns_leaves_no_second_result(executor: FunctionExecutor) -> None:
    first, second = executor.map(lambda _: calls.fork(), range(2), chunksize=2)

    assert first == second


@pytest.mark.parametrize("function", [calls.raise_stubborn, calls.raise_picky], ids=["pickled", "unpickled"])
def test_an_exception_that_cannot_be_pickled_is_shown_as_text(
    executor: FunctionExecutor, function: object
) -> None:
    with pytest.raises(UnpicklableError, match=r"(Stubborn|Picky)Error: a (stubborn|picky) one") as raised:
        executor.submit(function).result(60)  # type: ignore[arg-type]  either

    assert f"in {function.__name__}" in str(raised.value.__cause__)  # type: ignore[attr-defined]


def test_a_module_that_the_job_cannot_import_is_named(
    executor: FunctionExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def answer():\n    return 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here  # type: ignore[import-not-found]  # noqa: PLC0415  it is there for this test

    (tmp_path / "only_here.py").unlink()
    with pytest.raises(
        CallError, match=r"needs the module only_here, which .* has, but not .*; install it there"
    ):
        executor.submit(only_here.answer).result(60)


def test_a_module_on_the_path_of_this_process_is_imported_by_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside_me.py").write_text("def answer():\n    return 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    import beside_me  # type: ignore[import-not-found]  # noqa: PLC0415  it is there for this test

    with FunctionExecutor("local") as executor:
        assert executor.submit(beside_me.answer).result(60) == 42


def test_another_version_of_python_is_refused_by_a_sentence_that_names_both(tmp_path: Path) -> None:
    python = tmp_path / "python"
    # an interpreter that says it is another
    code = "import platform, runpy, sys; platform.python_version = lambda: '3.8.1'; "
    code += "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    python.write_text(f'#!/bin/sh\nexec {line(sys.executable, "-c", code)} "$@"\n')
    python.chmod(0o700)
    with FunctionExecutor("local", python=str(python)) as executor:
        mine = ".".join(map(str, sys.version_info[:2]))

        with pytest.raises(
            CallError, match=rf"the caller is CPython {mine}.*, but the job is CPython 3\.8\.1 \("
        ):
            executor.submit(calls.square, 3).result(60)


def test_an_interpreter_without_cloudpickle_is_refused(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {line(sys.executable, "-S")} "$@"\n')
    python.chmod(0o700)
    bare = [str(python), "-c", "import cloudpickle"]
    if subprocess.run(bare, check=False, capture_output=True).returncode == 0:
        pytest.skip("cloudpickle is part of this interpreter")
    with (
        FunctionExecutor("local", python=str(python)) as executor,
        pytest.raises(CallError, match=r"the caller has cloudpickle [\d.]+ .*, but the job has none"),
    ):
        executor.submit(calls.square, 3).result(60)


def test_an_interpreter_that_does_not_exist_fails_the_job() -> None:
    with (
        FunctionExecutor("local", python="/nowhere/python") as executor,
        pytest.raises(JobEndedError, match="/nowhere/python"),
    ):
        executor.submit(calls.square, 3).result(60)


def test_nothing_is_unpickled_in_a_folder_that_others_may_write_to(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with FunctionExecutor("local", max_workers=1) as executor:
        first = executor.submit(calls.wait_for, str(gate), 1)
        second = executor.submit(calls.count, str(tmp_path / "ran"), 2)
        (session,) = (Path.home() / "state/jpsi/work/functions/local").iterdir()
        for folder in (session / "calls").iterdir():
            if str(second.job.id) in folder.name:
                folder.chmod(0o777)
        gate.touch()

        assert first.result(60) == 1
        with pytest.raises(jpsi.ConfigError, match="can be written by others"):
            second.result(60)

    assert not (tmp_path / "ran").exists()
    assert second.job.status.exit_code == 78


def test_a_thousand_calls_from_eight_threads(tmp_path: Path) -> None:
    with FunctionExecutor("local", max_workers=4) as executor, ThreadPoolExecutor(8) as threads:

        def squares(thread: int) -> list[int]:
            numbers = range(thread * 125, thread * 125 + 125)
            futures = [executor.submit(calls.square, it) for it in numbers[:3]]
            mapped = executor.map(calls.square, numbers[3:], chunksize=61)
            return [*(it.result(calls.PATIENCE) for it in futures), *mapped]

        found = list(threads.map(squares, range(8)))

    assert [it for part in found for it in part] == [it * it for it in range(1000)]


def test_a_thousand_futures_from_eight_threads_are_cancelled() -> None:
    with FunctionExecutor("local", max_workers=4) as executor, ThreadPoolExecutor(8) as threads:
        futures = list(threads.map(lambda it: executor.submit(calls.square, it), range(1000)))
        for future in futures[40:]:
            future.cancel()

        assert [it.result(calls.PATIENCE) for it in futures[:40]] == [it * it for it in range(40)]


# With a policy of retries a call that raised is made again, and without one it is not.
@pytest.mark.parametrize(
    ("retries", "codes", "ran"), [(True, [1, 0, 0], "01212"), (False, [1, 1, 1], "012")], ids=["retries", ""]
)
def test_a_job_that_runs_again_begins_with_the_first_call_that_has_not_ended(
    retries: bool, codes: list[int], ran: str, tmp_path: Path
) -> None:
    (tmp_path / "calls").mkdir(mode=0o700)
    client = describe_client(str(tmp_path), None, shares_files=True, retries=retries)
    session = Session.create(tmp_path / "calls", client)
    gate = tmp_path / "gate"

    def count_with_gate(value: int) -> int:
        calls.count(str(tmp_path / "ran"), value)
        if value == 1 and not gate.exists():
            raise ValueError(value)
        return value

    made = [((value,), {}) for value in range(3)]
    function, arguments = pickle_function(count_with_gate), pickle_arguments(count_with_gate, made)
    call = session.add_call("1", 3, function, arguments)

    found = [_work(call.folder)]
    gate.touch()
    found += [_work(call.folder), _work(call.folder)]

    assert found == codes
    assert "".join((tmp_path / "ran").read_text().split()) == ran
    records = Records.read(call.folder)
    assert [records.outcome(it, CallError).get() for it in (0, 2)] == [0, 2]
    session.remove()


@pytest.mark.parametrize("cut", [0, 3, 20])
def test_a_job_that_was_killed_between_calls_makes_the_others(cut: int, tmp_path: Path) -> None:
    """Of the record that was being written, some bytes are there."""
    (tmp_path / "calls").mkdir(mode=0o700)
    client = describe_client(str(tmp_path), None, shares_files=True, retries=False)
    session = Session.create(tmp_path / "calls", client)
    ran = tmp_path / "ran"
    made = [((str(ran), value), {}) for value in range(3)]
    call = session.add_call("1", 3, pickle_function(calls.count), pickle_arguments(calls.count, made))
    _work(call.folder)
    whole = (call.folder / "result").read_bytes()
    size = len(whole) // 3
    (call.folder / "result.part").write_bytes(whole[: 2 * size + cut])
    (call.folder / "result").unlink()

    assert _work(call.folder) == 0

    assert ran.read_text().split() == ["0", "1", "2", "2"]
    assert (call.folder / "result").read_bytes() == whole
    session.remove()


def _work(folder: Path) -> int:
    """Run the worker in a folder of calls; return its exit code."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    script = [sys.executable, str(folder / "worker.py"), str(folder)]
    return subprocess.run(script, env=environment, check=False).returncode
