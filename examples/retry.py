"""Retries: submissions that failed for a while, and jobs that need more resources than they requested.

python retry.py EXECUTOR PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from datetime import timedelta

import jpsi
from jpsi import Reason

#: What another attempt may come through, as it was no fault of the job.
UNLUCKY = {Reason.NODE_FAIL, Reason.PREEMPTED, Reason.LOST, Reason.LAUNCH}


def submit(
    executor: jpsi.JobExecutor, job: jpsi.Job, times: int = 8, sleep: Callable[[float], object] = time.sleep
) -> None:
    """Submit a job; retry transient failures with a growing delay."""
    for attempt in range(times):
        try:
            executor.submit(job)
        except jpsi.SubmitException as error:
            if not error.transient or attempt == times - 1:
                raise
            print(error, file=sys.stderr)
            sleep(random.uniform(0, 2**attempt))  # noqa: S311  no secret
        else:
            return


def run(executor: jpsi.JobExecutor, spec: jpsi.JobSpec, times: int = 4) -> jpsi.JobStatus:
    """Run a job to its end; another time with twice the memory or time if it lacked that."""
    job = jpsi.Job(spec)
    submit(executor, job)
    status = job.wait()
    assert status is not None
    print(status, file=sys.stderr)
    if times > 1 and (status.reason in UNLUCKY or increase_resources(spec, status.reason)):
        return run(executor, spec, times - 1)
    return status


def increase_resources(spec: jpsi.JobSpec, reason: Reason | None) -> bool:
    """Double the memory or duration that the job lacked; return True if it lacked one of them."""
    resources, attributes = spec.resources, spec.attributes
    if reason is Reason.OUT_OF_MEMORY and isinstance(resources, jpsi.ResourceSpecV1) and resources.memory:
        resources.memory *= 2
        return True
    if reason is Reason.TIMEOUT and attributes.duration:
        attributes.duration *= 2
        return True
    return False


def main(name: str, program: str, *arguments: str) -> int:
    spec = jpsi.JobSpec(
        program,
        list(arguments),
        resources=jpsi.ResourceSpecV1(memory=2**30),
        attributes=jpsi.JobAttributes(duration=timedelta(minutes=10)),
    )
    return run(jpsi.JobExecutor(name), spec).exit_code or 0


if __name__ == "__main__":
    if not sys.argv[2:]:
        sys.exit("usage: python retry.py EXECUTOR PROGRAM [ARGUMENT...]")
    try:
        sys.exit(main(*sys.argv[1:]))
    except jpsi.JpsiError as error:
        sys.exit(str(error))
