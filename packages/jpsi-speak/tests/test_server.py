"""The server of a queue as a process of its own, and the commands that call it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi_speak.folders import prepare


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide the directory of the commands; their server is killed in the end."""
    monkeypatch.chdir(tmp_path)
    folder = prepare("slurm", "local", None, is_lenient=False)
    yield folder
    kill_server(folder)


def kill_server(folder: Path) -> None:
    """Kill the server, if there is one, and return when it is gone."""
    pid = int((folder.parent / "lock").read_text())
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2:3]:
        pass


def call(commands: Path, *words: str) -> str:
    """Return the output of a command."""
    environment = {**os.environ, "PATH": f"{commands}:/usr/bin:/bin"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_two_programs_see_one_queue_that_outlasts_its_server(commands: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    assert call(commands, "sbatch", "-H", "--parsable", "--wrap", f"echo run >>{proof}") == "1\n"

    kill_server(commands)

    assert call(commands, "squeue", "-h", "-o", "%i %r") == "1 JobHeldUser\n"
    assert call(commands, "sbatch", "--parsable", "-d", "afterany:1", "--wrap", "true") == "2\n"
    call(commands, "scontrol", "release", "1")
    while call(commands, "squeue", "-h"):
        pass
    assert call(commands, "sacct", "-n", "-P", "-o", "JobID,State") == "1|COMPLETED\n2|COMPLETED\n"
    assert proof.read_text() == "run\n"


def test_a_program_may_speak_pbs(tmp_path: Path) -> None:
    folder = prepare("pbs", "local", None, is_lenient=False)
    try:
        # the script comes from standard input
        submit = f"echo 'exit 3' | qsub -J 1-2 -o {tmp_path} -e {tmp_path}"
        assert call(folder, "sh", "-c", submit) == "1[].jpsi\n"
        while "F" not in call(folder, "qstat", "-x").split():
            pass
        assert call(folder, "qstat", "-x", "-f", "1[]").count("Exit_status = 1\n") == 1
    finally:
        kill_server(folder)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("slurm", "-x", "slrum"), "no executor 'slrum'"),
        (("slrum", "-x", "local"), "no speaker 'slrum'"),
    ],
)
def test_an_unknown_name_is_a_mistake_in_the_command_line(words: tuple[str, ...], message: str) -> None:
    done = subprocess.run(["jpsi", "speak", *words], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"jpsi: {message}")


def test_many_programs_get_numbers_of_their_own(commands: Path) -> None:
    environment = {**os.environ, "PATH": f"{commands}:/usr/bin:/bin"}
    words = ["sbatch", "--parsable", "-H", "--wrap", "true"]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) for _ in range(12)]

    numbers = [int(it.communicate()[0]) for it in running]

    assert sorted(numbers) == list(range(1, 13))


def test_srun_runs_on_the_node_of_a_job_and_other_commands_do_not(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(commands, "squeue")
    for file in commands.iterdir():
        file.write_text(file.read_text().replace(f" {os.uname().nodename} ", " login.example.org "))
    monkeypatch.setenv("SLURM_JOB_ID", "17")

    shown = call(commands, "srun", "-n2", "sh", "-c", "echo $SLURM_JOB_ID.$SLURM_PROCID")

    assert sorted(shown.splitlines()) == ["17.0", "17.1"]
    done = subprocess.run([commands / "squeue"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        255,
        "squeue: error: the queue of jpsi speak is on login.example.org\n",
    )
