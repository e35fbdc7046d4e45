"""Submits many jobs with few requests: those that are alike as native arrays, others several at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from jpsi.contract.asked import dependencies
from jpsi.contract.hookspecs import Arrays, SubmitContext
from jpsi.contract.protocols import Outcomes, Submission
from jpsi.engine.array_files import Place
from jpsi.engine.backend import Backend
from jpsi.engine.concurrently import concurrently
from jpsi.engine.grouping import chunks, shape
from jpsi.engine.native_ids import tag
from jpsi.engine.submitting import Submitting, encoded
from jpsi.engine.tracked import Tracked
from jpsi.model.errors import InvalidJobException, JpsiError
from jpsi.model.spec import JobSpec

log = logging.getLogger(__name__)

_SUBJECT = "the job"


class Bulk:
    """Many submissions to one batch system. Methods may be called from any thread.

    Args:
        backend: which batch system it is.
        submitting: submits jobs and arrays.
        add: knows a job that was submitted.
    """

    def __init__(self, backend: Backend, submitting: Submitting, add: Callable[[Tracked], None]) -> None:
        self._backend = backend
        self._submitting = submitting
        self._add = add

    def submit(self, submissions: Sequence[Submission], told: Callable[[Outcomes], None]) -> None:
        """Submit jobs; see `jpsi.plugin.BulkEngine`."""
        if not submissions:
            return
        arrays = self._arrays()
        parts = [[it] for it in submissions] if arrays is None else self._planned(submissions, arrays, told)

        def submit(part: Sequence[Submission]) -> None:
            if arrays is None or len(part) == 1:
                self._alone(part[0], told)
            else:
                self._together(part, arrays, told)

        concurrently(parts, submit, self._backend.config.submit_concurrency)

    def _arrays(self) -> Arrays | None:
        """What arrays can be had; a site that does not tell has what its batch system has by default."""
        if self._backend.config.array_size == 1:
            return None
        try:
            self._backend.probe()
        except JpsiError as e:
            log.info("%s does not tell what it offers: %s", self._backend.name, e)
        return self._backend.capabilities.arrays

    def _planned(
        self, submissions: Iterable[Submission], arrays: Arrays, told: Callable[[Outcomes], None]
    ) -> list[list[Submission]]:
        """Which of the jobs are submitted together; `told` hears of those that cannot be submitted."""
        kinds: dict[str, str] = {}
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
                keys.append(kinds[key])
                sound.append(submission)
        largest = max(1, min(arrays.largest, self._backend.config.array_size or arrays.largest))
        return [[sound[position] for position in group] for group in chunks(keys, largest)]

    def _kind(self, spec: JobSpec) -> str:
        """What the batch system is to see of a job, but for what differs between any two."""
        after = tuple(dependencies(spec))
        context = SubmitContext(site=self._backend.site, job_id="0", tag=tag("0", 1), after=after)
        return self._backend.sight(self._backend.render(spec, context), spec, context)

    def _alone(self, submission: Submission, told: Callable[[Outcomes], None]) -> None:
        job_id, attempt = submission.job_id, submission.attempt
        try:
            accepted = self._submitting.one(submission)
        except JpsiError as e:
            told({job_id: e})
            return
        self._add(Tracked(job_id, job_id, attempt, accepted.native_id, accepted=accepted.begun))
        told({job_id: accepted.native_id})
        if accepted.interrupt is not None:
            raise accepted.interrupt

    def _together(
        self, submissions: Sequence[Submission], arrays: Arrays, told: Callable[[Outcomes], None]
    ) -> None:
        try:
            accepted = self._submitting.array(submissions, arrays)
        except JpsiError as e:
            told({submission.job_id: e for submission in submissions})
            return
        outcomes: dict[str, str | JpsiError] = {}
        elements = zip(submissions, accepted.native_ids, strict=True)
        for index, (submission, native_id) in enumerate(elements, 1):
            job_id, attempt = submission.job_id, submission.attempt
            outcomes[job_id] = native_id
            self._add(
                Tracked(
                    job_id,
                    job_id,
                    attempt,
                    native_id,
                    place=Place(accepted.array, index),
                    accepted=accepted.whole.begun,
                    # its folder is made when it runs, so that there is nothing to read yet
                    is_read=True,
                )
            )
        told(outcomes)
        self._submitting.told(submissions)
        if accepted.whole.interrupt is not None:
            raise accepted.whole.interrupt
