"""`pbsdsh` hands the environment to its processes by a file, whichever shell /bin/sh is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from launchers_support import PBSDSH, lines_of, program, script_of, spec_of

SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]


# A sleep(1) that takes no time, and counts; from the third on, the code is there.
SLEEP = """\
echo >>"$HOME/slept"
[ "$(wc -l <"$HOME/slept")" -lt 3 ] || mv "$HOME/late" "$(echo "$HOME"/tmp.*)/code.1" 2>/dev/null
"""
# A pbsdsh whose second process ended on another node.
ELSEWHERE = f"""\
case " $* " in *" 1 ") exit 0 ;; esac
{PBSDSH}"""


def run(
    tmp_path: Path, shell: str, pbsdsh: str, processes: int, *command: str
) -> subprocess.CompletedProcess[str]:
    """Run a job of some processes with this pbsdsh, in a shell that is /bin/sh."""
    program(tmp_path / "bin" / "pbsdsh", pbsdsh)
    sh = tmp_path / "sh"
    sh.symlink_to(shell)
    (tmp_path / "nodes").write_text("node01\n" * processes)
    script = script_of(lines_of(spec_of("pbsdsh", process_count=processes)), tmp_path / "launch")
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


@pytest.mark.parametrize("shell", SHELLS)
def test_variables_of_the_user_arrive_whatever_their_names(tmp_path: Path, shell: str) -> None:
    """Bash as /bin/sh ends if a script sets one of its own variables that cannot be set, such as UID."""
    done = run(tmp_path, shell, PBSDSH, 1, "printenv", "word")

    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_the_code_of_a_process_may_be_late(tmp_path: Path, shell: str) -> None:
    program(tmp_path / "bin" / "sleep", SLEEP)
    (tmp_path / "late").write_text("7\n")

    assert run(tmp_path, shell, ELSEWHERE, 2, "true").returncode == 7
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_process_without_a_code_is_lost_after_a_minute(tmp_path: Path, shell: str) -> None:
    program(tmp_path / "bin" / "sleep", SLEEP)

    assert run(tmp_path, shell, ELSEWHERE, 2, "true").returncode == 125
    assert "of rank 1:" in (tmp_path / "log").read_text()
    assert len((tmp_path / "slept").read_text().splitlines()) >= 60
