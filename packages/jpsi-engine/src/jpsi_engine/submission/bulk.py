"""Submits many jobs with few commands: jobs that look alike together, the others several at a time."""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence

import attrs

from jpsi.plugin import (
    Arrays,
    Capabilities,
    HeterogeneousResources,
    InvalidJobException,
    JobSpec,
    JpsiError,
    SubmitContext,
)
from jpsi.plugin.engine import Outcomes, Submission, dependencies, shape
from jpsi_engine.array_expansion import at_a_time as own_limit
from jpsi_engine.host import concurrently
from jpsi_engine.scheduler import Backend, JobView, Throttle
from jpsi_engine.spool import tag
from jpsi_engine.submission.submission import (
    Accepted,
    ContestedError,
    SubmissionPipeline,
    contested_error,
    encode_spec,
)


@attrs.frozen(slots=True)
class BulkSubmission:
    """Bulk submission to one batch system. Methods may be called from any thread."""

    _backend: Backend
    _pipeline: SubmissionPipeline
    #: Delays jobs until there is quota for them.
    _throttle: Throttle
    #: Called with each job that was submitted.
    _add: Callable[[JobView], None]

    def submit(self, submissions: Sequence[Submission], report: Callable[[Outcomes], None]) -> None:
        """Submit jobs; see `jpsi.plugin.engine.Engine`."""
        if not submissions:
            return
        capabilities = self._probe_capabilities()
        largest = self._max_group_size(capabilities)
        single_jobs = [[it] for it in submissions]
        parts = single_jobs if largest == 1 else self._group(submissions, largest, report)

        def submit(part: tuple[Sequence[Submission], int | None]) -> None:
            jobs, at_a_time = part
            at_a_time = min(filter(None, (at_a_time, own_limit(jobs[0].spec))), default=None)
            try:
                accepted = self._submit_part(jobs, capabilities.arrays, at_a_time)
            except ContestedError as e:
                report({job_id: contested_error(job_id) for job_id in e.job_ids})
                others = [it for it in jobs if it.job_id not in e.job_ids]
                if others:
                    submit((others, at_a_time))
                return
            except JpsiError as e:
                report({it.job_id: e for it in jobs})
                return
            for job in accepted.jobs:
                self._throttle.note_submitted(job)
                self._add(job)
            place = accepted.jobs[0].place if accepted.jobs else None
            if at_a_time is not None and place is not None:
                # only now, as the quota forgets the limits of arrays of which it knows no element
                self._throttle.limit_array(place.array, at_a_time)
            report({**{job.job_id: job.native_id for job in accepted.jobs}, **accepted.errors})
            self._pipeline.mark_reported(jobs)
            if accepted.interrupt is not None:
                raise accepted.interrupt

        waves = self._throttle.waves(parts, lambda job_id, why: report({job_id: why}))
        with contextlib.closing(waves):
            for wave in waves:
                concurrently(wave, submit, self._backend.config.submit_concurrency)

    def _probe_capabilities(self) -> Capabilities:
        """Return the site's capabilities; if the probe fails, those that the batch system has by default."""
        if self._backend.config.array_size != 1:
            self._backend.probe()
        return self._backend.capabilities

    def _max_group_size(self, capabilities: Capabilities) -> int:
        """Return the most jobs that one submission may have."""
        if capabilities.arrays is None:
            largest = min(capabilities.jobs_per_submission, self._max_open_files())
        else:
            largest = capabilities.arrays.largest
        return max(1, min(largest, self._backend.config.array_size or largest))

    def _max_open_files(self) -> int:
        """Return the most jobs that one command may submit.

        The client keeps a file open for each of them until its native id is known.
        """
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return sys.maxsize if limit < 0 else limit // (2 * self._backend.config.submit_concurrency)

    def _group(
        self, submissions: Iterable[Submission], largest: int, report: Callable[[Outcomes], None]
    ) -> list[list[Submission]]:
        """Return the jobs in groups that are submitted together.

        For jobs that cannot be submitted, it calls `report` with the error.
        """
        kinds: dict[str, str | None] = {}
        valid: list[Submission] = []
        keys: list[Hashable] = []
        for submission in submissions:
            key = shape(encode_spec(submission))
            try:
                self._pipeline.end_earlier_attempts(submission.job_id, submission.attempt)
                if key not in kinds:
                    kinds[key] = self._group_key(submission.spec)
            except ValueError as e:
                report({submission.job_id: InvalidJobException.of("the job", [str(e)])})
            except JpsiError as e:
                report({submission.job_id: e})
            else:
                is_alone = self._pipeline.needs_transfer(submission.spec) or kinds[key] is None
                shell = tuple(self._pipeline.shell(submission.spec))
                keys.append(submission.job_id if is_alone else (kinds[key], shell))
                valid.append(submission)
        return [[valid[position] for position in group] for group in group_equal(keys, largest)]

    def _group_key(self, spec: JobSpec) -> str | None:
        """Return a key that is equal for jobs that can be submitted together.

        It is None for a job that must be submitted by itself.
        """
        arrays = self._backend.capabilities.arrays
        if arrays and not arrays.heterogeneous and isinstance(spec.resources, HeterogeneousResources):
            return None
        after = tuple(dependencies(spec))
        context = SubmitContext(site=self._backend.site, job_id="0", tag=tag("0", 1), after=after)
        script = self._backend.render(spec, context)
        if arrays is None and not self._backend.can_submit_several(script, spec, context):
            return None
        return self._backend.submission_fingerprint(script, spec, context)

    def _submit_part(
        self, submissions: Sequence[Submission], arrays: Arrays | None, at_a_time: int | None
    ) -> Accepted:
        if len(submissions) == 1 or arrays is None:
            return self._pipeline.submit_jobs(submissions)
        return self._pipeline.submit_array(submissions, arrays, at_a_time)


def group_equal(keys: Sequence[Hashable], largest: int) -> list[list[int]]:
    """Return the positions of equal keys together, at most `largest` each, in the order of first occurrence.

    >>> group_equal("abaaa", 3)
    [[0, 2, 3], [4], [1]]
    """
    alike: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        alike.setdefault(key, []).append(position)
    return [
        positions[start : start + largest]
        for positions in alike.values()
        for start in range(0, len(positions), largest)
    ]
