"""A job whose process was started is bound to it, whatever happens to the caller meanwhile."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobSpec
from jpsi_engine.local import local_engine, spawn
from jpsi_engine.local.slots import SlotsTaken
from jpsi_engine.local.supervision import Supervisor
from manual_executor import PATIENCE


@pytest.fixture
def limited(config: jpsi.ExecutorConfig) -> Iterator[JobExecutor]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with JobExecutor.get_instance("local", config=attrs.evolve(config, max_active=1)) as executor:
        yield executor
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (local_engine, "spawn"),
        (local_engine, "spawn_watchdog"),
        (SlotsTaken, "transfer_to"),
        (Supervisor, "add"),
    ],
)
@pytest.mark.parametrize("is_bulk", [False, True], ids=["one", "many"])
def test_an_interrupt_after_the_process_was_started_is_raised_once_the_job_is_bound(
    limited: JobExecutor,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    owner: Any,
    name: str,
    is_bulk: bool,
) -> None:
    runs, call = tmp_path / "runs", getattr(owner, name)

    def interrupted(*arguments: object, **named: object) -> object:
        result = call(*arguments, **named)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return result

    monkeypatch.setattr(owner, name, interrupted)
    attributes = JobAttributes(duration=timedelta(hours=1))
    job = Job(JobSpec("/bin/sh", ["-c", 'echo >>"$0"', str(runs)], attributes=attributes))

    with pytest.raises(KeyboardInterrupt):
        limited.submit_many([job]) if is_bulk else limited.submit(job)

    assert job.native_id is not None
    with pytest.raises(jpsi.InvalidJobException, match="was submitted already"):
        limited.submit(job)
    assert job.wait(PATIENCE) is not None
    assert runs.read_text() == "\n"


def test_the_program_that_keeps_a_limit_starts_without_the_profile_of_the_user(
    config: jpsi.ExecutorConfig, monkeypatch: pytest.MonkeyPatch, fifo: Callable[[str], Path]
) -> None:
    held_by = fifo("held")
    commands, start = list[list[str]](), spawn.spawn

    def recorded(command: list[str], *others: Any) -> int:
        commands.append(command)
        return start(command, *others)

    monkeypatch.setattr(spawn, "spawn", recorded)
    attributes = JobAttributes(duration=timedelta(hours=1))
    job = Job(JobSpec("/bin/cat", [str(held_by)], attributes=attributes))
    with JobExecutor.get_instance("local", config=attrs.evolve(config, shell="/bin/sh -x")) as executor:
        executor.submit(job)
        held_by.write_text("")
        assert job.wait(PATIENCE) is not None

    assert [command[:2] for command in commands] == [["/bin/sh", "-c"]]
