"""A fork behaves as a new process does, and leaves no trace in the next one."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distributions import lay
from jpsi_testing.forks import MODULES, PROGRAMS, ForkServer
from jpsi_testing.threads import in_this_thread

PATIENCE = 100.0

ENDS = {
    "arguments": "import sys; print(sys.argv, __name__); sys.exit(3)",
    "a failure": "import sys\nraise ValueError(sys.argv[1])",
    "a kill": "import os, signal; print('half', flush=True); os.kill(os.getpid(), signal.SIGKILL)",
    "no end of the interpreter": "import os, sys; print('lost'); os.write(1, b'kept'); os._exit(5)",
    "a function for its end": "import atexit; atexit.register(print, 'last'); print('first')",
    "a thread": "import threading; threading.Timer(0.05, print, ['later']).start(); print('now')",
    "a thread that is not waited for": (
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start(); print('now')"
    ),
    "output that is lost": "import os; print('lost'); os.close(1)",
    "an interrupt": "raise KeyboardInterrupt",
    "an exit code that does not fit": "import sys; sys.exit(-1)",
    "where it imports from": "import sys; print(sys.path)",
    "no output": "import sys; sys.stdout = None; sys.exit(3)",
    "input": "import sys; print(sys.stdin.read()[::-1]); sys.exit('a message')",
}


@pytest.mark.parametrize("program", ENDS.values(), ids=ENDS)
def test_a_program_ends_in_a_fork_as_a_new_one_does(program: str) -> None:
    words = ["-c", program, "a b"]
    new = subprocess.run([sys.executable, *words], check=False, capture_output=True, input=b"abc")
    forked = PROGRAMS.run(*words, input=b"abc", timeout=PATIENCE)

    last = [it.stderr.splitlines()[-1:] for it in (new, forked)]
    assert (forked.returncode, forked.stdout, last[1]) == (new.returncode, new.stdout, last[0])


def test_a_module_runs_in_a_fork_as_in_a_new_process() -> None:
    words = ["-m", "json.tool", "--compact"]
    new = subprocess.run([sys.executable, *words], check=False, capture_output=True, input=b'{"a": 1}')
    forked = PROGRAMS.run(*words, input=b'{"a": 1}', timeout=PATIENCE)

    assert (forked.returncode, forked.stdout, forked.stderr) == (new.returncode, new.stdout, new.stderr)


def test_every_module_that_is_imported_ahead_exists() -> None:
    assert [it for it in MODULES if importlib.util.find_spec(it) is None] == []


def test_a_caller_that_is_interrupted_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    server, pipe = ForkServer(), os.pipe
    server.run("-c", "pass", timeout=PATIENCE)

    def pipe_that_nobody_reads() -> tuple[int, int]:
        reading, writing = pipe()
        os.close(reading)
        told, telling = pipe()
        os.write(telling, b"1\n0")
        os.close(telling)
        return told, writing

    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe", in_this_thread(pipe_that_nobody_reads, pipe))
        interrupted = server.start("-c", "pass")
    with interrupted:
        assert interrupted.pid == 1

    assert server.run("-c", "print(1)", timeout=PATIENCE).stdout == b"1\n"


def test_a_relative_directory_is_that_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path)

    program = "import os; print(os.getcwd(), end='')"
    done = PROGRAMS.run("-c", program, cwd=Path("in"), timeout=PATIENCE)

    assert done.stdout.decode() == str(tmp_path / "in")


def test_a_fork_has_the_variables_directory_and_umask_of_its_call(tmp_path: Path) -> None:
    program = (
        "import json, os; print(json.dumps([os.getcwd(), os.environ.get('MINE')])); open('made', 'w').close()"
    )
    before = os.umask(0o27)
    try:
        mine = PROGRAMS.run("-c", program, cwd=tmp_path, env={**os.environ, "MINE": "1"}, timeout=PATIENCE)
    finally:
        os.umask(before)
    (tmp_path / "in it").mkdir()
    other = PROGRAMS.run("-c", program, cwd=tmp_path / "in it", timeout=PATIENCE)

    assert json.loads(mine.stdout) == [str(tmp_path), "1"]
    assert json.loads(other.stdout) == [str(tmp_path / "in it"), None]
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o640


def test_other_variables_of_the_interpreter_take_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys; sys.exit(33)")

    done = PROGRAMS.run("-m", "mine", env={**os.environ, "PYTHONPATH": str(tmp_path)}, timeout=PATIENCE)

    assert done.returncode == 33


def test_arguments_and_output_may_be_large() -> None:
    program = "import sys; print(sys.argv[1], end=''); print(sys.argv[1], end='', file=sys.stderr)"
    text = "x" * 1_000_000

    done = PROGRAMS.run("-c", program, text, timeout=PATIENCE)

    assert (done.stdout.decode(), done.stderr.decode()) == (text, text)


def test_what_a_fork_changes_is_its_own() -> None:
    program = (
        "import json, os, signal, sys\n"
        "print(json.dumps('text'), open(os.devnull).name, flush=True)\n"
        "json.dumps = repr\n"
        "sys.addaudithook(lambda event, _: event == 'open' and os.kill(os.getpid(), signal.SIGKILL))\n"
        "open(os.devnull)"
    )

    for _ in range(2):
        done = PROGRAMS.run("-c", program, timeout=PATIENCE)
        assert (done.returncode, done.stdout) == (-signal.SIGKILL, f'"text" {os.devnull}\n'.encode())


def test_installed_modules_are_imported_ahead_and_no_others() -> None:
    forks = ForkServer("tabnanny", "no_such_module", "colorsys")
    program = "import sys; print([it in sys.modules for it in ('tabnanny', 'colorsys', 'this')])"

    assert forks.run("-c", program, timeout=PATIENCE).stdout == b"[True, True, False]\n"


def test_a_running_fork_is_killed_and_waited_for() -> None:
    program = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(1000)"

    with PROGRAMS.start("-c", program, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        process.kill()
        assert process.wait(PATIENCE) == -signal.SIGKILL
        # its id may be another's by now
        process.send_signal(signal.SIGKILL)

    assert process.returncode == -signal.SIGKILL


def test_a_fork_that_takes_too_long_is_killed() -> None:
    """It would sleep on, and be waited for, if it were not."""
    with pytest.raises(subprocess.TimeoutExpired):
        PROGRAMS.run("-c", "import time; time.sleep(1000)", timeout=0.1)


def test_an_executor_that_cannot_be_imported_ends_no_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path, "wrong", executors={"wrong": "wrong_executor"})
    (tmp_path / "wrong_executor.py").write_text("open('imported', 'w').close(); raise RuntimeError\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    done = ForkServer().run("-c", "print('runs')", timeout=100)

    assert (done.returncode, done.stdout) == (0, b"runs\n")
    assert (tmp_path / "imported").exists()
