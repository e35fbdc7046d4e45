"""Runs the probe jobs of `jpsi doctor`: submits them, waits for all, and cancels those that do not end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta

import jpsi

from ..messages import PROBE_MARK
from .facts import NAMED, PLAIN, SIZED, ProbeResult

_NAME = "jpsi doctor"
# The walltime of a probe job.
_WALLTIME = timedelta(minutes=5)
# The bytes that the probe job with memory requests.
_MEMORY = 64 << 20
# The letters that make a name long: longer than the shortest limits of batch systems, and not so long that
# lists of jobs become unreadable.
_LONG_NAME_LETTERS = 40


def run_probe_jobs(executor: jpsi.JobExecutor, timeout: float) -> tuple[dict[str, ProbeResult], str | None]:
    """Return the outcome of each probe job, within `timeout` seconds, and the native id of the plain one."""
    started = time.monotonic()
    with _submit_probes(executor) as (jobs, refusals):
        probes: dict[str, ProbeResult] = {name: ProbeResult(refusal=why) for name, why in refusals.items()}
        for name, job in jobs.items():
            job.wait(max(0.0, started + timeout - time.monotonic()))
            probes[name] = _probe_result(executor, job, time.monotonic() - started)
        native_id = jobs[PLAIN].native_id if PLAIN in jobs else None
    return probes, native_id


def _probe_specs() -> Mapping[str, jpsi.JobSpec]:
    return {
        PLAIN: _spec(_NAME),
        NAMED: _spec(f"{_NAME}: Größe {'x' * _LONG_NAME_LETTERS}"),
        SIZED: _spec(_NAME, jpsi.ResourceSpecV1(memory=_MEMORY)),
    }


def _spec(name: str, resources: jpsi.ResourceSpecV1 | None = None) -> jpsi.JobSpec:
    # `jpsi ls` and `top` leave out jobs with this mark
    limit = jpsi.JobAttributes(duration=_WALLTIME, user={PROBE_MARK: True})
    return jpsi.JobSpec("uname", ["-n"], name=name, resources=resources, attributes=limit)


@contextlib.contextmanager
def _submit_probes(executor: jpsi.JobExecutor) -> Iterator[tuple[dict[str, jpsi.Job], dict[str, str]]]:
    """Yield the jobs by their names, and why others were refused; cancel those that have not ended."""
    jobs: dict[str, jpsi.Job] = {}
    refusals: dict[str, str] = {}
    try:
        for name, spec in _probe_specs().items():
            job = jpsi.Job(spec)
            try:
                executor.submit(job)
            except jpsi.JpsiError as e:
                refusals[name] = " ".join(str(e).split())
            else:
                jobs[name] = job
        yield jobs, refusals
    finally:
        for job in jobs.values():
            if not job.status.final:
                with contextlib.suppress(jpsi.JpsiError):
                    job.cancel()


def _probe_result(executor: jpsi.JobExecutor, job: jpsi.Job, seconds: float) -> ProbeResult:
    output, status = executor.output(job), job.status
    node = None
    if output is not None and status.state is jpsi.JobState.COMPLETED:
        with contextlib.suppress(jpsi.JpsiError):
            part = output.read()
            node = None if part is None else part.data.decode(errors="replace").strip() or None
    return ProbeResult(
        status=status,
        seconds=seconds,
        node=node,
        folder=None if output is None else str(output.path.parent),
    )
