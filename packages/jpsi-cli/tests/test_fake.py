"""The command `jpsi fake`: the program has a batch system and keeps its process, and no process is left."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jpsi.plugin import install_command
from jpsi_cli.cluster import fake as companion
from jpsi_testing.threads import in_this_thread
from jpsi_testing.waiting import eventually

if TYPE_CHECKING:
    from conftest import Presence, Started

Run = Callable[..., subprocess.CompletedProcess[bytes]]
Start = Callable[..., "Started"]


@pytest.fixture
def temporary(tmp_path: Path, environment: dict[str, str]) -> Path:
    """Return a directory for the fake's files; pytest's paths may be too long for a socket."""
    folder = tmp_path / "t"
    folder.mkdir()
    environment["TMPDIR"] = str(folder)
    return folder


@pytest.fixture(autouse=True)
def _are_processes_gone(temporary: Path) -> Iterator[None]:
    """Check that no process is left a moment after each test."""
    yield
    assert eventually(lambda: not list(temporary.iterdir())), list(temporary.iterdir())


def test_the_program_has_the_commands_on_its_path(run: Run) -> None:
    script = "echo exit 0 | tsubmit && until tstat 1 | grep -o '1 DONE 0'; do :; done; exit 7"

    result = run("fake", "toy", "--", "sh", "-c", script)

    assert result.returncode == 7
    assert result.stdout == b"accepted as job 1\n1 DONE 0\n"
    assert result.stderr == b""


def test_without_jpsi_testing_the_extra_is_named(
    run: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    (hiding / "jpsi_testing.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'jpsi_testing'\", name='jpsi_testing')\n"
    )
    environment["PYTHONPATH"] = str(hiding)

    result = run("fake", "slurm", "--", "true")

    assert result.returncode == 125
    assert result.stdout == b""
    hint = f"jpsi fake needs the package jpsi-testing; try: {install_command('jpsi-cli[fake]')}"
    assert result.stderr.decode() == f"jpsi: {hint}\n"


def test_a_failed_job_is_listed_as_failed_without_a_follower(run: Run) -> None:
    """The queue was polled for requeue codes once, when the job was submitted."""
    jpsi = f"{shlex.quote(sys.executable)} -m jpsi_cli"
    script = (
        f"{jpsi} submit -x slurm -- sh -c 'exit 3' && until {jpsi} ls --state failed | grep 3; do :; done"
    )

    result = run("fake", "slurm", "--", "sh", "-c", script)

    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("system", ["slurm", "flux", "pbs", "torque", "lsf"])
def test_every_process_of_a_job_on_several_nodes_runs(
    run: Run, environment: dict[str, str], system: str
) -> None:
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"

    result = run(*f"fake {system} -- jpsi run -x {system} --nodes 2 --processes 4 -- hostname".split())

    assert result.stdout.decode().split() == [os.uname().nodename] * 4
    assert result.returncode == 0


def test_the_program_has_the_streams(run: Run) -> None:
    result = run("fake", "toy", "--", "sh", "-c", "cat; echo error >&2", input=b"in\n")

    assert (result.stdout, result.stderr) == (b"in\n", b"error\n")


def test_the_program_owns_the_terminal(start_on_terminal: Start) -> None:
    """Ctrl-C reaches the program, and no other process acts on it."""
    program = "import os, signal, sys\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(7))\n"
    program += "print('ready', os.isatty(0))\nwhile True: signal.pause()"
    started = start_on_terminal("fake", "toy", "--", sys.executable, "-uc", program)
    started.wait_for(b"ready True")
    started.type(b"\x03")

    assert started.end()[0] == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_the_program_gets_signals(start: Start, number: signal.Signals) -> None:
    program = (
        f"import signal, sys\nsignal.signal({number:d}, lambda *_: sys.exit(9))\nprint(1)\nsignal.pause()"
    )
    started = start("fake", "toy", "--", sys.executable, "-uc", program)
    started.wait_for(b"1")

    started.process.send_signal(number)

    assert started.end()[0] == 9


def test_the_program_gets_sigpipe_on_a_closed_pipe(run: Run) -> None:
    """Python ignores SIGPIPE; the program has the default action, like any other."""
    result = run("fake", "toy", "--", "sh", "-c", "yes | head -n 1; exit 3")

    assert (result.returncode, result.stdout, result.stderr) == (3, b"y\n", b"")


def test_the_program_has_no_children_that_it_did_not_start(run: Run) -> None:
    result = run("fake", "toy", "--", sys.executable, "-c", "import os; os.wait()")

    assert b"ChildProcessError" in result.stderr


@pytest.mark.parametrize("end", ["exit 0", "kill -9 $$"])
def test_jobs_end_with_the_program_in_every_case(run: Run, presence: Presence, end: str) -> None:
    script = f"{presence.script}; exec sleep 1000"
    wait = "until tstat 1 | grep RUNNING; do :; done"

    result = run(
        "fake", "toy", "--", "sh", "-c", f"echo {script!r} | tsubmit; {wait}; {end}".replace('"', "'")
    )

    assert result.returncode == (0 if end == "exit 0" else -signal.SIGKILL)
    assert eventually(presence.is_over)


def test_a_process_that_submits_jobs_again_ends_with_the_program(run: Run, tmp_path: Path) -> None:
    proof = shlex.quote(str(tmp_path / "proof"))
    job = shlex.quote(f"echo ran >>{proof}; exit 9")
    script = f"""
        {shlex.quote(sys.executable)} -m jpsi_cli submit -x slurm --retry 9=50 -- sh -c {job} || exit
        until test "$(wc -l <{proof})" -ge 2; do sleep 0.05; done
    """

    result = run("fake", "slurm", "--", "sh", "-c", script)

    # that no process is left, all tests check
    assert result.returncode == 0


def test_jobs_of_the_fake_are_stored_apart(run: Run, temporary: Path) -> None:
    result = run("fake", "toy", "--", "sh", "-c", 'echo "$XDG_STATE_HOME"')

    assert Path(os.fsdecode(result.stdout)).is_relative_to(temporary)


def test_slots_limit_running_processes(run: Run) -> None:
    script = "echo sleep 1000 | tsubmit; echo sleep 1000 | tsubmit; tstat 1 2"

    result = run("fake", "--slots", "1", "toy", "--", "sh", "-c", script)

    assert [line.split()[:2] for line in result.stdout.splitlines()[3:]] == [
        [b"1", b"RUNNING"],
        [b"2", b"WAITING"],
        [b"2", b"lines"],
    ]


def test_lag_keep_and_accounting_shape_listings(run: Run) -> None:
    """A job appears late, and is forgotten as soon as it ends."""
    late = run("fake", "--lag", "1h", "toy", "--", "sh", "-c", "echo sleep 1000 | tsubmit; tstat 1")
    program = run(
        *("fake", "--keep", "0", "toy", "--"),
        *("sh", "-c", "echo exit 0 | tsubmit; while tstat 1 | grep -q 'RUN\\|WAIT'; do :; done; tstat 1"),
    )

    assert late.stdout == program.stdout
    assert late.stdout.splitlines()[::2] == [b"accepted as job 1", b"0 lines"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "name a batch system, and the command to run with it: jpsi fake slurm -- pytest"),
        (("toy",), 2, "no command to run with toy; type it after --"),
        (("toy", "--"), 2, "no command to run with toy; type it after --"),
        (("toy", "--slots", "2", "--", "true"), 2, "--slots comes after toy; options come before it"),
        (("--slots", "0", "toy", "true"), 2, "--slots: '0' is not a whole number of at least 1"),
        (("--keep", "soon", "toy", "true"), 2, "--keep: 'soon' is not a time such as"),
        (("nothing", "true"), 125, "no fake 'nothing'; installed: "),
        (("toy", "/no/such/program"), 127, "/no/such/program cannot be run: No such file or directory"),
        (("toy", "/"), 126, "/ cannot be run: Permission denied"),
    ],
    ids=str,
)
def test_a_usage_error_is_reported_in_a_sentence(
    run: Run, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = run("fake", *arguments)

    assert result.returncode == code
    assert result.stderr.decode().startswith(f"jpsi: {message}")
    assert result.stdout == b""


def test_a_fake_that_cannot_start_is_an_error(environment: dict[str, str]) -> None:
    """Its commands cannot be written."""
    command = [sys.executable, "-m", "jpsi_cli", "fake", "toy", "true"]
    limited = "import os, resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    limited += f"os.execv(sys.executable, {command!r})"

    result = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, env=environment, check=False
    )

    assert result.returncode == 125
    assert b"jpsi: the fake toy could not be started" in result.stderr


def test_without_pidfds_the_end_is_noticed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:

        def nap(seconds: float) -> None:
            naps.append(seconds)
            process.communicate()

        monkeypatch.setattr(companion.time, "sleep", in_this_thread(nap, time.sleep))
        companion._wait_for_exit(process.pid, None)

    assert len(naps) == 1
