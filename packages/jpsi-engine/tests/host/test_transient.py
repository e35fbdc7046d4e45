"""The flag `transient` of submission errors: True if the same submission may succeed later."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pluggy
import pytest

from jpsi.contract.config import BatchConfig
from jpsi.contract.engine import EngineSetup, Submission
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks
from jpsi.contract.shell import ShellLine
from jpsi.layers import default_hooks
from jpsi.model.errors import SubmitException
from jpsi.model.spec import JobAttributes, JobSpec
from jpsi_engine.batch import BatchEngine
from jpsi_engine.monitor.poll_loop import PollLoop
from jpsi_engine.spool.spool import Spool
from jpsi_testing import FakeTransport, toy, toy_fake
from jpsi_testing.fake import FakeClock, FakeScheduler, Outcome

Prepare = Callable[[BatchEngine, FakeScheduler, pytest.MonkeyPatch], None]


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(), slots=1, outcome=Outcome(60)) as scheduler:
        yield scheduler


@pytest.fixture
def engine(tmp_path: Path, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch) -> BatchEngine:
    """Return an engine with a job `a0`, which has the native id 1."""
    monkeypatch.setattr(PollLoop, "start", lambda poll_loop: None)
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExecutorHooks)
    for it in (default_hooks, toy):
        manager.register(it)
    setup = EngineSetup(
        executor="toy",
        version="1",
        config=BatchConfig(work_directory=tmp_path / "work"),
        transport=FakeTransport(scheduler, toy_fake),
        publish=lambda job_id, status: None,
        process_engine=lambda setup: pytest.fail("a batch system needs no processes"),
    )
    engine = BatchEngine(setup, cast("ExecutorHooks", manager.hook))
    engine.submit(submission("a0"))
    return engine


def submission(job_id: str = "a1", attempt: int = 1, after: str | None = None) -> Submission:
    attributes = None if after is None else JobAttributes(after=[after])
    spec = JobSpec("/bin/true", directory="/", attributes=attributes)
    return Submission(job_id=job_id, attempt=attempt, spec=spec, launch=[ShellLine('exec "$@"')])


def failing(owner: type, name: str, number: int) -> Prepare:
    """Have a method fail with an error of the system."""

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    def prepare(_: BatchEngine, __: FakeScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(owner, name, fail)

    return prepare


def fault(name: str, *args: object, **kwargs: object) -> Prepare:
    """Have a fault strike the batch system."""
    return lambda _, scheduler, __: getattr(scheduler.faults, name)(*args, **kwargs)


def both(*steps: Prepare) -> Prepare:
    def prepare(engine: BatchEngine, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
        for step in steps:
            step(engine, scheduler, monkeypatch)

    return prepare


def refused(engine: BatchEngine, _: FakeScheduler, __: pytest.MonkeyPatch) -> None:
    """Make the root appear to belong to another user."""
    shutil.rmtree(engine._spool.root)
    Path(engine._spool.root).write_text("")


def no_command(_: BatchEngine, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = {name: it for name, it in toy_fake.commands.items() if name != "tsubmit"}
    monkeypatch.setattr(toy_fake, "commands", commands)


HANGS = fault("hang", "tsubmit")
CASES = [
    ("the disk is full", failing(Spool, "write_attempt", errno.ENOSPC), True),
    ("no file may be written", failing(Spool, "reserve", errno.EACCES), False),
    ("there is a file in place of the work directory", refused, False),
    ("what was written is not safe", failing(Spool, "sync", errno.EIO), True),
    ("another process was quicker", failing(Spool, "reserve", errno.EEXIST), False),
    ("the system is down", fault("down"), True),
    ("there is no submit command", no_command, False),
    ("no answer, and no job", HANGS, True),
    ("no answer, and the disk is full", both(HANGS, failing(Spool, "revoke", errno.ENOSPC)), True),
    ("no answer, and no claim may be made", both(HANGS, failing(Spool, "revoke", errno.EACCES)), False),
    ("no answer, and the folder was removed", both(HANGS, failing(Spool, "revoke", errno.ENOENT)), True),
]


@pytest.mark.clause("exception-transient")
@pytest.mark.parametrize(("prepare", "transient"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_error_of_a_submission_is_transient_if_a_retry_may_succeed(
    engine: BatchEngine,
    scheduler: FakeScheduler,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Prepare,
    transient: bool,
) -> None:
    prepare(engine, scheduler, monkeypatch)

    with pytest.raises(SubmitException) as caught:
        engine.submit(submission())

    assert caught.value.transient is transient


def test_an_error_about_an_unknown_dependency_is_transient(
    engine: BatchEngine, scheduler: FakeScheduler
) -> None:
    scheduler.vanish("1", kill=False)
    engine._reset_state()

    with pytest.raises(SubmitException, match="does not say at present whether 1 has ended") as caught:
        engine.submit(submission(after="1"))

    assert caught.value.transient


def test_attempt_that_runs_already_is_never_submitted_again(engine: BatchEngine) -> None:
    Path(engine._spool.folder("a0"), "claim.1").write_text("1\n")

    with pytest.raises(SubmitException, match="runs already") as caught:
        engine.submit(submission("a0", attempt=2))

    assert not caught.value.transient


@pytest.mark.parametrize("attempt", [1, 2])
def test_work_directory_that_was_removed_is_made_again(
    engine: BatchEngine, scheduler: FakeScheduler, attempt: int
) -> None:
    shutil.rmtree(engine._spool.root)

    assert engine.submit(submission(attempt=attempt)) == "2"
    assert engine._spool.job_ids() == ["a1"]


def test_job_whose_folder_was_removed_can_be_cancelled(engine: BatchEngine, scheduler: FakeScheduler) -> None:
    shutil.rmtree(engine._spool.root)

    engine.cancel("a0")

    assert scheduler.job("1").state.final


def test_current_directory_that_was_removed_is_named(
    engine: BatchEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()

    assert engine.problems(JobSpec("/bin/true")) == [
        "directory is not given, and the current directory was removed"
    ]
    assert engine.problems(JobSpec("/bin/true", directory="/")) == []
