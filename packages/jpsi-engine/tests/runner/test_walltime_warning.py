"""The signal that a job gets before the end of its walltime, from the runner in real shells."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi.contract.config import BatchConfig, ExecutorConfig
from jpsi.model.spec import JobAttributes, JobSpec
from jpsi_engine.runner.script import render_runner
from jpsi_engine.runner.script_input import Run
from jpsi_engine.runner.walltime_warning import WalltimeWarning, warning_problems
from jpsi_testing.waiting import eventually
from runners import PATH, SINGLE, RunnerBench, script, shell_job

AT_ONCE, NEVER = WalltimeWarning("USR1", 0), WalltimeWarning("USR1", 86_400)
TRAPPING = 'trap "echo warned; exit 7" USR1; echo >"$1"; while :; do sleep 0.01; done'

linux = pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="reads /proc")


def spec(warn: object, minutes: float | None = None) -> JobSpec:
    duration = None if minutes is None else timedelta(minutes=minutes)
    return JobSpec("a", attributes=JobAttributes(duration=duration, warn=warn))  # type: ignore[arg-type]  see there


def timer_that_sleeps_until(ready: Path, first: str = ":") -> dict[str, str]:
    """Return variables with which a script's timer, and nothing else, sleeps until a file exists.

    Its `sleep` is a program that first runs the line `first`, with its folder in $folder.
    """
    folder = ready.parent / "timer-bin"
    wait = f'until [ -e "{ready}" ]; do /bin/sleep 0.01; done'
    # the job's own sleeps are short
    own = 'case $1 in 0.*) exec /bin/sleep "$1" ;; esac'
    script(folder / "sleep", f"#!/bin/sh\n{own}\nfolder=${{0%/*}}\n{first}\n{wait}\n")
    return {"PATH": f"{folder}:{PATH}"}


@pytest.mark.parametrize("pre_launch", [None, "", "trap 'exit 3' USR1 URG; set -e"])
def test_the_job_gets_the_signal_and_the_runner_none(
    bench: RunnerBench, tmp_path: Path, pre_launch: str | None
) -> None:
    """Without a marker of a signal the exit is final."""
    pre = None if pre_launch is None else script(bench.root / "pre.sh", pre_launch)
    ready = tmp_path / "ready"

    ended = bench.run(
        shell_job(TRAPPING, ready, pre_launch=pre), timer_that_sleeps_until(ready), warning=AT_ONCE
    )

    assert (ended.code, ended.markers, ended.stdout) == (7, ["exit.run.7"], b"warned\n")


def test_a_job_that_does_not_expect_the_signal_is_ended_by_it(bench: RunnerBench) -> None:
    ended = bench.run(JobSpec("/bin/sleep", ["60"]), warning=AT_ONCE)

    assert (ended.code, ended.markers) == (138, ["exit.run.138"])


@linux
@pytest.mark.parametrize("code", [0, 7])
def test_nothing_is_left_of_a_job_that_ends_before_its_warning(bench: RunnerBench, code: int) -> None:
    def leftovers() -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cwd"):
            # the process has ended, or is another user's
            with contextlib.suppress(OSError):
                found += [str(path)] * path.samefile(bench.directory)
        return found

    ended = bench.run(shell_job(f"exit {code}"), warning=NEVER)

    assert (ended.code, ended.markers) == (code, [f"exit.run.{code}"])
    assert eventually(lambda: leftovers() == [], 60)


def write_with_timer_shell(bench: RunnerBench, job: JobSpec) -> Path:
    """Write the script of a job whose timer is run by the shell under test as well, and not by /bin/sh."""
    written = bench.write(job, warning=NEVER)
    text = written.read_text()
    assert text.count("\n/bin/sh -c '\n") == 1
    written.write_text(text.replace("\n/bin/sh -c '\n", f"\n{bench.shell} -c '\n"))
    return written


@linux
def test_a_timer_that_begins_after_its_shell_has_ended_does_nothing(bench: RunnerBench) -> None:
    """The signal that was to end it came too early for it; here its shell only seems to have ended."""
    written = bench.write(shell_job("sleep 0.3; exit 7"), warning=AT_ONCE)
    text = written.read_text()
    assert text.count('"$_jpsi_waiter" </dev/null') == 1
    written.write_text(text.replace('"$_jpsi_waiter" </dev/null', '"1" </dev/null'))

    ended = bench.start(written)

    assert (ended.code, ended.markers) == (7, ["exit.run.7"])


def test_the_timer_sleeps_again_if_its_sleep_is_killed(bench: RunnerBench, tmp_path: Path) -> None:
    ready, again = tmp_path / "ready", tmp_path / "again"
    killed_once = f'mkdir "$folder/slept" 2>/dev/null && kill -s KILL "$$"; echo >"{again}"'
    timer = timer_that_sleeps_until(ready, killed_once)
    trapping = "trap \"[ -e '$2' ] && exit 7; exit 8\" USR1"
    waits = f'{trapping}; echo >"$1"; n=0; while [ $n -lt 1000 ]; do n=$((n + 1)); sleep 0.01; done'

    written = write_with_timer_shell(bench, shell_job(waits, ready, again))

    ended = bench.start(written, timer)

    assert (ended.code, ended.markers) == (7, ["exit.run.7"])


@linux
@pytest.mark.parametrize("code", [1, 127])
def test_a_timer_that_cannot_sleep_exits_only_at_the_end_of_the_job(
    process: RunnerBench, fifo: Callable[[str], Path], tmp_path: Path, code: int
) -> None:
    """Its pid would be that of another process by then, which would get its signals."""
    up, down = fifo("up"), fifo("down")
    sleep = script(tmp_path / "bin/sleep", f'#!/bin/sh\necho "$PPID" >"{up}"\nexit {code}\n')
    written = write_with_timer_shell(process, shell_job('read x <"$1"', down))

    with subprocess.Popen(
        [process.shell, str(written)], env={"PATH": f"{sleep.parent}:{PATH}"}, start_new_session=True
    ) as started:
        timer = Path("/proc", up.read_text().strip())
        is_over = eventually(lambda: not timer.exists() or ") T " in (timer / "stat").read_text(), 60)
        is_alive = timer.exists()
        down.write_text("\n")

    assert is_over
    assert is_alive
    assert (started.returncode, process.markers()) == (0, ["exit.run.0"])
    assert eventually(lambda: _has_ended(int(timer.name)), 60)


def test_the_job_reads_its_input_as_ever(bench: RunnerBench, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("put in\n")

    ended = bench.run(JobSpec("cat", stdin_path=tmp_path / "in"), warning=NEVER)

    assert (ended.code, ended.stdout) == (0, b"put in\n")


def test_a_signal_to_the_batch_job_reaches_it_besides(
    batch: RunnerBench, fifo: Callable[[str], Path]
) -> None:
    up = fifo("up")
    written = batch.write(
        shell_job('trap "exit 7" TERM; echo >"$1"; while :; do sleep 0.01; done', up), warning=NEVER
    )

    with subprocess.Popen([batch.shell, str(written)], env={"PATH": PATH, "JOB_ID": "17"}) as started:
        up.read_text()
        started.terminate()

    assert (started.returncode, batch.markers()) == (7, ["exit.run.7", "signalled"])


def test_a_signal_to_the_session_reaches_the_job_once(
    process: RunnerBench, fifo: Callable[[str], Path]
) -> None:
    """The client signals all processes, so the runner passes nothing on."""
    up, down = fifo("up"), fifo("down")
    caught = 'trap "echo caught" TERM; echo >"$1"; while ! read x <"$2"; do :; done; exit 7'
    written = process.write(shell_job(caught, up, down), warning=NEVER)

    with subprocess.Popen(
        [process.shell, str(written)], env={"PATH": PATH}, start_new_session=True
    ) as started:
        up.read_text()
        os.killpg(started.pid, signal.SIGTERM)
        is_caught = eventually(lambda: process.read("stdout") == b"caught\n", 60)
        down.write_text("\n")

    assert is_caught
    assert _is_code(started.returncode, 7, process)
    assert process.markers() == [f"exit.run.{started.returncode}", "signalled"]
    assert process.read("stdout") == b"caught\n"


def _is_code(code: int, expected: int, process: RunnerBench) -> bool:
    """Return True if a runner ended with the job's code, or is a bash that has lost that to a SIGTERM."""
    return code == expected or (code == 128 + signal.SIGTERM and "bash" in os.path.realpath(process.shell))


def _state(process: int) -> tuple[str, int]:
    """Return the state of a process, such as T for stopped, and its parent."""
    state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    return state, int(parent)


def _has_ended(process: int) -> bool:
    try:
        return _state(process)[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        # it was waited for, perhaps while it was read
        return True


@contextlib.contextmanager
def _starved(process: int) -> Iterator[None]:
    """Let a process have next to no time, as on a busy machine."""
    processors = os.sched_getaffinity(0)
    one = {min(processors)}
    os.sched_setaffinity(process, one)
    os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))
    spin = "import os; os.write(1, b'x')\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-S", "-c", spin], stdout=subprocess.PIPE) as other:
        try:
            os.sched_setaffinity(other.pid, one)
            assert other.stdout is not None
            other.stdout.read(1)
            os.sched_setaffinity(0, processors - one or processors)
            yield
        finally:
            # it may have ended
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(process, processors)
            os.sched_setaffinity(0, processors)
            other.kill()


@linux
def test_a_job_that_ends_as_a_signal_comes_is_not_waited_for_any_more(
    process: RunnerBench, fifo: Callable[[str], Path]
) -> None:
    """A bash 5.2 may not notice its end then, and would wait for the timer."""
    up, down = fifo("up"), fifo("down")
    waiting = 'trap "" TERM; echo "$$" >"$1"; read x <"$2"; exit 7'
    written = process.write(shell_job(waiting, up, down), warning=NEVER)
    command = [process.shell, str(written)]
    with subprocess.Popen(command, env={"PATH": PATH}, start_new_session=True) as started:
        try:
            job = int(up.read_text())
            _, runner = _state(job)
            with _starved(runner):
                os.kill(runner, signal.SIGTERM)
                down.write_text("\n")
                assert eventually(lambda: _has_ended(job), 60)
            code = started.wait(60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)

    assert _is_code(code, 7, process)
    assert process.markers() == [f"exit.run.{code}"]


def test_the_time_that_has_passed_before_the_launch_counts(bench: RunnerBench) -> None:
    run = Run(
        job_id="a1",
        attempt=1,
        folder="/spool/jobs/a1",
        events="/spool/events",
        directory="/data",
        spec=JobSpec("a"),
        launch=SINGLE,
        frame=bench.frame,
        warning=WalltimeWarning("USR1", 540),
    )
    lines = render_runner(run).splitlines()
    begun = lines.index("_jpsi_start=0; { read -r _jpsi_start _ </proc/uptime; } 2>/dev/null || :")

    assert begun < lines.index("cd /data || _jpsi_end directory 125")
    assert any(it.startswith('\' jpsi-timer 540 "$_jpsi_start" ') for it in lines)
    assert "    left=$(($1 - ${now%.*} + ${2%.*}))" in lines


@pytest.mark.parametrize(
    ("spec", "config", "after"),
    [
        (spec(("USR1", 60), 10), ExecutorConfig(), 540),
        (spec(("USR1", 60)), BatchConfig(default_duration=timedelta(minutes=10)), 540),
        (spec(("USR1", 0.5), 1), ExecutorConfig(), 59),
        (spec(("USR1", 60), 0), BatchConfig(), None),
        (spec(None, 10), BatchConfig(), None),
    ],
    ids=["duration", "configured", "fraction", "unlimited", "none"],
)
def test_the_warning_is_before_the_end_of_the_walltime(
    spec: JobSpec, config: ExecutorConfig, after: int | None
) -> None:
    assert WalltimeWarning.of(spec, config) == (None if after is None else WalltimeWarning("USR1", after))


def test_a_warning_needs_a_limit_that_leaves_time_for_it() -> None:
    config = ExecutorConfig()

    assert list(warning_problems(spec(("USR1", 60), 10), config)) == []
    assert list(warning_problems(spec(None), config)) == []
    assert list(warning_problems(spec(("USR1", 60)), config)) == [
        "attributes.warn: the job has no time limit, before whose end it could be warned; set duration"
    ]
    assert list(warning_problems(spec(("USR1", 60), 1), config)) == [
        "attributes.warn is 60 s before the end, and the job may run for 0:01:00 only"
    ]
