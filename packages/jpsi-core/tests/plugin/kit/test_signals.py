"""What runs in the background takes signals as if it ran in the foreground, in every shell of the machine."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi.plugin.kit.signals import SIGNALS, heed_signals, pass_signals, trap_signals

SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]
pytestmark = pytest.mark.parametrize("shell", SHELLS)
START = ["(", '[ -z "${BASH_VERSION-}" ] || trap - INT QUIT', 'exec "$@"', ") &"]


@pytest.fixture(autouse=True)
def nothing_is_ignored() -> Iterator[None]:
    """What is ignored when a shell starts, as HUP is under nohup, stays so in it."""
    ignored = [it for it in (signal.Signals[f"SIG{name}"] for name in SIGNALS) if _is_ignored(it)]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def done(shell: str, path: Path, lines: list[str], command: str) -> subprocess.CompletedProcess[str]:
    """A shell runs the lines with a command in `"$@"`; the command knows it as `$SHELL_PID`."""
    text = ["export SHELL_PID=$$", *heed_signals(), *pass_signals("my"), *trap_signals("my"), *lines, ""]
    path.write_text("\n".join(text))
    return subprocess.run(
        [shell, path, "/bin/sh", "-c", command], check=False, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_is_passed_on(tmp_path: Path, shell: str, name: str) -> None:
    command = f"trap 'kill $!; exit 9' {name}; sleep 1000 >&- 2>&- & kill -s {name} $SHELL_PID; wait $!; wait"

    ended = done(shell, tmp_path / "x", [*START, '_my_pids="$! "', "_my_wait $!", "exit $_my_code"], command)

    assert ended.returncode == 9, ended.stderr


@pytest.mark.parametrize("code", [0, 126, 143, 255])
def test_code_is_that_of_the_process_that_was_told(tmp_path: Path, shell: str, code: int) -> None:
    command = f"trap 'kill $!; exit {code}' TERM; sleep 1000 >&- 2>&- & kill $SHELL_PID; wait $!; wait"

    ended = done(shell, tmp_path / "x", [*START, '_my_pids="$! "', "_my_wait $!", "exit $_my_code"], command)

    assert ended.returncode == code


def test_a_process_that_ends_as_the_signal_comes_has_its_code_or_the_signals(
    tmp_path: Path, shell: str
) -> None:
    """Bash may lose the code then, about one time in five, and says -1 ever after."""
    lines = [*START, '_my_pids="$! "', "_my_wait $!", 'echo "$_my_code"']
    several = ["for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do", *lines, "done"]

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
