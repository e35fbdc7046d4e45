"""Helpers for tests of launchers: specs, fakes of programs, and running of lines."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jpsi import JobSpec, ResourceSpecV1

RECORDINGS = Path(__file__).parent / "recordings"


def spec_of(launcher: str, **resources: Any) -> JobSpec:
    return JobSpec("/bin/true", launcher=launcher, resources=ResourceSpecV1.uneven(**resources))


def lines_of(spec: JobSpec) -> list[str]:
    return list(importlib.import_module(f"jpsi_launchers.{spec.launcher}").launch(spec))


def script_of(lines: Sequence[str], path: Path) -> Path:
    path.write_text("\n".join(["#!/bin/sh", "(", *lines, ")", ""]))
    return path


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def print_arguments(path: Path, version: str = "/dev/null") -> Path:
    """Make a program that prints its name and its arguments, each on a line, or a version."""
    return program(
        path,
        f'[ "$*" != --version ] || exec cat "{version}"\nprintf "%s\\n" "${{0##*/}}" "$@"',
    )


def make_fake_launcher(path: Path, rank: str, *, signals_sessions: bool = False) -> Path:
    """Make a program that drops its options and runs as many ranks of the command as they request.

    With `signals_sessions` it gives each process its own session, and signals that, as Hydra and Flux do.
    """
    # The name of the rank's variable and the number are all in which it differs from `multiple`.
    several = "\n".join(lines_of(spec_of("multiple"))[1:])
    if signals_sessions:
        several = several.replace('kill -s "$1" $2', 'kill -s "$1" -- $(printf " -%s" $2)')
        several = several.replace('exec "$@" <&3', 'exec setsid "$@" <&3')
    return program(path, _FAKE_LAUNCHER.format(rank=rank, several=several))


_FAKE_LAUNCHER = """\
JPSI_SIZE=1
_parts=''
while :; do
  case $1 in
  --ntasks=* | --nrs=*) JPSI_SIZE=${{1#*=}}; shift ;;
  --het-group=*) _parts=1; shift ;;
  -n) JPSI_SIZE=$2; shift 2 ;;
  -[Ndf]) shift 2 ;;
  run | -*) shift ;;
  *) break ;;
  esac
done
# The command is the same in all parts, which colons separate.
if [ -n "$_parts" ]; then
  for _word in "$@"; do
    shift
    case $_parts$_word in
    1:) _parts=2 ;;
    1*) set -- "$@" "$_word" ;;
    2--ntasks=*) JPSI_SIZE=$((JPSI_SIZE + ${{_word#*=}})) ;;
    esac
  done
fi
set -- /bin/sh -c 'export {rank}=$JPSI_RANK; unset JPSI_RANK JPSI_SIZE; exec "$@"' sh "$@"
{several}"""


def _task_starter(options: str, variable: str) -> str:
    """Return the program of a fake that starts a process on a node, and passes on nothing.

    The process has neither the environment nor the streams of its caller, begins in another directory and
    ignores HUP and QUIT. The exit code is 0 whatever that of the process is.
    """
    return f"""\
[ "$1 $3" = '{options}' ] || exit 2
shift 3
cd / && umask 077
trap '' HUP QUIT
setsid /usr/bin/env -i HOME="$HOME" PATH=/usr/bin:/bin {variable}=$$ "$@" </dev/null >/dev/null 2>&1 &
trap 'kill -s TERM -- "-$!"; exit 1' TERM INT
wait "$!" || echo "task 0 exit status $?" >&2
exit 0"""


PBSDSH = _task_starter("-n --", "PBS_TASKNUM")
BLAUNCH = _task_starter("-z -no-shell", "LSF_PM_TASKID")

SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]


def run_tasks(
    tmp_path: Path, shell: str, name: str, text: str, processes: int, *command: str
) -> subprocess.CompletedProcess[str]:
    """Run a job of some processes with a program that starts each of them, in a shell that is /bin/sh."""
    program(tmp_path / "bin" / name, text)
    sh = tmp_path / "sh"
    sh.symlink_to(shell)
    (tmp_path / "nodes").write_text("node01\n" * processes)
    script = script_of(lines_of(spec_of(name, process_count=processes)), tmp_path / "launch")
    script.write_text(script.read_text().replace("/bin/sh", str(sh)))
    files = {"_jpsi_folder": tmp_path, "_jpsi_log": tmp_path / "log", "_jpsi_stdin": "/dev/null"}
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "word": "mine", "UID": "5"}
    return subprocess.run(
        [sh, script, *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={
            **environment,
            "JPSI_NODEFILE": f"{tmp_path}/nodes",
            **{it: str(at) for it, at in files.items()},
        },
    )


def fake_sleep(tmp_path: Path, rank: int, sleeps: int) -> None:
    """Make a sleep(1) that takes no time; after so many seconds the code of a rank, `late`, is there."""
    program(
        tmp_path / "bin" / "sleep",
        f"""\
[ "$1" = 1 ] || exit 0
echo >>"$HOME/slept"
[ "$(wc -l <"$HOME/slept")" -lt {sleeps} ] ||
  mv "$HOME/late" "$(echo "$HOME"/tmp.*)/code.{rank}" 2>/dev/null
""",
    )


def run(script: Path, *command: str, path: Path | None = None, **environment: str) -> list[str]:
    """Run a script of these lines, and return the lines that it printed."""
    places = os.environ["PATH"] if path is None else f"{path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", script, *command],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": places, **environment},
    )
    assert not done.stderr
    return done.stdout.splitlines()


def missing(*programs: str) -> str | None:
    """Return the first of these programs that is not installed."""
    return next((name for name in programs if shutil.which(name) is None), None)
