"""`jpsi submit`: hands jobs to a batch system, prints their ids, and is done."""

from __future__ import annotations

import json
from collections.abc import Sequence

import jpsi

from . import codes, documents, messages
from .fence import fenced, in_options
from .options import Given, spec_of


def submit(  # noqa: PLR0913  all that is not a field of the job, each by its name
    command: Sequence[str],
    given: Given,
    *,
    executor: str | None,
    files: Sequence[str],
    many: str | None,
    is_expanding: bool,
    as_json: bool,
) -> int:
    """Submit the jobs and return the exit code."""

    def command_line() -> int:
        read = [documents.read(file) for file in files] if many is None else documents.read_many(many)
        specs: Sequence[jpsi.JobSpec | None] = read or [None]
        jobs = [jpsi.Job(spec_of(it, command, given, is_expanding=is_expanding)) for it in specs]
        with jpsi.JobExecutor(executor) as opened:
            return _submit(jobs, opened, as_json=as_json)

    return fenced(command_line)


def _submit(jobs: Sequence[jpsi.Job], executor: jpsi.JobExecutor, *, as_json: bool) -> int:
    try:
        if len(jobs) == 1:
            executor.submit(jobs[0])
        else:
            executor.submit_many(jobs)
    except KeyboardInterrupt:
        # those that the batch system has are not to be lost sight of
        _show([job for job in jobs if job.native_id is not None], executor, as_json=as_json)
        raise
    except jpsi.BulkException as e:
        _show(e.done, executor, as_json=as_json)
        messages.error(in_options(str(e)))
        are_all_wrong = all(isinstance(it, jpsi.InvalidJobException) for it in e.failed.values())
        return codes.USAGE if are_all_wrong and not e.done else codes.JPSI
    _show(jobs, executor, as_json=as_json)
    return 0


def _show(jobs: Sequence[jpsi.Job], executor: jpsi.JobExecutor, *, as_json: bool) -> None:
    if not as_json:
        messages.show("".join(f"{job.id}\n" for job in jobs))
        return
    for job in jobs:
        name = None if job.spec is None else job.spec.name
        content = {"id": job.id, "native_id": job.native_id, "name": name, "executor": executor.name}
        messages.show(json.dumps(content) + "\n")
