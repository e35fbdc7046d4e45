"""The base of `ExecutorConformance`: fixtures that a backend's tests may override, and helpers for jobs."""

from __future__ import annotations

import logging
import os
import re
import select
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState, JobStatus
from jpsi.plugin import BatchConfig, ExecutorConfig, ResourceSpec, components
from jpsi_testing.fake import FakeScheduler, FakeSystem, on_path

# Settings that make a real batch system, and the jobs on it, quick enough for tests.
_SHORT_INTERVALS = {
    "kill_delay": timedelta(seconds=0.5),
    "command_timeout": timedelta(seconds=20),
    "shortest_interval": timedelta(seconds=0.1),
    "longest_interval": timedelta(seconds=0.3),
    "grace": timedelta(seconds=1),
}

# The command timeout in tests where a command hangs; others answer within it even on a busy machine.
_SHORT_TIMEOUT = timedelta(seconds=4)

# The number of warnings that a failure quotes, the last ones.
_WARNINGS = 5


class ExecutorTestBase:
    """The class attributes that describe an executor, and the fixtures and methods that tests use."""

    #: The name of the executor.
    executor_name: ClassVar[str]
    #: The url of its batch system; None is this machine.
    url: ClassVar[str | None] = None
    #: True if the url leads to a remote host, which has files of its own.
    is_remote: ClassVar[bool] = False
    #: The fake of its batch system, or that fake's name; None tests against the commands on PATH.
    fake_system: ClassVar[str | FakeSystem | None] = None
    #: The command of the fake that submits a job.
    submit_command: ClassVar[str] = ""
    #: The configuration class of the executor.
    config_class: ClassVar[type[ExecutorConfig]] = BatchConfig
    #: Its configuration besides short intervals, such as values that a site must set.
    settings: ClassVar[Mapping[str, Any]] = {}
    #: The module or object that implements the hooks; None is the plugin that the entry point names.
    plugin: Any = None
    #: A native id that no job has.
    unknown_id: ClassVar[str] = "999999"
    #: Attributes that have no effect here, as the executor's documentation says: `name`, `resources.memory`.
    ignored_attributes: ClassVar[Collection[str]] = ()
    #: True if the batch system says so if it knows no such job, or shows within seconds all that it has.
    names_unknown_jobs: ClassVar[bool] = True
    #: The longest time that a job may take, in seconds, on a busy machine too.
    timeout_seconds: ClassVar[float] = 60.0
    _caplog: pytest.LogCaptureFixture | None = None

    @pytest.fixture(autouse=True)
    def _capture_log(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    @pytest.fixture
    def work_directory(self, tmp_path: Path) -> Path:
        """Return the executor's work directory; a real cluster needs a directory that its nodes see."""
        return tmp_path / "work"

    @pytest.fixture
    def config(self, work_directory: Path) -> ExecutorConfig:
        """Return the configuration of the executor: short intervals, and its settings."""
        known = {field.name for field in attrs.fields(self.config_class)}
        quick: dict[str, Any] = {name: value for name, value in _SHORT_INTERVALS.items() if name in known}
        return self.config_class(work_directory=work_directory, **(quick | dict(self.settings)))

    @pytest.fixture
    def scheduler(self) -> Iterator[FakeScheduler | None]:
        """Yield the fake batch system, with its commands on PATH; None if the batch system is a real one."""
        if self.fake_system is None:
            yield None
            return
        with FakeScheduler(slots=8, kill_delay=0.5) as scheduler, on_path(self.fake_system, scheduler):
            yield scheduler

    @pytest.fixture
    def fake(self, scheduler: FakeScheduler | None) -> FakeScheduler:
        """Return the fake batch system; skip a test that injects faults if the batch system is a real one."""
        if scheduler is None:
            pytest.skip("faults are injected into fake batch systems only")
        return scheduler

    @pytest.fixture
    def node_cores(self) -> Sequence[int] | None:
        """Return the cores of each node of a real batch system, or None if jobs of any size can start.

        Tests whose jobs do not fit are skipped; override it, as such jobs would wait for ever.
        """
        return None

    @pytest.fixture
    def executor(self, scheduler: FakeScheduler | None, config: ExecutorConfig) -> Iterator[JobExecutor]:
        """Yield the executor under test."""
        with self.new_executor(config) as executor:
            yield executor

    @pytest.fixture
    def short_timeout_config(self, fake: FakeScheduler, config: ExecutorConfig) -> ExecutorConfig:
        """Return the configuration of an executor whose commands hang: its command timeout is short."""
        return attrs.evolve(config, command_timeout=_SHORT_TIMEOUT)  # type: ignore[call-arg]  # of a batch system

    @pytest.fixture
    def short_timeout_executor(self, short_timeout_config: ExecutorConfig) -> Iterator[JobExecutor]:
        """Yield the executor under test, with a short command timeout."""
        with self.new_executor(short_timeout_config) as executor:
            yield executor

    def new_executor(self, config: ExecutorConfig) -> JobExecutor:
        """Return another instance of the executor, as a new process would create it."""
        return JobExecutor.get_instance(self.executor_name, url=self.url, config=config)

    def native_name(self, name: str) -> str:
        """Return the batch system's name for a job with this name; override it if the two differ."""
        return name

    def submit(self, executor: JobExecutor, spec: JobSpec) -> Job:
        """Submit a job."""
        job = Job(spec)
        executor.submit(job)
        return job

    def start(self, executor: JobExecutor, spec: JobSpec) -> Job:
        """Submit a job and wait until it runs."""
        job = self.submit(executor, spec)
        self.active(job)
        return job

    def run(self, executor: JobExecutor, spec: JobSpec) -> JobStatus:
        """Submit a job and wait for its end."""
        return self.end(self.submit(executor, spec))

    def end(self, job: Job) -> JobStatus:
        """Wait for the end of a job, and return its final status."""
        status = job.wait(self.timeout_seconds)
        assert status is not None, self._describe_timeout(job, "has not ended")
        return status

    def active(self, job: Job) -> None:
        """Wait until a job runs."""
        assert job.wait(self.timeout_seconds, target_states=JobState.ACTIVE), self._describe_timeout(
            job, "does not run"
        )

    def _describe_timeout(self, job: Job, what: str) -> str:
        """Return what is wrong with a job, and the last warnings, which mostly say why."""
        messages = [] if self._caplog is None else warnings(self._caplog.records)
        logged = (
            "\n".join(["jpsi has warned:", *messages[-_WARNINGS:]])
            if messages
            else "jpsi has logged no warnings"
        )
        return f"{job!r} {what} in {self.timeout_seconds:g} s; {logged}"


def require_room(resources: ResourceSpec | None, node_cores: Sequence[int] | None) -> None:
    """Skip a test if the nodes with so many cores each are too few or too small for its job."""
    needed: list[int] = []
    for it in components(resources):
        nodes, cores = it.computed_node_count, it.cpu_cores_per_process or 1
        needed += [-(-it.computed_process_count // nodes) * cores] * nodes
    needed.sort(reverse=True)
    found = sorted(node_cores or (), reverse=True)
    if node_cores is not None and (
        len(found) < len(needed) or any(a < b for a, b in zip(found, needed, strict=False))
    ):
        pytest.skip(
            f"its job needs nodes with {', '.join(map(str, needed))} cores; the batch system has nodes with "
            f"{', '.join(map(str, found)) or 'none'}"
        )


# The loggers of jpsi and of its distributions, such as jpsi_engine.
_LIBRARY = re.compile(r"jpsi(_\w+)?(\.|$)")


def warnings(records: Iterable[logging.LogRecord]) -> list[str]:
    """Return jpsi's warnings, each with its exception; of equal warnings only the last one."""
    messages = [_warning(it) for it in records if it.levelno >= logging.WARNING and _LIBRARY.match(it.name)]
    # of equal warnings the last one counts
    return list(reversed(dict.fromkeys(reversed(messages))))


def _warning(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    error_text = "" if error is None else ": " + "".join(traceback.format_exception_only(error)).strip()
    return f"{record.name}: {record.getMessage()}{error_text}"


def shell(text: str, *arguments: object, **fields: Any) -> JobSpec:  # noqa: ANN401  the fields of a spec
    """Return the spec of a job that runs this shell text, with these arguments as `$1` and so on."""
    words = [jpsi.escape(str(argument)) for argument in arguments]
    return JobSpec("/bin/sh", ["-c", jpsi.escape(text), "sh", *words], **fields)


class Gate:
    """A file that a job waits for, so that a test decides when the job ends."""

    def __init__(self, path: Path) -> None:
        #: The path of the file.
        self.path = path

    #: Shell that waits for the file `$1`.
    WAIT = 'while [ ! -e "$1" ]; do sleep 0.05; done'

    def job(self, code: int = 0) -> JobSpec:
        """Return the spec of a job that ends with this exit code once the gate is open."""
        return shell(f"{self.WAIT}; exit {code}", self.path)

    def open(self) -> None:
        """Create the file, so that the job goes on."""
        self.path.touch()


class Proof:
    """A file into which a job writes a line each time that it runs."""

    def __init__(self, path: Path) -> None:
        #: The path of the file.
        self.path = path

    #: Shell that writes the line.
    WRITE = 'echo ran >> "$1"'

    @property
    def runs(self) -> int:
        """The number of times that the job ran."""
        return len(self.path.read_text().splitlines()) if self.path.exists() else 0

    def job(self, code: int = 0) -> JobSpec:
        """Return the spec of a job that writes its line, and ends with this exit code."""
        return shell(f"{self.WRITE}; exit {code}", self.path)


class Sign:
    """A FIFO by which a job reports its progress: it writes a line into `path`."""

    def __init__(self, path: Path) -> None:
        #: The path of the FIFO.
        self.path = path
        os.mkfifo(path, 0o600)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait(self, timeout: float) -> bool:
        """Wait for the line; return False if it does not come in so many seconds."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        try:
            return bool(poll.poll(timeout * 1000))
        finally:
            os.close(self._reader)
