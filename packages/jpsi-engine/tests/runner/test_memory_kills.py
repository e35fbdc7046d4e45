"""A job of which the kernel kills a process for its memory, as the job's own control group says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jpsi.contract.shell import ShellLine
from jpsi_engine.runner.claim_and_markers import BatchFrame
from runners import RunnerBench, script, shell_job, with_control_groups

ID = "17.server"
OWN, OTHER = f"/pbs_jobs.service/jobid/{ID}", "/system.slice/pbs.service"
KILL = "kill -9 $$"
V1, V2 = f"5:cpu:/\n4:memory:{OWN}\n0::/\n", f"0::{OWN}\n"
V1_FILE, V2_FILE = f"memory{OWN}/memory.oom_control", f"{OWN}/memory.events"
KILLED = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"

#: The native id, the control groups, a file of them and its text, what the job does, and its exit marker.
CASES = {
    "version 1": (ID, V1, V1_FILE, KILLED, KILL, "run-oom.137"),
    "version 2": (ID, V2, V2_FILE, "low 0\noom 1\noom_kill 12\n", KILL, "run-oom.137"),
    "a group within": (ID, f"0::{OWN}/x\n", f"{OWN}/x/memory.events", KILLED, KILL, "run-oom.137"),
    "the limit was reached": (ID, V2, V2_FILE, "max 94\noom 0\noom_kill 0\n", KILL, "run.137"),
    "the job ended otherwise": (ID, V1, V1_FILE, KILLED, "exit 9", "run.9"),
    "the group of all jobs": (ID, f"0::{OTHER}\n", f"{OTHER}/memory.events", KILLED, KILL, "run.137"),
    "another job's group": ("7.server", V1, V1_FILE, KILLED, KILL, "run.137"),
    "a container's number": ("101", "0::/lxc/101/x\n", "lxc/101/x/memory.events", KILLED, KILL, "run.137"),
    "no file": (ID, V1, "other", KILLED, KILL, "run.137"),
    "no groups": (ID, "", "other", "", KILL, "run.137"),
}


@pytest.mark.parametrize(
    ("native_id", "groups", "file", "text", "command", "marker"), CASES.values(), ids=CASES
)
def test_only_a_kill_in_the_group_of_the_job_counts(
    batch: RunnerBench, native_id: str, groups: str, file: str, text: str, command: str, marker: str
) -> None:
    written = batch.write(shell_job(command))
    with_control_groups(written, batch.root, groups, {file: text})

    assert batch.start(written, {"JOB_ID": native_id}).markers == [f"exit.{marker}"]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize(
    "fields", [{}, {"rank_variables": ["RANK"], "launch": [ShellLine('"$@"')]}], ids=["single", "processes"]
)
def test_a_kill_is_found_however_the_job_is_launched(
    batch: RunnerBench, scripts: bool, fields: dict[str, Any]
) -> None:
    """The runner waits for another shell if scripts run, and measures no processes of a launcher."""
    paths = {name: script(batch.root / f"{name}.sh", "true\n") for name in ("pre_launch", "post_launch")}
    written = batch.write(shell_job(KILL, **(paths if scripts else {})), **fields)
    with_control_groups(written, batch.root, V2, {V2_FILE: KILLED})

    assert batch.start(written, {"JOB_ID": ID}).markers == ["exit.run-oom.137"]


def test_a_process_of_this_machine_has_no_group_of_its_own(tmp_path: Path) -> None:
    here, there = RunnerBench(tmp_path / "here"), RunnerBench(tmp_path / "there", frame=BatchFrame("JOB_ID"))

    texts = [it.write(shell_job("true")).read_text() for it in (here, there)]

    assert ["cgroup" in it for it in texts] == [False, True]
