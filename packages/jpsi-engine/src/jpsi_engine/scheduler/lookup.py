"""Finds the intents of jobs, both of single jobs and of array elements, wherever the spool has them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from jpsi_engine.scheduler.native_ids import element_intent
from jpsi_engine.spool import DAMAGE, Intent, Spool

log = logging.getLogger(__name__)


def find_intents(spool: Spool, job_ids: Collection[str]) -> list[Intent]:
    """Return the last attempts of these jobs; jobs without a readable intent in the spool are left out.

    Raises:
        OSError: the arrays cannot be listed.
    """
    found = {}
    for job_id in job_ids:
        try:
            intent = spool.last_intent(job_id)
        except (OSError, *DAMAGE) as e:
            warn_of_damage(spool, job_id, e)
            continue
        if intent is not None:
            found[job_id] = intent
        else:
            warn_of_damage(spool, job_id)
    missing = frozenset(job_ids).difference(found)
    if missing:
        found |= {it.job_id: it for it in _elements(spool, missing)}
    return list(found.values())


def warn_of_damage(spool: Spool, job_id: str, error: Exception | None = None) -> None:
    """Log one warning about a job whose files are damaged, or could not be read."""
    try:
        problem = spool.damage(job_id)
    except OSError as e:
        problem = str(e)
    problem = problem or (None if error is None else f"its files cannot be understood: {error!r}")
    if problem is not None:
        log.warning(
            "job %s is damaged and left alone, in %s: %s; jpsi doctor says what to do",
            job_id,
            spool.folder(job_id),
            problem,
        )


def _elements(spool: Spool, job_ids: Collection[str]) -> Iterator[Intent]:
    """Yield the intents of array elements that have no folder, as they have not begun yet."""
    for name in spool.arrays.all_names():
        try:
            array = spool.arrays.read(name)
        except (OSError, *DAMAGE):
            continue  # `jpsi doctor` names it; one damaged folder must not hide the others
        for index, element in enumerate(() if array is None else array.elements, 1):
            if array is not None and element["id"] in job_ids:
                yield element_intent(array, index)
