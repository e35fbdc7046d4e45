"""`jpsi run -x slurm`, which has the job's output and exit code and cancels it on Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_slurm import PATIENCE, wait_until_cancelled

JPSI = str(Path(sys.executable).with_name("jpsi"))
_WAITING = "jpsi: the job waits: "


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment with an empty home directory."""
    return {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }


@pytest.mark.parametrize(
    ("text", "code", "output"),
    [("true", 0, ""), ("exit 7", 7, ""), ("kill -9 $$", 137, "jpsi: job failed: ended by SIGKILL\n")],
    ids=["well", "badly", "killed"],
)
def test_output_and_exit_code_are_the_jobs(
    environment: dict[str, str], text: str, code: int, output: str
) -> None:
    ran = subprocess.run(
        [
            JPSI,
            "run",
            "-x",
            "slurm",
            "--name",
            "cli",
            "--",
            "sh",
            "-c",
            f'echo "$SLURM_JOB_NAME"; echo oh >&2; {text}',
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )

    # a busy machine may let it wait, and then jpsi says why
    told = [line for line in ran.stderr.splitlines(keepends=True) if not line.startswith(_WAITING)]
    assert (ran.returncode, ran.stdout, "".join(told)) == (code, "cli\n", f"oh\n{output}")


def test_a_job_that_slurm_refuses_is_a_usage_error(environment: dict[str, str]) -> None:
    ran = subprocess.run(
        [JPSI, "run", "-x", "slurm", "--queue", "nowhere", "--", "true"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "partition" in ran.stderr


def test_ctrl_c_on_a_terminal_cancels(environment: dict[str, str]) -> None:
    ours, theirs = os.openpty()
    words = [JPSI, "run", "-x", "slurm", "--", "sh", "-c", "echo id=$SLURM_JOB_ID=; exec sleep 1000"]
    with subprocess.Popen(words, env=environment, preexec_fn=lambda: os.login_tty(theirs)) as jpsi:  # noqa: PLW1509  no other way to a terminal
        os.close(theirs)
        seen = _read_until(ours, b"=\r\n")
        os.write(ours, b"\x03")
        seen += _read_until(ours, None)
        code = jpsi.wait(PATIENCE)

    assert code == 130, seen
    job_id = seen.split(b"id=")[1].split(b"=")[0].decode()
    wait_until_cancelled(job_id)


def test_a_signal_to_the_command_cancels_the_job(environment: dict[str, str]) -> None:
    words = [JPSI, "run", "-x", "slurm", "--", "sh", "-c", "echo $SLURM_JOB_ID; exec sleep 1000"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as jpsi:
        assert jpsi.stdout is not None
        job_id = jpsi.stdout.readline().strip()
        jpsi.send_signal(signal.SIGTERM)
        code = jpsi.wait(PATIENCE)

    assert code == 130
    wait_until_cancelled(job_id)


def _read_until(terminal: int, end: bytes | None) -> bytes:
    """Return the terminal's output up to these characters, or to the end."""
    seen = b""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # no process has the terminal open any more
            return seen
        if end is not None and end in seen:
            return seen
    return pytest.fail(f"only this was shown: {seen!r}")
