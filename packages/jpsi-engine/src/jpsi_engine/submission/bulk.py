"""Submits many jobs with few commands: jobs that look alike together, the others several at a time."""

from __future__ import annotations

import contextlib
import logging
import resource
import sys
from collections.abc import Callable, Iterable, Sequence

from jpsi.plugin import (
    Arrays,
    Capabilities,
    HeterogeneousResources,
    InvalidJobException,
    JobSpec,
    JpsiError,
    SubmitContext,
)
from jpsi.plugin.engine import Outcomes, Submission, concurrently, dependencies, shape
from jpsi_engine.scheduler import Backend, JobView, Throttle
from jpsi_engine.spool import ArrayMember, tag
from jpsi_engine.submission.grouping import chunks
from jpsi_engine.submission.submission import ContestedError, SubmissionPipeline, contested, encoded

log = logging.getLogger(__name__)

_SUBJECT = "the job"


class BulkSubmission:
    """Bulk submission to one batch system. Methods may be called from any thread.

    Args:
        backend: the batch system.
        submitting: submits jobs and arrays.
        admission: delays jobs until there is quota for them.
        add: called with each job that was submitted.
    """

    def __init__(
        self,
        backend: Backend,
        submitting: SubmissionPipeline,
        admission: Throttle,
        add: Callable[[JobView], None],
    ) -> None:
        self._backend = backend
        self._submitting = submitting
        self._admission = admission
        self._add = add

    def submit(self, submissions: Sequence[Submission], told: Callable[[Outcomes], None]) -> None:
        """Submit jobs; see `jpsi.plugin.engine.Engine`."""
        if not submissions:
            return
        offered = self._offered()
        largest = self._largest(offered)
        one_by_one = [[it] for it in submissions]
        parts = one_by_one if largest == 1 else self._planned(submissions, largest, told)

        def submit(part: tuple[Sequence[Submission], int | None]) -> None:
            jobs, at_a_time = part
            if len(jobs) == 1:
                self._alone(jobs[0], told)
            elif offered.arrays is None:
                self._several(jobs, told)
            else:
                self._together(jobs, offered.arrays, at_a_time, told)

        waves = self._admission.waves(parts, lambda job_id, why: told({job_id: why}))
        with contextlib.closing(waves):
            for wave in waves:
                concurrently(wave, submit, self._backend.config.submit_concurrency)

    def _offered(self) -> Capabilities:
        """Return the site's capabilities; if the probe fails, those that the batch system has by default."""
        if self._backend.config.array_size != 1:
            try:
                self._backend.probe()
            except JpsiError as e:
                log.info("%s does not tell what it offers: %s", self._backend.place, e)
        return self._backend.capabilities

    def _largest(self, offered: Capabilities) -> int:
        """Return the most jobs that one submission may have."""
        if offered.arrays is None:
            largest = min(offered.jobs_per_submission, self._openable())
        else:
            largest = offered.arrays.largest
        return max(1, min(largest, self._backend.config.array_size or largest))

    def _openable(self) -> int:
        """Return the most jobs that one command may submit.

        The client keeps a file open for each of them until its native id is known.
        """
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return sys.maxsize if limit < 0 else limit // (2 * self._backend.config.submit_concurrency)

    def _planned(
        self, submissions: Iterable[Submission], largest: int, told: Callable[[Outcomes], None]
    ) -> list[list[Submission]]:
        """Return the jobs in groups that are submitted together.

        For jobs that cannot be submitted, it calls `told` with the error.
        """
        kinds: dict[str, str | None] = {}
        sound, keys = [], []
        for submission in submissions:
            key = shape(encoded(submission))
            try:
                self._submitting.end_earlier(submission.job_id, submission.attempt)
                if key not in kinds:
                    kinds[key] = self._kind(submission.spec)
            except ValueError as e:
                told({submission.job_id: InvalidJobException.of(_SUBJECT, [str(e)])})
            except JpsiError as e:
                told({submission.job_id: e})
            else:
                is_alone = self._submitting.carries(submission.spec)
                keys.append(submission.job_id if is_alone else kinds[key] or submission.job_id)
                sound.append(submission)
        return [[sound[position] for position in group] for group in chunks(keys, largest)]

    def _kind(self, spec: JobSpec) -> str | None:
        """Return what the batch system sees of a job, without what differs between any two jobs.

        Jobs of equal kind can be submitted together; None for a job that must be submitted by itself.
        """
        arrays = self._backend.capabilities.arrays
        if arrays and not arrays.heterogeneous and isinstance(spec.resources, HeterogeneousResources):
            return None
        after = tuple(dependencies(spec))
        context = SubmitContext(site=self._backend.site, job_id="0", tag=tag("0", 1), after=after)
        script = self._backend.render(spec, context)
        if arrays is None and not self._backend.submits_several(script, spec, context):
            return None
        return self._backend.sight(script, spec, context)

    def _alone(self, submission: Submission, told: Callable[[Outcomes], None]) -> None:
        job_id, attempt = submission.job_id, submission.attempt
        try:
            accepted = self._submitting.one(submission)
        except JpsiError as e:
            told({job_id: e})
            return
        self._add(JobView(job_id, job_id, attempt, accepted.native_id, accepted=accepted.begun))
        told({job_id: accepted.native_id})
        if accepted.interrupt is not None:
            raise accepted.interrupt

    def _several(self, submissions: Sequence[Submission], told: Callable[[Outcomes], None]) -> None:
        try:
            several = self._submitting.several(submissions)
        except JpsiError as e:
            told({submission.job_id: e for submission in submissions})
            return
        outcomes: dict[str, str | JpsiError] = {}
        for submission in submissions:
            job_id, accepted = submission.job_id, several.outcomes.get(submission.job_id)
            if isinstance(accepted, JpsiError):
                outcomes[job_id] = accepted
            elif accepted is not None:
                outcomes[job_id] = accepted.native_id
                self._add(
                    JobView(job_id, job_id, submission.attempt, accepted.native_id, accepted=accepted.begun)
                )
        told(outcomes)
        if several.interrupt is not None:
            raise several.interrupt

    def _together(
        self,
        submissions: Sequence[Submission],
        arrays: Arrays,
        at_a_time: int | None,
        told: Callable[[Outcomes], None],
    ) -> None:
        try:
            accepted = self._submitting.array(submissions, arrays, at_a_time)
        except ContestedError as e:
            told({job_id: contested(job_id) for job_id in e.job_ids})
            others = [it for it in submissions if it.job_id not in e.job_ids]
            if others:
                self._together(others, arrays, at_a_time, told)
            return
        except JpsiError as e:
            told({submission.job_id: e for submission in submissions})
            return
        if at_a_time is not None:
            self._admission.limit(accepted.array, at_a_time)
        outcomes: dict[str, str | JpsiError] = {}
        elements = zip(submissions, accepted.native_ids, strict=True)
        for index, (submission, native_id) in enumerate(elements, 1):
            job_id, attempt = submission.job_id, submission.attempt
            outcomes[job_id] = native_id
            self._add(
                JobView(
                    job_id,
                    job_id,
                    attempt,
                    native_id,
                    place=ArrayMember(accepted.array, index),
                    accepted=accepted.whole.begun,
                    # the runner makes the element's folder, so there is nothing to read yet
                    is_read=True,
                )
            )
        told(outcomes)
        self._submitting.told(submissions)
        if accepted.whole.interrupt is not None:
            raise accepted.whole.interrupt
