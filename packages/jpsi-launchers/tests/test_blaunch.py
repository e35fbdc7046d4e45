"""`blaunch` runs each process on the host of its slot, however much LSF's program passes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchers_support import BLAUNCH, SHELLS, fake_sleep, run_tasks

# A blaunch that passes on all: the environment, the directory, the streams, signals and the exit code.
TRANSPARENT = """\
[ "$1 $3" = '-z -no-shell' ] || exit 255
printf '%s\\n' "$2" >>"$HOME/hosts"
shift 3
export LSF_PM_TASKID=7
exec "$@"
"""
# A blaunch whose process started, and did not leave its code.
BROKEN = """\
true >"$6/out.$7"
exit 5
"""
SIGNALLED = """\
true >"$6/out.$7"
kill -s USR1 "$PPID"
exit 5
"""
SHOW = 'echo "$JPSI_RANK of $JPSI_SIZE, $word, ${LSF_PM_TASKID:+numbered}"; exit "$JPSI_RANK"'


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("blaunch", [BLAUNCH, TRANSPARENT], ids=["passes on nothing", "passes on all"])
def test_processes_have_ranks_variables_and_codes(tmp_path: Path, shell: str, blaunch: str) -> None:
    done = run_tasks(tmp_path, shell, "blaunch", blaunch, 3, "/bin/sh", "-c", SHOW)

    assert (done.returncode, done.stderr) == (1, "")
    assert sorted(done.stdout.splitlines()) == [f"{rank} of 3, mine, numbered" for rank in range(3)]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_process_starts_on_the_host_of_its_slot(tmp_path: Path, shell: str) -> None:
    run_tasks(tmp_path, shell, "blaunch", TRANSPARENT, 2, "true")

    assert (tmp_path / "hosts").read_text() == "node01\nnode01\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_code_of_a_process_that_failed_may_be_late(tmp_path: Path, shell: str) -> None:
    fake_sleep(tmp_path, rank=0, sleeps=3)
    (tmp_path / "late").write_text("7\n")

    assert run_tasks(tmp_path, shell, "blaunch", BROKEN, 1, "true").returncode == 7
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_process_without_a_code_is_lost_after_a_minute(tmp_path: Path, shell: str) -> None:
    """The code of blaunch is none of the job's: it may be its own, as where a host is not reached."""
    fake_sleep(tmp_path, rank=0, sleeps=3)

    assert run_tasks(tmp_path, shell, "blaunch", BROKEN, 1, "true").returncode == 125
    assert "of rank 0:" in (tmp_path / "log").read_text()
    assert len((tmp_path / "slept").read_text().splitlines()) >= 60


@pytest.mark.parametrize("shell", SHELLS)
def test_a_process_may_go_on_after_a_signal_that_ended_blaunch(tmp_path: Path, shell: str) -> None:
    fake_sleep(tmp_path, rank=0, sleeps=100)
    (tmp_path / "late").write_text("7\n")

    assert run_tasks(tmp_path, shell, "blaunch", SIGNALLED, 1, "true").returncode == 7
    assert not (tmp_path / "log").exists()
