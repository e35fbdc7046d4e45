"""Stores the exit codes after which the batch system may requeue a job, for clients that do not poll it.

    <root>/requeue.json          the exit codes

Without the file, any failure may be requeued.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection

from jpsi_engine.host import read_json, write

log = logging.getLogger(__name__)

#: The exit codes that may be requeued if nothing is known about the site.
EVERY_FAILURE: Collection[int] = range(1, 256)


def store_requeue_codes(root: str, codes: Collection[int]) -> None:
    """Write the site's exit codes to the spool, unless they are there or unknown; never raises."""
    if codes == EVERY_FAILURE or codes == read_requeue_codes(root):
        return
    try:
        write(_path(root), json.dumps({"requeue_exit_codes": sorted(codes)}).encode("ascii"))
    except OSError:
        log.debug("%s could not be written", _path(root), exc_info=True)


def read_requeue_codes(root: str) -> Collection[int]:
    """Return the exit codes that were written last; `EVERY_FAILURE` if there are none."""
    try:
        stored = (read_json(_path(root)) or {}).get("requeue_exit_codes")
    except OSError:
        return EVERY_FAILURE
    if not isinstance(stored, list) or not all(isinstance(code, int) for code in stored):
        return EVERY_FAILURE
    return frozenset(stored)


def _path(root: str) -> str:
    return f"{root}/requeue.json"
