"""Shell lines: background processes receive signals in every shell of the machine, commands become text."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from jpsi.contract.command import Command
from jpsi.contract.shell import ShellLine
from jpsi.plugin.kit.shell_lines import (
    SIGNALS,
    command_lines,
    forward_signals,
    trap_signals,
    unignore_signals,
)

SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]
START = ["(", '[ -z "${BASH_VERSION-}" ] || trap - INT QUIT', 'exec "$@"', ") &"]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def done(shell: str, path: Path, lines: list[str], command: str) -> subprocess.CompletedProcess[str]:
    """Run the lines in a shell with a command in `"$@"`, which has the pid of the shell in `$SHELL_PID`."""
    text = [
        "export SHELL_PID=$$",
        *unignore_signals(),
        *forward_signals("my"),
        *trap_signals("my"),
        *lines,
        "",
    ]
    path.write_text("\n".join(text))
    return subprocess.run(
        [shell, path, "/bin/sh", "-c", command], check=False, capture_output=True, text=True, timeout=60
    )


def _pause_with(directory: Path, command: str) -> str:
    """Return the line that makes a command of the test the sleep(1) of the shell."""
    (directory / "sleep").write_text(f"#!/bin/sh\n{command}\n")
    (directory / "sleep").chmod(0o755)
    return f"PATH={directory}:$PATH"


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_is_passed_on(tmp_path: Path, shell: str, name: str) -> None:
    command = f"trap 'kill $!; exit 9' {name}; sleep 1000 >&- 2>&- & kill -s {name} $SHELL_PID; wait $!; wait"

    ended = done(shell, tmp_path / "x", [*START, '_my_pids="$! "', "_my_wait $!", "exit $_my_code"], command)

    assert ended.returncode == 9, ended.stderr


def test_a_process_heeds_what_the_shell_was_started_to_ignore(tmp_path: Path, shell: str) -> None:
    """As by a batch system that was started behind nohup(1)."""
    lines = [*unignore_signals(), *forward_signals("my"), *START, '_my_pids="$! "', "_my_wait $!"]
    (tmp_path / "x").write_text("\n".join([*lines, "exit $_my_code", ""]))
    ignoring = ["/bin/sh", "-c", "trap '' INT QUIT; exec \"$@\"", "sh", shell, tmp_path / "x"]

    ended = subprocess.run([*ignoring, "/bin/sh", "-c", "kill -INT $$; exit 9"], check=False, timeout=60)

    assert ended.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize("code", [0, 126, 143, 255])
def test_the_code_is_that_of_the_signalled_process(tmp_path: Path, shell: str, code: int) -> None:
    command = f"trap 'kill $!; exit {code}' TERM; sleep 1000 >&- 2>&- & kill $SHELL_PID; wait $!; wait"

    ended = done(shell, tmp_path / "x", [*START, '_my_pids="$! "', "_my_wait $!", "exit $_my_code"], command)

    assert ended.returncode == code


def test_a_process_that_ends_as_the_signal_arrives_has_its_code_or_the_signals(
    tmp_path: Path, shell: str
) -> None:
    """Bash may lose the code then, about one time in five, and says -1 ever after."""
    lines = [*START, '_my_pids="$! "', "_my_wait $!", 'echo "$_my_code"']
    several = [
        _pause_with(tmp_path, "exit 0"),
        "for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do",
        *lines,
        "done",
    ]

    ended = done(shell, tmp_path / "x", several, "trap '' TERM; kill $SHELL_PID; exit 7")

    assert set(ended.stdout.split()) <= {"7", "143"}


@pytest.mark.parametrize("name", ["TERM", "INT"])
@pytest.mark.parametrize("moment", range(5))
def test_a_signal_at_any_moment_of_the_start_reaches_the_process(
    tmp_path: Path, shell: str, name: str, moment: int
) -> None:
    steps = ["_my_first=$!", ":", '_my_pids="$_my_first "', ":", "_my_wait $_my_first"]
    steps = ["\n".join(START), *steps]
    steps.insert(moment, f"kill -s {name} $$")

    ended = done(shell, tmp_path / "x", [*steps, "exit $_my_code"], "exec sleep 1000 >&- 2>&-")

    assert ended.returncode == 128 + signal.Signals[f"SIG{name}"]


def _log_kills(log: Path) -> str:
    """Return the line that logs the words of `kill -s SIGNAL PID...`; the signal 0 only asks."""
    return f'kill() {{ [ "$2" = 0 ] || printf "%s\\n" "$@" >>{log}; command kill "$@"; }}'


#: The lines that start two processes.
START_TWO = [
    *("\n".join(START), "_my_first=$!", '_my_pids="$_my_first "'),
    *("\n".join(START), "_my_second=$!", '_my_pids="$_my_pids$_my_second "'),
]


@pytest.mark.parametrize("moment", range(8))
def test_a_signal_at_any_moment_of_the_start_is_sent_once_to_each_process(
    tmp_path: Path, shell: str, moment: int
) -> None:
    log = tmp_path / "log"
    steps = [*START_TWO, ":", "_my_wait $_my_first\n_my_wait $_my_second"]
    steps.insert(moment, "command kill $$")
    lines = [_log_kills(log), *steps, "echo $_my_first $_my_second"]

    ended = done(shell, tmp_path / "x", lines, "exec sleep 1000 2>&-")

    sent = [it for it in log.read_text().split() if it.isdigit()]
    assert sorted(sent) == sorted(ended.stdout.split())


def test_a_signal_between_the_waits_for_two_processes_is_sent_once_to_the_second(
    tmp_path: Path, shell: str
) -> None:
    log = tmp_path / "log"
    steps = [*START_TWO, "command kill -s KILL $_my_first", "_my_wait $_my_first", "command kill $$"]
    lines = [_log_kills(log), *steps, "_my_wait $_my_second", "echo $_my_second"]

    ended = done(shell, tmp_path / "x", lines, "exec sleep 1000 2>&-")

    sent = [it for it in log.read_text().split() if it.isdigit()]
    assert sent == ended.stdout.split()


@pytest.mark.parametrize("begun", ["''", "1"], ids=["new", "old"])
def test_a_signal_to_a_new_process_is_passed_on_after_a_pause(tmp_path: Path, shell: str, begun: str) -> None:
    """Without the pause, dash lost 24 of 300 signals that came in the first 3 ms of a process."""
    log = tmp_path / "log"
    lines = [
        _pause_with(tmp_path, f'echo "paused $1" >>{log}'),
        f"_my_begun={begun}",
        *START,
        '_my_pids="$! "',
        "_my_wait $!",
        "exit $_my_code",
    ]
    command = f"trap 'echo got >>{log}; exit 9' TERM; kill $SHELL_PID; while :; do :; done"

    ended = done(shell, tmp_path / "x", lines, command)

    assert ended.returncode == 9
    assert log.read_text() == ("got\n" if begun == "1" else "paused 0.2\ngot\n")


def test_signals_reach_all_processes_and_the_list_is_empty_then(tmp_path: Path, shell: str) -> None:
    lines = [
        *START,
        '_my_pids="$! "',
        *START,
        '_my_pids="$_my_pids$! "',
        "kill $$",
        "for pid in $_my_pids; do",
    ]
    lines += ["_my_wait $pid; echo $_my_code", "done", 'echo "[$_my_pids]"']

    assert done(shell, tmp_path / "x", lines, "exec sleep 1000 2>&-").stdout == "143\n143\n[]\n"


def _run(command: Command, **environment: str) -> subprocess.CompletedProcess[str]:
    text = "\n".join(command_lines(command, ShellLine("echo not found; exit 127")))
    variables = {"PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(["/bin/sh", "-c", text], env=variables, capture_output=True, text=True, check=False)


def test_a_shell_execs_the_command_with_its_arguments() -> None:
    words = ["a b", "$HOME", "", "it's", "*", "é\n"]

    assert _run(Command(["printf", "%s|", *words])).stdout == "".join(f"{word}|" for word in words)


def test_variables_are_unset_by_name_and_by_how_they_begin_and_others_are_set() -> None:
    command = Command(["env"], unset=["OLD", "SBATCH_*", "not a name", "*"], environment={"NEW": "a\nb"})

    output = _run(command, OLD="1", OLDER="1", SBATCH_A="x\nSBATCH_B=y", SBATCH="1").stdout

    assert {"OLDER=1", "SBATCH=1", "NEW=a", "b"} <= set(output.splitlines())
    assert not [line for line in output.splitlines() if line.startswith(("OLD=", "SBATCH_"))]


def test_a_missing_command_is_an_error_before_anything_runs() -> None:
    assert _run(Command(["no-such-command"])).stdout == "not found\n"
