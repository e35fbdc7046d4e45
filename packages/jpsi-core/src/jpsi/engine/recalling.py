"""Finds what was asked for by single jobs, wherever in the spool that was written down."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from jpsi.engine.native_ids import element_intent
from jpsi.engine.spool import Intent, Spool

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
        except (OSError, KeyError, TypeError, ValueError):
            log.warning("job %s: its folder cannot be understood", job_id, exc_info=True)
            continue
        if intent is not None:
            found[job_id] = intent
    missing = frozenset(job_ids).difference(found)
    if missing:
        found |= {it.job_id: it for it in _elements(spool, missing)}
    return list(found.values())


def _elements(spool: Spool, job_ids: Collection[str]) -> Iterator[Intent]:
    """Those that are elements of arrays and have no folder, as they did not begin yet."""
    for name in spool.arrays.all_names():
        array = spool.arrays.read(name)
        for index, element in enumerate(() if array is None else array.elements, 1):
            if array is not None and element["id"] in job_ids:
                yield element_intent(array, index)
