"""The commands about jobs with damaged files: no traceback, no job runs again, other jobs are unaffected."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi_cli.doctor.damage_advice import advise_on_damage
from jpsi_engine.job_store import DamagedJob, ShownJob

Run = Callable[..., subprocess.CompletedProcess[bytes]]

GARBAGE = b"\x00\xff\x9d garbage \x1b[31m"
STRANGE = b'{"id": 5, "spec": {"executable": 7, "name": 9}, "time": 7, "directory": 3, "state": []}'
FINAL = {
    "state": "CANCELED",
    "time": "2026-01-01T00:00:00+00:00",
    "exit_code": 143,
    "message": "the job was cancelled",
    "reason": None,
    "evidence": None,
    "metadata": {},
}
FILES = ("intent.1.json", "claim.1", "stop.1.json", "final.1.json", "run.1")
DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:9]),
    "garbled": lambda path: path.write_bytes(GARBAGE),
    "strange": lambda path: path.write_bytes(STRANGE),
    "directory": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.fixture
def ids(run: Run, environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Return the ids of jobs that ended with exit code 3, by the damage to each; `sound` has none."""
    done = run("run", "--", "sh", "-c", f"echo ran >>{tmp_path}/proof; exit 3")
    assert done.returncode == 3, done.stderr
    jobs = Path(environment["XDG_STATE_HOME"], "jpsi", "work", "local", platform.node(), "jobs")
    (first,) = jobs.iterdir()
    (end,) = first.glob("*.exit.run*.3")
    text = (first / "intent.1.json").read_text()
    found = {"sound": "sound"}
    for name in FILES:
        for how, damage in DAMAGES.items():
            job_id = f"{name.partition('.')[0]}-{how}"
            folder = jobs / job_id
            shutil.copytree(first, folder)
            (folder / "intent.1.json").write_text(text.replace(first.name, job_id))
            (folder / "stdout").write_text(f"output of {job_id}\n")
            (folder / end.name).rename(folder / f"{job_id}.1.exit.run.3")
            if name.startswith(("stop", "final")):
                (folder / name).write_text(json.dumps(FINAL))
            damage(folder / name)
            found[job_id] = how
    first.rename(jobs / "sound")
    (jobs / "sound" / end.name).rename(jobs / "sound" / "sound.1.exit.run.3")
    (jobs / "sound" / "intent.1.json").write_text(text.replace(first.name, "sound"))
    return found


def test_damaged_jobs_are_reported_and_never_run_again(run: Run, ids: dict[str, str], tmp_path: Path) -> None:
    listed = json.loads(run("ls", "--all", "--json").stdout)
    commands = {
        "ls": run("ls", "--all", "--executor", "local"),
        "show": run("show", *ids),
        "show json": run("show", "--json", *ids),
        "wait": run("wait", *ids),
        "cancel": run("cancel", *ids),
        "hold": run("hold", *ids),
        "ls refreshed": run("ls", "--all", "--refresh"),
        "doctor": run("doctor", "--no-job", "-x", "local"),
        **{f"explain {it}": run("explain", it) for it in ids if it.startswith("intent")},
        **{f"logs {it}": run("logs", it) for it in ids if it.startswith("intent")},
    }
    assert {it["id"] for it in listed} == set(ids)
    assert [name for name, it in commands.items() if b"Traceback" in it.stderr + it.stdout] == []
    # the outcome of each is known all the same
    codes = {it["id"]: it["exit_code"] for it in listed}
    assert [it for it, code in codes.items() if code != 3 and not it.startswith("stop")] == []
    damaged = {it["id"] for it in listed if it["damage"]}
    assert "sound" not in damaged
    assert {it for it in ids if it.startswith("intent")} <= damaged
    text = commands["doctor"].stdout.decode()
    assert [it for it in sorted(damaged) if f"job {it} in " not in text] == []
    assert "sound" not in text
    assert commands["logs intent-garbled"].stdout == b"output of intent-garbled\n"
    assert b"damaged" in commands["ls"].stdout
    assert b"damaged: intent.1.json is empty" in commands["show"].stdout
    assert (tmp_path / "proof").read_text() == "ran\n"


SHOWN = ShownJob(native_id="17", native_state="RUNNING", cancel_command="scancel 17")
SILENT = jpsi.SubmitException("squeue did not answer")


@pytest.mark.parametrize(
    ("state", "native_id", "executable", "shown", "words"),
    [
        ("COMPLETED", "17", None, None, "it has completed with exit code 0"),
        ("ACTIVE", "17", None, None, "slurm (native id 17, tag jpsi-a1-1) does not show it; jpsi will not"),
        (
            "ACTIVE",
            None,
            None,
            None,
            "slurm (tag jpsi-a1-1) does not show it; jpsi will not submit it again",
        ),
        ("ACTIVE", None, None, None, "submit it again only if it has not"),
        ("ACTIVE", None, None, SHOWN, "slurm (native id 17, tag jpsi-a1-1) shows it as RUNNING. jpsi cannot"),
        ("ACTIVE", "17", None, SHOWN, "or wait until it has ended, or end it: scancel 17, save its output"),
        (
            "ACTIVE",
            "17",
            None,
            attrs.evolve(SHOWN, cancel_command=None),
            "or end 17 with the batch system's own command",
        ),
        ("ACTIVE", "17", None, SILENT, "shows it: squeue did not answer; jpsi will not"),
        (
            "ACTIVE",
            "17",
            "/bin/true",
            SHOWN,
            "shows it as RUNNING; the rest of it is sound, and `jpsi wait a1`",
        ),
    ],
)
def test_advice_follows_from_the_known_facts(
    state: str,
    native_id: str | None,
    executable: str | None,
    shown: ShownJob | jpsi.JpsiError | None,
    words: str,
) -> None:
    class Job:
        id = "a1"
        tag = "jpsi-a1-1"
        status = jpsi.JobStatus(
            jpsi.JobState(state), time=datetime.now(UTC), exit_code=0 if state == "COMPLETED" else None
        )
        spec = jpsi.JobSpec(executable)

        class origin:  # noqa: N801  as it is called there
            name = "slurm"

    Job.native_id = native_id  # type: ignore[attr-defined]
    found = DamagedJob("job a1", Path("/spool/a1"), "intent.1.json is empty", Job())  # type: ignore[arg-type]

    sentence = advise_on_damage(found, shown)

    assert sentence.startswith("job a1 in /spool/a1: intent.1.json is empty; ")
    assert words in sentence


def test_advice_about_an_array(tmp_path: Path) -> None:
    sentence = advise_on_damage(DamagedJob("array x", tmp_path, "intent.json is empty"))

    assert f"array x in {tmp_path}: intent.json is empty; " in sentence
    assert os.fspath(tmp_path) in sentence


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stop.1.json", "local (native id {native_id}) shows it as running; the rest of it is sound"),
        ("intent.1.json", "its process is not known; `pgrep -f {folder}` finds it if it runs"),
    ],
)
def test_advice_on_a_damaged_process_says_whether_it_runs(
    run: Run, environment: dict[str, str], tmp_path: Path, name: str, words: str
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    done = run("submit", "--", "sh", "-c", f"read x <'{fifo}'")
    job_id = done.stdout.decode().strip()
    fd = os.open(fifo, os.O_WRONLY)  # the job has begun
    folder = Path(environment["XDG_STATE_HOME"], "jpsi", "work", "local", platform.node(), "jobs", job_id)
    native_id = (folder / "intent.1.json").read_text().partition("\n")[2]
    (folder / name).write_bytes(GARBAGE)

    examined = run("doctor", "--no-job", "-x", "local").stdout.decode()
    os.close(fd)

    assert words.format(native_id=native_id, folder=folder) in examined
