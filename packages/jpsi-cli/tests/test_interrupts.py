from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Presence, Started

Start = Callable[..., "Started"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_the_first_signal_cancels_and_waits_for_the_end(
    start: Start, presence: Presence, number: signal.Signals
) -> None:
    started = start("run", "--", "sh", "-c", f"{presence.script}; echo ready; exec sleep 60")
    started.wait_for(b"ready")

    os.killpg(started.process.pid, number)
    code, _, errors = started.end()

    assert code == 130
    assert presence.is_over()
    assert errors == b""


def test_a_job_that_waits_for_its_quota_is_not_submitted_after_ctrl_c(
    start: Start, start_on_terminal: Start, environment: dict[str, str]
) -> None:
    folder = Path(environment["XDG_CONFIG_HOME"], "jpsi")
    folder.mkdir(mode=0o700)
    (folder / "config.yaml").write_text("executors: {local: {config: {max_active: 1}}}")
    first = start("run", "--", "sh", "-c", "echo ready; exec sleep 60")
    first.wait_for(b"ready")
    second = start_on_terminal("run", "--", "echo", "it ran")
    second.wait_for(b"jpsi: jobs wait to be submitted: 1 of 1 slots (max_active) are taken")

    second.type(b"\x03")
    code, output, _ = second.end()

    assert code == 130
    assert b"it ran" not in output
    os.killpg(first.process.pid, signal.SIGINT)
    assert first.end()[0] == 130


def test_output_written_during_the_cancellation_is_shown(start: Start) -> None:
    script = "trap 'echo cleaning up; echo really >&2; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    started = start("run", "--", "sh", "-c", script)
    started.wait_for(b"ready")

    os.killpg(started.process.pid, signal.SIGINT)
    code, output, errors = started.end()

    assert code == 130
    assert output == b"ready\ncleaning up\n"
    assert b"really\n" in errors


def test_the_second_ctrl_c_exits_immediately(start_on_terminal: Start) -> None:
    started = start_on_terminal("run", "--", "sh", "-c", "trap '' TERM; echo ready $$; exec sleep 60")
    started.wait_for(b"ready ")
    started.wait_for(b"\n")
    started.type(b"\x03")
    started.wait_for(b"cancelling")
    started.type(b"\x03")

    code, output, _ = started.end()

    found = re.search(rb"ready (\d+)", output)
    job = re.search(rb"job ([0-9a-f-]{36})", output)
    assert found is not None
    assert job is not None
    os.kill(int(found[1]), signal.SIGKILL)  # the job still exists
    assert code == 130
    assert rb"jpsi: exiting; job %b (native id " % job[1] in output


def test_a_hangup_that_is_ignored_stays_ignored(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    prefix = ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")
    started = start("run", "--", "sh", "-c", "echo ready; read word <go; echo $word", prefix=prefix)
    started.wait_for(b"ready")

    os.killpg(started.process.pid, signal.SIGHUP)
    (tmp_path / "go").write_text("on\n", encoding="utf-8")

    assert started.end() == (0, b"ready\non\n", b"")


def test_a_closed_reader_cancels_the_job_silently(start: Start, presence: Presence) -> None:
    started = start("run", "--", "sh", "-c", f"{presence.script}; yes")
    started.wait_for(b"y\ny\n")

    assert started.process.stdout is not None
    started.process.stdout.close()
    started.process.stdout = None
    assert started.process.stderr is not None
    errors = started.process.stderr.read()

    assert started.process.wait(timeout=60) == 141
    assert presence.is_over()
    assert errors == b""


def test_a_cancellation_by_another_process_is_reported(start: Start, environment: dict[str, str]) -> None:
    started = start("run", "--", "sh", "-c", "echo $PPID; exec sleep 60")
    started.wait_for(b"\n")
    cancel = (
        "import sys, jpsi\n"
        "executor, job = jpsi.JobExecutor.get_instance('local'), jpsi.Job()\n"
        "executor.attach(job, sys.argv[1])\n"
        "job.cancel()\n"
        "job.wait()\n"
    )

    subprocess.run([sys.executable, "-c", cancel, started.output.strip()], env=environment, check=True)
    code, _, errors = started.end()

    assert code == 130
    assert errors == b"jpsi: job cancelled: the job was cancelled\n"
