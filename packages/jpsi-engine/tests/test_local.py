"""The executor `local`, as a user uses it."""

from __future__ import annotations

import math
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import jpsi
from jpsi import Evidence, Job, JobAttributes, JobExecutor, JobSpec, JobState, Reason, ResourceSpecV1
from jpsi_engine.local import starter

PATIENCE = 30


def run(executor: JobExecutor, spec: JobSpec) -> Job:
    job = Job(spec)
    executor.submit(job)
    assert job.wait(PATIENCE) is not None
    return job


def shell(text: str, **fields: object) -> JobSpec:
    return JobSpec("/bin/sh", ["-c", text], **fields)  # type: ignore[arg-type]


def output(job: Job) -> str:
    assert job.streams is not None
    return job.streams.stdout.read_text()


def read_line(fifo: Path) -> str:
    """Wait for the line that a running job writes into a FIFO, and return it."""
    with fifo.open() as file:
        return file.readline().strip()


def living(session: int) -> list[str]:
    """Return the processes of a session that are not zombies."""
    rows = subprocess.run(
        ["ps", "-s", str(session), "-o", "stat=,args="], check=False, capture_output=True, text=True
    ).stdout.splitlines()
    return [row for row in rows if not row.startswith("Z")]


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture(autouse=True, params=["shell", "starter"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run jobs by a shell each, or, if they need none, by the process that starts programs."""
    monkeypatch.setattr(starter, "_JOBS_BEFORE", 0 if request.param == "starter" else math.inf)
    monkeypatch.setattr(starter, "_READY_SECONDS", PATIENCE)
    return str(request.param)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.mark.clause("layer-local", "state-model", "state-missing")
def test_a_job_passes_through_its_states_in_order(executor: JobExecutor) -> None:
    states: list[JobState] = []
    job = Job(JobSpec("/bin/true"))
    job.set_job_status_callback(lambda _, status: states.append(status.state))

    executor.submit(job)
    final = job.wait(PATIENCE)

    assert final is not None
    assert final.state is JobState.COMPLETED
    assert final.exit_code == 0
    assert final.evidence is Evidence.MARKER
    assert states == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]


@pytest.mark.clause("state-failed", "status-metadata", "status-message")
@pytest.mark.parametrize(
    ("spec", "code", "reason", "metadata"),
    [
        (shell("exit 7"), 7, Reason.EXIT_CODE, {}),
        (shell("exit 255"), 255, Reason.EXIT_CODE, {}),
        (shell("kill -KILL $$"), 137, Reason.SIGNAL, {"signal": 9}),
        (shell("kill -SEGV $$"), 139, Reason.SIGNAL, {"signal": 11}),
        (JobSpec("no-such-program"), 127, Reason.EXECUTABLE, {"phase": "executable"}),
        (JobSpec("/no/such/program"), 127, Reason.EXECUTABLE, {"phase": "executable"}),
        (JobSpec("/etc/passwd"), 126, Reason.EXECUTABLE, {"phase": "executable"}),
        (JobSpec("/bin/true", stdin_path="/no/such/file"), 125, Reason.SETUP, {"phase": "stdin"}),
        (JobSpec("/bin/true", stdout_path="/no/such/out"), 125, Reason.SETUP, {"phase": "stdout"}),
    ],
    ids=["exit", "255", "kill", "segv", "on-path", "missing", "no-x", "stdin", "stdout"],
)
def test_the_status_of_a_failed_job_has_its_code_and_reason(
    executor: JobExecutor,
    spec: JobSpec,
    code: int,
    reason: Reason,
    metadata: dict[str, object],
) -> None:
    job = run(executor, spec)

    status = job.status
    assert (status.state, status.exit_code, status.reason) == (JobState.FAILED, code, reason)
    # its clock and that of the files differ by a few milliseconds
    assert status.metadata["time.source"] in {"marker", "previous_state"}
    others = {"time.source", "used.cpu", "used.process_memory"}
    assert {key: it for key, it in status.metadata.items() if key not in others} == metadata
    assert status.message


@pytest.mark.clause("spec-streams")
def test_streams_are_written_to_the_paths_of_the_spec(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("hello")
    spec = shell(
        "cat; echo oops >&2",
        directory=tmp_path,
        stdin_path="in",
        stdout_path="out",
        stderr_path=tmp_path / "err",
    )

    job = run(executor, spec)

    assert (tmp_path / "out").read_text() == "hello"
    assert (tmp_path / "err").read_text() == "oops\n"
    assert job.streams is not None
    assert job.streams.stdout == tmp_path / "out"


def test_one_file_for_both_streams_keeps_both(executor: JobExecutor, tmp_path: Path) -> None:
    spec = shell("echo a; echo b >&2; echo c", directory=tmp_path, stdout_path="o", stderr_path="o")

    run(executor, spec)

    assert (tmp_path / "o").read_text() == "a\nb\nc\n"


@pytest.mark.clause("spec-directory-default")
def test_the_default_directory_is_that_of_the_program(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert output(run(executor, JobSpec("/bin/pwd"))).strip() == str(tmp_path)


@pytest.mark.clause("spec-directory")
def test_home_is_where_the_job_runs(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "my home"
    (home / "run s").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))

    job = run(executor, JobSpec("/bin/pwd", directory="~/run s", stdout_path="~/o"))

    assert (home / "o").read_text().strip() == str(home / "run s")
    assert job.streams is not None
    assert job.streams.stdout == home / "o"


def test_a_directory_is_made_on_request(executor: JobExecutor, tmp_path: Path) -> None:
    spec = JobSpec("/bin/pwd", directory=tmp_path / "a" / "b", create_directory=True)

    assert output(run(executor, spec)).strip() == str(tmp_path / "a" / "b")


@pytest.mark.clause("spec-inherit-false")
def test_an_empty_environment_is_empty(executor: JobExecutor) -> None:
    spec = JobSpec("/usr/bin/env", inherit_environment=False, environment={"A": "1", "B": "${A}2${HOME}"})

    assert output(run(executor, spec)) == "A=1\nB=12\n"


@pytest.mark.clause("document-environment")
def test_none_unsets_a_variable(executor: JobExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GONE", "x")
    monkeypatch.setenv("KEPT", "y")
    spec = shell('echo "${GONE-unset} $KEPT"', environment={"GONE": None})

    assert output(run(executor, spec)) == "unset y\n"


def test_pre_launch_and_post_launch_are_sourced_around_the_job(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "pre").write_text("export FROM_PRE=yes\necho pre\n")
    (tmp_path / "post").write_text("echo post $FROM_PRE\n")
    spec = shell('echo job $FROM_PRE "$1"', directory=tmp_path, pre_launch="pre", post_launch="post")
    assert spec.arguments is not None
    spec.arguments += ["sh", "${FROM_PRE}"]

    assert output(run(executor, spec)) == "pre\njob yes yes\npost yes\n"


def test_a_failing_pre_launch_fails_the_job_with_that_reason(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "pre").write_text("exit 0\n")

    job = run(executor, shell("echo ran", pre_launch=tmp_path / "pre"))

    assert job.status.reason is Reason.PRE_LAUNCH
    assert "pre_launch" in str(job.status)
    assert output(job) == ""


@pytest.mark.clause("launch-scripts-posix")
def test_a_script_that_is_no_shell_is_refused_at_submit(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "pre").write_text("if then\n")
    job = Job(shell("true", pre_launch=tmp_path / "pre"))

    with pytest.raises(jpsi.InvalidJobException, match="is not a POSIX shell script"):
        executor.submit(job)


@pytest.mark.clause("attributes-duration", "time-interval")
def test_a_job_that_uses_up_its_duration_is_ended(executor: JobExecutor) -> None:
    spec = JobSpec("/bin/sleep", ["1000"], attributes=JobAttributes(duration=timedelta(seconds=0.2)))

    job = run(executor, spec)

    assert job.status.state is JobState.FAILED
    assert job.status.reason is Reason.TIMEOUT


@pytest.mark.clause("attributes-duration", "document-duration-zero")
def test_zero_duration_is_no_limit(executor: JobExecutor) -> None:
    job = run(executor, JobSpec("/bin/true", attributes=JobAttributes(duration=timedelta(0))))

    assert job.status.state is JobState.COMPLETED


@pytest.mark.clause("state-canceled", "state-active")
def test_cancel_ends_everything_the_job_started(executor: JobExecutor, fifo: Path) -> None:
    job = Job(shell(f"sleep 1000 & sleep 1000 & (trap '' TERM; echo $$ >'{fifo}'; sleep 1000; sleep 999)"))
    executor.submit(job)
    read_line(fifo)

    job.cancel()
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.reason) == (JobState.CANCELED, Reason.CANCELLED)
    assert job.native_id is not None
    assert living(int(job.native_id.partition(".")[0])) == []


def test_cancelling_twice_signals_each_process_once(
    executor: JobExecutor, fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr("jpsi_engine.local.supervision._send", lambda pid, number: sent.append((pid, number)))
    job = Job(shell(f"sleep 1000 & echo >'{fifo}'; sleep 999"))
    executor.submit(job)
    read_line(fifo)

    job.cancel()
    job.cancel()

    signalled = [pid for pid, number in sent if number == signal.SIGTERM]
    assert len(signalled) >= 2
    assert len(signalled) == len(set(signalled))
    monkeypatch.undo()
    for pid in signalled:
        os.kill(pid, signal.SIGKILL)
    assert job.wait(PATIENCE) is not None


def test_a_job_that_ends_well_after_its_cancel_was_still_cancelled(executor: JobExecutor, fifo: Path) -> None:
    job = Job(shell(f"trap 'exit 0' TERM; echo >'{fifo}'; while :; do sleep 0.01; done"))
    executor.submit(job)
    read_line(fifo)

    job.cancel()
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.exit_code) == (JobState.CANCELED, 0)


@pytest.mark.clause("attributes-queue", "attributes-project", "attributes-reservation")
def test_resources_that_this_host_lacks_do_not_prevent_a_job(executor: JobExecutor) -> None:
    attributes = JobAttributes(queue_name="debug", project_name="p", reservation_id="r")

    job = run(executor, JobSpec("/bin/true", attributes=attributes))

    assert job.status.state is JobState.COMPLETED


@pytest.mark.clause("cancel-race")
def test_cancel_of_a_final_job_does_nothing(executor: JobExecutor) -> None:
    job = run(executor, JobSpec("/bin/true"))

    job.cancel()

    assert job.status.state is JobState.COMPLETED


def test_a_killed_leader_ends_its_job_with_a_status(executor: JobExecutor, fifo: Path, way: str) -> None:
    job = Job(shell(f"echo >'{fifo}'; exec sleep 1000"))
    executor.submit(job)
    read_line(fifo)
    assert job.native_id is not None
    pid = int(job.native_id.partition(".")[0])

    os.kill(pid, signal.SIGKILL)
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.reason) == (JobState.FAILED, Reason.SIGNAL)
    assert status.evidence is (Evidence.PROCESS if way == "shell" else Evidence.MARKER)
    assert living(pid) == []


def test_a_background_child_does_not_delay_the_end_and_lives_on(executor: JobExecutor, fifo: Path) -> None:
    job = run(executor, shell(f"sleep 1000 & echo $!; (read x <'{fifo}') &"))

    assert job.status.state is JobState.COMPLETED
    child = int(output(job))
    os.kill(child, 0)
    os.kill(child, signal.SIGKILL)
    fifo.write_text("\n")


def test_more_output_than_a_pipe_holds_does_not_stall_the_job(executor: JobExecutor) -> None:
    job = run(executor, shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"))

    assert job.status.state is JobState.COMPLETED
    assert len(output(job)) == 1_000_000


def test_the_job_starts_with_default_signals_and_no_foreign_descriptor(
    executor: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_engine.local.spawn._scanned", float("-inf"))
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1]
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    # a pipe behind `ls` would be the shell's own for a moment, and a last command the shell itself
    look = "grep -E 'SigIgn|SigBlk' /proc/self/status; ls /proc/$$/fd; :"
    try:
        job = run(executor, shell(look))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)

    _, blocked, _, ignored, *descriptors = output(job).split()
    # glibc's posix_spawn leaves the two signals ignored that it keeps for itself, 32 and 33
    assert int(blocked, 16) == 0
    assert int(ignored, 16) & ~(0b11 << 31) == 0
    assert descriptors == ["0", "1", "2"]


def test_single_runs_once_for_any_resources(executor: JobExecutor) -> None:
    """A job that starts processes itself, such as a script for a batch system, reserves the resources."""
    job = run(executor, shell("echo once", launcher="single", resources=ResourceSpecV1(process_count=3)))

    assert output(job) == "once\n"


def test_many_processes_need_a_launcher_that_is_named(no_launchers: None, executor: JobExecutor) -> None:
    job = Job(JobSpec("/bin/true", resources=ResourceSpecV1(process_count=10)))

    with pytest.raises(jpsi.InvalidJobException, match="install jpsi-launchers"):
        executor.submit(job)

    assert job.status.state is JobState.NEW


@pytest.mark.clause("exception-message")
def test_one_error_names_all_problems(no_launchers: None, executor: JobExecutor) -> None:
    spec = JobSpec("/bin/true", directory="/no/such/dir", pre_launch="nope.sh", cleanup=[Path("..")])
    spec.resources = ResourceSpecV1(node_count=2, processes_per_node=2)

    with pytest.raises(jpsi.InvalidJobException) as caught:
        executor.submit(Job(spec))

    message = str(caught.value)
    for part in ("/no/such/dir", "nope.sh", "cleanup", "2 nodes", "multiple"):
        assert part in message


@pytest.mark.clause("attach-returns", "attach-discards")
def test_attach_to_any_process_follows_it_to_its_end(executor: JobExecutor) -> None:
    process = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    job = Job(JobSpec("/discarded"))

    executor.attach(job, str(process.pid))
    assert job.spec is None
    assert job.status.state is JobState.ACTIVE
    assert job.native_id in executor.list()
    assert re.fullmatch(rf"{process.pid}\.\d+\.\w+", job.native_id or ""), (
        "with what tells it from a later one"
    )
    process.communicate(b"")
    status = job.wait(PATIENCE)

    assert status is not None
    assert status.final
    assert status.state is JobState.COMPLETED or status.reason is Reason.LOST


def test_attach_to_a_job_of_jpsi_gets_its_exit_code(
    executor: JobExecutor, config: jpsi.ExecutorConfig
) -> None:
    done = run(executor, shell("exit 5"))
    assert done.native_id is not None
    other = JobExecutor.get_instance("local", config=config)
    job = Job()

    other.attach(job, done.native_id)
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.exit_code) == (JobState.FAILED, 5)


@pytest.mark.parametrize("native_id", [None, 1.5, b"4711", True], ids=repr)
def test_only_text_and_numbers_are_native_ids(executor: JobExecutor, native_id: Any) -> None:
    job = Job()

    with pytest.raises(TypeError, match="a native id is text, such as '4711', not "):
        executor.attach(job, native_id)
    with pytest.raises(TypeError, match="a native id is text, such as '4711', not "):
        executor.attach_many([(job, native_id)])
    executor.attach(job, "999999999")

    assert job.wait(PATIENCE) is not None


def test_ended_jobs_are_neither_held_nor_released(executor: JobExecutor) -> None:
    job = run(executor, shell("exit 5"))

    with pytest.raises(jpsi.SubmitException, match=f"job {job.id} has ended: it is FAILED"):
        executor.hold(job)
    with pytest.raises(jpsi.SubmitException, match=f"job {job.id} has ended: it is FAILED"):
        executor.release(job)


@pytest.mark.clause("attach-fails")
@pytest.mark.parametrize(
    "native_id",
    [999999999, "0", "999999999", "nonsense", "1.2.3", "", pytest.param(f"{os.getpid()}.1", id="another's")],
)
def test_attach_to_a_missing_process_fails(executor: JobExecutor, native_id: str | int) -> None:
    job = Job()

    executor.attach(job, native_id)
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.reason) == (JobState.FAILED, Reason.ATTACH_UNVERIFIED)
    assert [s.state for s in (status,)] == [JobState.FAILED]


@pytest.mark.clause("list-unique", "list-non-final", "list-attachable", "list-final")
def test_list_has_jobs_that_are_not_final_and_can_be_attached(
    executor: JobExecutor, fifo: Path, config: jpsi.ExecutorConfig
) -> None:
    done = run(executor, JobSpec("/bin/true"))
    job = Job(shell(f"read x <'{fifo}'"))
    executor.submit(job)

    listed = executor.list()
    attached = Job()
    JobExecutor.get_instance("local", config=config).attach(attached, listed[0])
    fifo.write_text("\n")

    assert listed == [job.native_id]
    assert done.native_id not in listed
    status = attached.wait(PATIENCE)
    assert status is not None
    assert status.state is JobState.COMPLETED
    assert job.wait(PATIENCE) is not None
    assert executor.list() == []


def test_two_executors_on_one_spool_agree(
    executor: JobExecutor, config: jpsi.ExecutorConfig, fifo: Path
) -> None:
    job = Job(shell(f"read x <'{fifo}'; exit 3"))
    executor.submit(job)
    (other,) = JobExecutor.get_instance("local", config=config).recover()

    fifo.write_text("\n")

    for one in (job, other):
        status = one.wait(PATIENCE)
        assert status is not None
        assert (status.state, status.exit_code) == (JobState.FAILED, 3)


def test_a_cancel_by_one_executor_is_a_cancel_for_the_other(
    executor: JobExecutor, config: jpsi.ExecutorConfig, fifo: Path
) -> None:
    job = Job(shell(f"echo >'{fifo}'; exec sleep 1000"))
    executor.submit(job)
    read_line(fifo)
    (other,) = JobExecutor.get_instance("local", config=config).recover()

    other.cancel()

    for one in (job, other):
        status = one.wait(PATIENCE)
        assert status is not None
        assert status.state is JobState.CANCELED


@pytest.mark.skipif(sys.platform != "linux", reason="descriptor counts are read from /proc")
def test_a_thousand_jobs_leave_neither_threads_nor_descriptors(executor: JobExecutor) -> None:
    run(executor, JobSpec("/bin/true"))
    threads, descriptors = threading.active_count(), open_descriptors()

    jobs = [Job(JobSpec("/bin/true")) for _ in range(100)]
    for job in jobs:
        executor.submit(job)
    for job in jobs:
        assert job.wait(PATIENCE) is not None

    assert threading.active_count() <= threads
    assert open_descriptors() <= descriptors + 1


def test_pre_launch_that_changes_the_directory_does_not_move_the_error_stream(
    executor: JobExecutor, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "pre").write_text("echo before >&2\ncd other\n")
    spec = shell("echo job >&2", directory=tmp_path, stderr_path="err", pre_launch="pre")

    run(executor, spec)

    assert (tmp_path / "err").read_text() == "before\njob\n"
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize("first_line", ["#!/bin/bash", "#!/usr/bin/env bash"])
def test_scripts_that_name_bash_are_sourced_by_bash_and_their_functions_reach_the_job(
    executor: JobExecutor, tmp_path: Path, first_line: str
) -> None:
    prepare = tmp_path / "prepare"
    lines = ["hello() { echo $GREETING; }", "export -f hello", "words=(hi ho)", "export GREETING=${words[1]}"]
    prepare.write_text("\n".join([first_line, *lines, ""]))
    spec = JobSpec("/bin/bash", ["-c", "hello"], pre_launch=prepare, stdout_path=tmp_path / "out")
    job = Job(spec)

    executor.submit(job)

    assert job.wait(20).state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "ho\n"


@pytest.mark.parametrize("option", ["-e", "-n", "-x"])
def test_an_option_of_a_scripts_shell_does_not_change_the_runner(
    executor: JobExecutor, tmp_path: Path, option: str
) -> None:
    (tmp_path / "prepare").write_text(f"#!/bin/bash {option}\n")
    job = Job(
        JobSpec("/bin/sh", ["-c", "exit 3"], pre_launch=tmp_path / "prepare", stderr_path=tmp_path / "err")
    )

    executor.submit(job)

    status = job.wait(20)
    assert (status.state, status.exit_code) == (JobState.FAILED, 3)
    assert (tmp_path / "err").read_text() == ""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="there are no pidfds")
def test_the_memory_of_a_job_is_that_of_its_largest_process(executor: JobExecutor) -> None:
    """A job that is smaller than this program is not known: Linux counts this program for a part of it."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    size = own + (64 << 20)
    program = f"b = bytearray({size})\nfor i in range(0, {size}, 4096): b[i] = 1"
    large, small = Job(JobSpec(sys.executable, ["-c", program])), Job(JobSpec("/bin/true"))

    executor.submit_many([large, small])

    statuses = [job.wait() for job in (large, small)]
    assert statuses[0] is not None
    assert statuses[1] is not None
    assert size <= statuses[0].metadata["used.process_memory"] < size * 1.1 + (16 << 20)
    assert "used.process_memory" not in statuses[1].metadata
