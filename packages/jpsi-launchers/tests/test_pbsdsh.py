"""`pbsdsh` hands the environment to its processes by a file, whichever shell /bin/sh is."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchers_support import PBSDSH, SHELLS, fake_sleep, run_tasks

# A pbsdsh whose second process ended on another node.
ELSEWHERE = f"""\
case " $* " in *" 1 ") exit 0 ;; esac
{PBSDSH}"""


@pytest.mark.parametrize("shell", SHELLS)
def test_variables_of_the_user_arrive_whatever_their_names(tmp_path: Path, shell: str) -> None:
    """Bash as /bin/sh ends if a script sets one of its own variables that cannot be set, such as UID."""
    done = run_tasks(tmp_path, shell, "pbsdsh", PBSDSH, 1, "printenv", "word")

    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_the_code_of_a_process_may_be_late(tmp_path: Path, shell: str) -> None:
    fake_sleep(tmp_path, rank=1, sleeps=3)
    (tmp_path / "late").write_text("7\n")

    assert run_tasks(tmp_path, shell, "pbsdsh", ELSEWHERE, 2, "true").returncode == 7
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_process_without_a_code_is_lost_after_a_minute(tmp_path: Path, shell: str) -> None:
    fake_sleep(tmp_path, rank=1, sleeps=3)

    assert run_tasks(tmp_path, shell, "pbsdsh", ELSEWHERE, 2, "true").returncode == 125
    assert "of rank 1:" in (tmp_path / "log").read_text()
    assert len((tmp_path / "slept").read_text().splitlines()) >= 60
