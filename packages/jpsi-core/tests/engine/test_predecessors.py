"""Jobs that others wait for: one that has said how it ended has ended, whatever the queue still says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pluggy
import pytest

from jpsi.contract.config import BatchConfig
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks, SubmitContext, hookimpl
from jpsi.contract.protocols import EngineSetup, Submission
from jpsi.contract.shell import ShellLine
from jpsi.engine import defaults
from jpsi.engine.batch import BatchEngine
from jpsi.fakes import FakeClock, FakeScheduler, Outcome
from jpsi.model.dependencies import Dependency
from jpsi.model.errors import InvalidJobException
from jpsi.model.spec import JobAttributes, JobSpec
from jpsi.testing import FakeTransport, toy, toy_dialect


class Overhearing:
    """A layer that notes which jobs a script was made to wait for."""

    after: tuple[Dependency, ...] = ()

    @hookimpl(wrapper=True)
    def render_script(self, context: SubmitContext) -> Iterator[None]:
        self.after = context.after
        return (yield)  # type: ignore[return-value]  # what pluggy makes of wrappers has no type


@pytest.fixture
def layer() -> Overhearing:
    return Overhearing()


@pytest.fixture
def engine(tmp_path: Path, layer: Overhearing) -> Iterator[BatchEngine]:
    """Over a batch system whose jobs run for a minute that never passes."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExecutorHooks)
    for it in (defaults, toy, layer):
        manager.register(it)
    with FakeScheduler(FakeClock(), slots=2, outcome=Outcome(60)) as scheduler:
        setup = EngineSetup(
            executor="toy",
            version="1",
            config=BatchConfig(work_directory=tmp_path),
            transport=FakeTransport(scheduler, toy_dialect),
            publish=lambda job_id, status: None,
            process_engine=lambda setup: pytest.fail("a batch system needs no processes"),
        )
        yield BatchEngine(setup, cast("ExecutorHooks", manager.hook))


def submit(engine: BatchEngine, job_id: str, **attributes: Any) -> str:
    spec = JobSpec("/bin/true", directory="/", attributes=JobAttributes(**attributes))
    return engine.submit(Submission(job_id=job_id, attempt=1, spec=spec, launch=[ShellLine('exec "$@"')]))


def end(engine: BatchEngine, job_id: str, code: int) -> None:
    """Let a job report its end, and the engine be done with it."""
    Path(engine._spool.events, f"{job_id}.1.active").touch()
    Path(engine._spool.events, f"{job_id}.1.exit.run.{code}").touch()
    tracking, _ = engine._open()
    job = tracking.get(job_id)
    assert job is not None
    tracking.follow(job, 0.0)
    tracking.see_markers(0.0)
    assert tracking.get(job_id) is None


def test_a_job_that_has_ended_well_is_not_waited_for(engine: BatchEngine, layer: Overhearing) -> None:
    native_id = submit(engine, "a1")
    end(engine, "a1", 0)

    submit(engine, "a2", after=[native_id])

    assert layer.after == ()


def test_a_job_that_has_failed_cannot_be_waited_for(engine: BatchEngine) -> None:
    native_id = submit(engine, "a1")
    end(engine, "a1", 3)

    with pytest.raises(InvalidJobException, match="FAILED"):
        submit(engine, "a2", after=[native_id])


def test_a_job_that_runs_is_waited_for(engine: BatchEngine, layer: Overhearing) -> None:
    native_id = submit(engine, "a1")

    submit(engine, "a2", after=[native_id])

    assert layer.after == (Dependency(native_id),)


def test_a_job_that_another_process_follows_is_waited_for(engine: BatchEngine, layer: Overhearing) -> None:
    native_id = submit(engine, "a1")
    engine._renew()

    submit(engine, "a2", after=[native_id])

    assert layer.after == (Dependency(native_id),)
