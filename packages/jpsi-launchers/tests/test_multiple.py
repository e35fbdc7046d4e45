"""`multiple` runs every rank, passes signals on and answers with the code of the lowest that failed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from jpsi import HeterogeneousResources, JobSpec, ResourceSpecV1
from jpsi_launchers import multiple
from launchers_support import lines_of, script_of, spec_of

SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]
pytestmark = pytest.mark.parametrize("shell", SHELLS)


def script(tmp_path: Path, count: int) -> Path:
    return script_of(lines_of(spec_of("multiple", process_count=count)), tmp_path / "launch")


def ranks(tmp_path: Path, shell: str, count: int, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shell, script(tmp_path, count), "sh", "-c", command],
        check=False,
        input="put in\n",
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_each_rank_knows_which_it_is(tmp_path: Path, shell: str) -> None:
    done = ranks(tmp_path, shell, 5, 'echo "$JPSI_RANK of $JPSI_SIZE"')

    assert sorted(done.stdout.splitlines()) == [f"{rank} of 5" for rank in range(5)]
    assert not done.stderr


def test_ranks_are_numbered_through_all_components(tmp_path: Path, shell: str) -> None:
    parts = [ResourceSpecV1(), ResourceSpecV1(process_count=2)]
    spec = JobSpec("/bin/true", launcher="multiple", resources=HeterogeneousResources(parts))
    script = script_of(lines_of(spec), tmp_path / "launch")

    done = subprocess.run(
        [shell, script, "sh", "-c", 'echo "$JPSI_RANK of $JPSI_SIZE"'],
        check=True,
        capture_output=True,
        text=True,
    )

    assert sorted(done.stdout.splitlines()) == ["0 of 3", "1 of 3", "2 of 3"]


def test_standard_input_is_for_rank_0(tmp_path: Path, shell: str) -> None:
    """Rank 0 reads only after the others have tried to."""
    first = "[ $JPSI_RANK != 0 ] || until [ -e tried.1 ] && [ -e tried.2 ]; do :; done"
    done = ranks(
        tmp_path, shell, 3, f"cd '{tmp_path}'; {first}; echo \"$JPSI_RANK $(cat)\"; : >tried.$JPSI_RANK"
    )

    assert sorted(done.stdout.splitlines()) == ["0 put in", "1 ", "2 "]


@pytest.mark.parametrize(("codes", "code"), [("0 0 0", 0), ("0 7 3", 7), ("0 0 3", 3), ("1 2 3", 1)], ids=str)
def test_the_code_is_that_of_the_lowest_rank_that_failed(
    tmp_path: Path, shell: str, codes: str, code: int
) -> None:
    done = ranks(tmp_path, shell, 3, f"set -- {codes}; shift $JPSI_RANK; exit $1")

    assert done.returncode == code


def test_the_launcher_waits_for_all_ranks(tmp_path: Path, shell: str) -> None:
    """Rank 0 fails at once; rank 1 ends only after that failure, and the launcher waits for it."""
    command = (
        'mine=$JPSI_RANK; if [ "$mine" = 0 ]; then : >gone; exit 4; fi; '
        "until [ -e gone ]; do :; done; : >ended"
    )
    done = ranks(tmp_path, shell, 2, f"cd '{tmp_path}'; {command}")

    assert done.returncode == 4
    assert (tmp_path / "ended").exists()


def test_signals_have_their_default_meaning(tmp_path: Path, shell: str) -> None:
    done = ranks(tmp_path, shell, 2, "exec grep SigIgn /proc/self/status")

    ignored = [int(it.split()[1], 16) for it in done.stdout.splitlines()]
    assert len(ignored) == 2
    assert not any(mask & (1 << (number - 1)) for mask in ignored for number in range(1, 16))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGALRM], ids=lambda it: it.name)
def test_a_signal_reaches_every_rank(tmp_path: Path, shell: str, number: signal.Signals) -> None:
    """Only the shell of the lines gets it, as in a batch job; rank 1 has ended long before."""
    command = f"[ $JPSI_RANK != 1 ] || exit 0; : >'{tmp_path}'/up.$JPSI_RANK; exec sleep 1000"
    path = script(tmp_path, 4)
    # the lines as the shell itself, so that its pid is known
    path.write_text(path.read_text().replace("\n(\n", "\n{\n").replace("\n)\n", "\n}\n"))
    with subprocess.Popen([shell, path, "sh", "-c", command], start_new_session=True) as process:
        try:
            while not all((tmp_path / f"up.{rank}").exists() for rank in (0, 2, 3)):
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(number)
            assert process.wait(30) == 128 + number
            assert members(process.pid) == []
        finally:
            for pid in members(process.pid):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("moment", range(3))
def test_a_signal_while_ranks_are_started_misses_none(tmp_path: Path, shell: str, moment: int) -> None:
    """The signal arrives just before the start of rank 1, just after it, or once its pid is recorded."""
    path = script(tmp_path, 3)
    lines = path.read_text().replace("\n(\n", "\n{\n").replace("\n)\n", "\n}\n").splitlines()
    start = next(at for at, it in enumerate(lines) if it == "  (")
    at = [start, lines.index("  ) &", start) + 1, lines.index("  ) &", start) + 2][moment]
    lines.insert(at, '  [ "$_multiple_rank" -ne 1 ] || kill -s TERM $$')
    path.write_text("\n".join(lines) + "\n")

    with subprocess.Popen([shell, path, "sleep", "1000"], start_new_session=True) as process:
        try:
            assert process.wait(30) == 128 + signal.SIGTERM
            assert members(process.pid) == []
        finally:
            for pid in members(process.pid):
                os.kill(pid, signal.SIGKILL)


def members(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = stat.parent.name, stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(rest[3]) == session and rest[0] != "Z":
            found.append(int(pid))
    return found


def test_a_thousand_ranks(tmp_path: Path, shell: str) -> None:
    done = ranks(tmp_path, shell, 1000, "echo $JPSI_RANK")

    assert sorted(map(int, done.stdout.split())) == list(range(1000))


def test_several_nodes_are_refused(shell: str) -> None:
    resources = ResourceSpecV1(node_count=2, processes_per_node=2)

    (problem,) = multiple.check_spec(JobSpec("x", resources=resources))

    assert "2 nodes" in problem
