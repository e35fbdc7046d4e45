"""Finds what was asked for by single jobs, wherever in the spool that was written down."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from jpsi_engine.scheduler.native_ids import element_intent
from jpsi_engine.spool import DAMAGE, Intent, Spool

log = logging.getLogger(__name__)


def intents_of(spool: Spool, job_ids: Collection[str]) -> list[Intent]:
    """The last attempts of those of these jobs that are on disk.

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
    """Warn in a line of a job whose files are damaged, or whose reading has failed."""
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
    """Those that are elements of arrays and have no folder, as they did not begin yet."""
    for name in spool.arrays.all_names():
        try:
            array = spool.arrays.read(name)
        except (OSError, *DAMAGE):
            continue  # `jpsi doctor` names it; one odd folder says nothing of the others
        for index, element in enumerate(() if array is None else array.elements, 1):
            if array is not None and element["id"] in job_ids:
                yield element_intent(array, index)
