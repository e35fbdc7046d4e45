"""Why jobs wait, as `jpsi wait` and `logs -f` report it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import jpsi
from jpsi_cli import messages
from jpsi_cli.jobs.logs import logs
from jpsi_cli.output import WaitReasons
from jpsi_cli.stored_jobs import select_jobs, wait_for_ends, waiting
from jpsi_engine import job_store
from jpsi_testing.fake import FakeScheduler, on_path
from jpsi_testing.threads import in_this_thread
from stored_jobs import stored_job

if TYPE_CHECKING:
    from conftest import Started

# Runs `jpsi` with the arguments behind its own name, but looks all the time why jobs wait.
IMPATIENT = """
import os, sys
from jpsi_cli.main import main
from jpsi_cli.stored_jobs import waiting
waiting.CHECK_SECONDS = 0.01
check = waiting.WaitReasons.check
is_open = lambda: os.path.exists(os.environ["GATE"])
waiting.WaitReasons.check = lambda reasons, jobs: check(reasons, jobs) if is_open() else {}
sys.argv = sys.argv[3:]
main()
"""
CONFIG = "executors: {slurm: {config: {shortest_interval: 0.1, longest_interval: 0.3}}}"
NEVER = "it never starts like this: lower what it asks for; Ctrl-C ends the waiting"

Wait = Callable[[str], int]


def waits(message: str | None, state: jpsi.JobState = jpsi.JobState.QUEUED) -> jpsi.JobStatus:
    return jpsi.JobStatus(state, message=message)


def test_each_reason_is_returned_once_and_not_at_first() -> None:
    reasons = WaitReasons(checks_before=2)

    found = [reasons.check([("a", waits("Resources")), ("b", waits("Resources"))]) for _ in range(3)]

    assert found == [{}, {"Resources": ["a", "b"]}, {}]
    assert reasons.check([("a", waits("Priority"))]) == {"Priority": ["a"]}
    assert reasons.check([("a", waits("Resources"))]) == {}


def test_reasons_that_differ_in_numbers_are_one() -> None:
    reasons = WaitReasons(checks_before=1)

    assert reasons.check([("a", waits("3 free")), ("b", waits("4 free"))]) == {"N free": ["a", "b"]}
    assert reasons.check([("a", waits("5 free"))]) == {}


def test_the_numbers_of_one_reason_are_shown() -> None:
    reasons = WaitReasons(checks_before=1)

    assert reasons.check([("a", waits("3 free")), ("b", waits("3 free"))]) == {"3 free": ["a", "b"]}
    assert reasons.check([("a", waits("4 free")), ("b", waits("5 free"))]) == {}


def test_each_job_that_is_held_later_is_returned() -> None:
    reasons = WaitReasons(checks_before=1)
    held, free = waits("the job is held (JobHeldUser)"), waits(None)

    found = [
        reasons.check([("a", held), ("b", free)]),
        reasons.check([("a", held), ("b", held)]),
        reasons.check([("a", held), ("b", held)]),
    ]

    assert found == [{held.message: ["a"]}, {held.message: ["b"]}, {}]


# The sentences of all plugins about jobs that are held, and the jobs that a user can release.
HELD = {
    "the job is held": True,
    "the job is held (JobHeldUser)": True,
    "the job is held by an administrator (JobHeldAdmin)": True,
    "the job is held, since its reservation was deleted": True,
    "the job was requeued so often that it is held (JobHoldMaxRequeue)": True,
    "the job was requeued, and is held": True,
    "the job could not be started, was requeued, and is held": True,
    "the site requeued the job, and it is held": True,
    "the job is held, or waits for other jobs": False,
    "the job waits for a job that it depends on": False,
}


@pytest.mark.parametrize(("message", "is_released"), HELD.items(), ids=HELD)
def test_jobs_that_are_held_come_with_release_and_those_that_wait_for_others_not(
    message: str, is_released: bool
) -> None:
    assert ("jpsi release a1" in waiting._describe_wait(message, [stored_job("a1")], 1)) is is_released


def test_a_job_that_runs_or_has_no_reason_is_left_out() -> None:
    jobs = [("a", waits("the nodes boot", jpsi.JobState.ACTIVE)), ("b", waits(None))]

    assert WaitReasons(checks_before=1).check(jobs) == {}


@pytest.mark.parametrize(
    ("message", "count", "expected"),
    [
        ("the nodes are in use", 1, "1 of 9 jobs wait: the nodes are in use"),
        ("the job is held", 1, "1 of 9 jobs wait: the job is held; let it start: jpsi release a0"),
        ("it is held", 3, "3 of 9 jobs wait: it is held; let them start: jpsi release a0 a1 a2"),
        ("it is held", 4, "4 of 9 jobs wait: it is held; let them start: jpsi release a0 a1 a2 (and 1 more)"),
        ("it can never run", 1, f"1 of 9 jobs wait: it can never run; {NEVER}"),
    ],
)
def test_of_many_jobs_one_line_has_their_number(message: str, count: int, expected: str) -> None:
    jobs = [stored_job(f"a{number}") for number in range(count)]

    assert waiting._describe_wait(message, jobs, 9) == expected


@pytest.fixture
def fake() -> Iterator[FakeScheduler]:
    with FakeScheduler() as fake, on_path("slurm", fake):
        yield fake


@pytest.fixture
def slurm(
    fake: FakeScheduler,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[jpsi.JobExecutor]:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.setattr(waiting, "CHECK_SECONDS", 0.01)
    with jpsi.JobExecutor("slurm") as executor:
        yield executor


def wait(job_id: str) -> int:
    return wait_for_ends([job_id], select_jobs([job_id], job_store.jobs()), None, as_json=False)


def follow(job_id: str) -> int:
    return logs(jobs=[job_id], is_following=True, is_stderr=False, tail=None)


def submit_held(slurm: jpsi.JobExecutor) -> jpsi.Job:
    attributes = jpsi.JobAttributes(custom_attributes={slurm.system.capabilities.hold_option or "": True})
    job = jpsi.Job(jpsi.JobSpec("true", attributes=attributes))
    slurm.submit(job)
    return job


@pytest.mark.parametrize("command", [wait, follow])
def test_a_held_job_is_reported_with_the_command_that_releases_it(
    slurm: jpsi.JobExecutor, fake: FakeScheduler, command: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit_held(slurm)
    written: list[str] = []

    def release(text: str) -> None:
        written.append(text)
        fake.release(job.native_id or "")

    monkeypatch.setattr(messages, "write", release)

    assert command(job.id) == 0
    advice = f"let it start: jpsi release {job.id}"
    assert written == [f"jpsi: job {job.id} waits: the job is held (JobHeldUser); {advice}\n"]


def test_what_follows_the_jobs_is_only_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "CHECK_SECONDS", 0.01)
    written: SimpleQueue[str] = SimpleQueue()
    monkeypatch.setattr(messages, "write", written.put)
    job: Any = SimpleNamespace(status=waits("Priority"))
    recalled: Any = SimpleNamespace(jobs={"a1": job})

    with waiting.reasons_reported([stored_job("a1")], recalled):
        line = written.get(timeout=60)

    assert line == "jpsi: job a1 waits: Priority\n"


def test_a_thread_that_cannot_start_costs_the_reasons_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    monkeypatch.setattr(threading.Thread, "start", in_this_thread(refuse, threading.Thread.start))
    recalled: Any = SimpleNamespace(jobs={})

    with waiting.reasons_reported([], recalled):
        waited = True

    assert waited


def test_the_reason_is_readable_and_the_bar_drawn_again_below(
    slurm: jpsi.JobExecutor,
    fake: FakeScheduler,
    environment: dict[str, str],
    start_on_terminal: Callable[..., Started],
) -> None:
    """While a bar is on the terminal, rich has an object without an encoding in place of `sys.stderr`."""
    folder = Path(environment["XDG_CONFIG_HOME"], "jpsi")
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG)
    gate = folder / "gate"
    environment["GATE"] = str(gate)
    job = submit_held(slurm)

    started = start_on_terminal("wait", "--timeout", "60", job.id, prefix=(sys.executable, "-c", IMPATIENT))
    started.wait_for(b"0/1")
    gate.touch()
    started.wait_for(b" waits: ")
    above, _, started.output = started.output.partition(b" waits: ")
    started.wait_for(b"0/1")
    fake.release(job.native_id or "")
    code, output, _ = started.end()

    assert code == 0
    assert above.endswith(b"\r\x1b[2Kjpsi: job " + job.id.encode())
    line, below = output.split(b"\r\n", 1)
    assert line == b"the job is held (JobHeldUser); let it start: jpsi release " + job.id.encode()
    # each drawing replaces the one before, and the last one stays
    assert below.startswith(b"\r\x1b[2K")
    assert below.count(b"\n") == 1
    assert b"1/1" in below
