"""After which exit codes the batch system may run a job again, written down for those who do not ask it.

    <root>/requeue.json          the exit codes

Without the file, any failure is one that may not be the end.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection

from jpsi_engine.host import read_json, write

log = logging.getLogger(__name__)

#: What may be run again where nothing is known.
EVERY_FAILURE: Collection[int] = range(1, 256)


def keep_codes(root: str, codes: Collection[int]) -> None:
    """Write down the codes of the site, unless they are there or unknown; never raises."""
    if codes == EVERY_FAILURE or codes == read_codes(root):
        return
    try:
        write(_path(root), json.dumps({"requeue_exit_codes": sorted(codes)}).encode("ascii"))
    except OSError:
        log.debug("%s could not be written", _path(root), exc_info=True)


def read_codes(root: str) -> Collection[int]:
    """The codes that were written down last."""
    try:
        found = (read_json(_path(root)) or {}).get("requeue_exit_codes")
    except OSError:
        return EVERY_FAILURE
    if not isinstance(found, list) or not all(isinstance(code, int) for code in found):
        return EVERY_FAILURE
    return frozenset(found)


def _path(root: str) -> str:
    return f"{root}/requeue.json"
