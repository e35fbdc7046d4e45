"""What the parts of `ExecutorConformance` share: the fixtures that a subclass overrides, and a few words."""

from __future__ import annotations

import logging
import os
import re
import select
import traceback
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState, JobStatus
from jpsi.plugin import BatchConfig, ExecutorConfig
from jpsi_testing.fake import Dialect, FakeScheduler, on_path

# What makes a real batch system, and the jobs on it, quick enough for tests.
_QUICK = {
    "kill_delay": timedelta(seconds=0.5),
    "command_timeout": timedelta(seconds=20),
    "shortest_interval": timedelta(seconds=0.1),
    "longest_interval": timedelta(seconds=0.3),
    "grace": timedelta(seconds=1),
}

# When a command is taken for hung where one hangs; others have answered by then, on a busy machine too.
_HASTE = timedelta(seconds=4)

# How many of the last warnings a failure tells.
_WARNINGS = 5


class Kit:
    """What a subclass says about its executor, and how the tests use it."""

    #: The name that the executor is asked for by.
    executor_name: ClassVar[str]
    #: Where its batch system is; None is here.
    url: ClassVar[str | None] = None
    #: Whether the url leads to where files are elsewhere.
    is_elsewhere: ClassVar[bool] = False
    #: The dialect of its fake batch system, or the name of it; None runs against what is on PATH.
    dialect: ClassVar[str | Dialect | None] = None
    #: The command of the dialect that submits a job.
    submit_command: ClassVar[str] = ""
    #: The configuration class of the executor.
    config_class: ClassVar[type[ExecutorConfig]] = BatchConfig
    #: What it is configured by besides short intervals, such as what a site must say.
    settings: ClassVar[Mapping[str, Any]] = {}
    #: The module or object that implements the hooks; None is what the entry point of the name leads to.
    plugin: Any = None
    #: A native id that no job has.
    unknown_id: ClassVar[str] = "999999"
    #: How long a job may take, in seconds, however busy the machine is.
    patience: ClassVar[float] = 60.0
    _caplog: pytest.LogCaptureFixture | None = None

    @pytest.fixture(autouse=True)
    def _overheard(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    @pytest.fixture
    def work_directory(self, tmp_path: Path) -> Path:
        """Where the executor keeps its files; a real cluster wants a directory that its nodes see."""
        return tmp_path / "work"

    @pytest.fixture
    def config(self, work_directory: Path) -> ExecutorConfig:
        """The configuration of the executor: short intervals, and its settings."""
        known = {field.name for field in attrs.fields(self.config_class)}
        quick: dict[str, Any] = {name: value for name, value in _QUICK.items() if name in known}
        return self.config_class(work_directory=work_directory, **(quick | dict(self.settings)))

    @pytest.fixture
    def scheduler(self) -> Iterator[FakeScheduler | None]:
        """The fake batch system, with its commands on PATH; None if a real one is there."""
        if self.dialect is None:
            yield None
            return
        with FakeScheduler(slots=8, kill_delay=0.5) as scheduler, on_path(self.dialect, scheduler):
            yield scheduler

    @pytest.fixture
    def fake(self, scheduler: FakeScheduler | None) -> FakeScheduler:
        """The fake batch system; a test that injects faults into a real one is skipped."""
        if scheduler is None:
            pytest.skip("faults are injected into fake batch systems only")
        return scheduler

    @pytest.fixture
    def executor(self, scheduler: FakeScheduler | None, config: ExecutorConfig) -> Iterator[JobExecutor]:
        """The executor under test."""
        with self.new_executor(config) as executor:
            yield executor

    @pytest.fixture
    def hasty_config(self, fake: FakeScheduler, config: ExecutorConfig) -> ExecutorConfig:
        """The configuration of an executor that meets commands which hang."""
        return attrs.evolve(config, command_timeout=_HASTE)  # type: ignore[call-arg]  # of a batch system

    @pytest.fixture
    def hasty(self, hasty_config: ExecutorConfig) -> Iterator[JobExecutor]:
        """The executor under test, which does not wait long for a command that hangs."""
        with self.new_executor(hasty_config) as executor:
            yield executor

    def new_executor(self, config: ExecutorConfig) -> JobExecutor:
        """Another instance, as a fresh process has it."""
        return JobExecutor.get_instance(self.executor_name, url=self.url, config=config)

    def run(self, executor: JobExecutor, spec: JobSpec) -> JobStatus:
        """Submit a job and wait for its end."""
        job = Job(spec)
        executor.submit(job)
        return self.end(job)

    def end(self, job: Job) -> JobStatus:
        """The final status of a job."""
        status = job.wait(self.patience)
        assert status is not None, self._late(job, "has not ended")
        return status

    def active(self, job: Job) -> None:
        """Wait until a job runs."""
        assert job.wait(self.patience, target_states=JobState.ACTIVE), self._late(job, "does not run")

    def _late(self, job: Job, what: str) -> str:
        """What is wrong with a job, and the last warnings: one of them mostly says why."""
        told = [] if self._caplog is None else warnings(self._caplog.records)
        heard = "\n".join(["jpsi has warned:", *told[-_WARNINGS:]]) if told else "jpsi has warned of nothing"
        return f"{job!r} {what} in {self.patience:g} s; {heard}"


# The loggers of jpsi and of its distributions, such as jpsi_engine.
_LIBRARY = re.compile(r"jpsi(_\w+)?(\.|$)")


def warnings(records: Iterable[logging.LogRecord]) -> list[str]:
    """What jpsi has warned of, each with the exception that it was about; none twice."""
    told = [_warning(it) for it in records if it.levelno >= logging.WARNING and _LIBRARY.match(it.name)]
    # the last of those that are alike counts
    return list(reversed(dict.fromkeys(reversed(told))))


def _warning(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    about = "" if error is None else ": " + "".join(traceback.format_exception_only(error)).strip()
    return f"{record.name}: {record.getMessage()}{about}"


def shell(text: str, *arguments: object, **fields: Any) -> JobSpec:  # noqa: ANN401  the fields of a spec
    """A job that is a piece of shell, with these as `$1` and so on."""
    words = [jpsi.escape(str(argument)) for argument in arguments]
    return JobSpec("/bin/sh", ["-c", jpsi.escape(text), "sh", *words], **fields)


class Gate:
    """A file that a job waits for, so that a test decides when it ends."""

    def __init__(self, path: Path) -> None:
        #: Where it is.
        self.path = path

    #: Shell that waits for the file `$1`.
    WAIT = 'while [ ! -e "$1" ]; do sleep 0.05; done'

    def job(self, code: int = 0) -> JobSpec:
        """A job that ends with this code once the gate is open."""
        return shell(f"{self.WAIT}; exit {code}", self.path)

    def open(self) -> None:
        """Let the job go on."""
        self.path.touch()


class Proof:
    """A file into which a job writes a line each time that it runs."""

    def __init__(self, path: Path) -> None:
        #: Where it is.
        self.path = path

    #: Shell that writes the line.
    WRITE = 'echo ran >> "$1"'

    @property
    def runs(self) -> int:
        """How often it ran."""
        return len(self.path.read_text().splitlines()) if self.path.exists() else 0

    def job(self, code: int = 0) -> JobSpec:
        """A job that proves that it ran, and ends with this code."""
        return shell(f"{self.WRITE}; exit {code}", self.path)


class Sign:
    """A FIFO by which a job tells how far it has come: it writes a line into `path`."""

    def __init__(self, path: Path) -> None:
        #: Where it is.
        self.path = path
        os.mkfifo(path, 0o600)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait(self, timeout: float) -> bool:
        """Wait for the line; False if it does not come in so many seconds."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        try:
            return bool(poll.poll(timeout * 1000))
        finally:
            os.close(self._reader)
