"""Follows Flux's event stream: one long-lived process reports on all jobs, which is cheaper than polling.

Only the owner of an instance may read its journal: users own the instance of a `flux batch` or `flux alloc`
job, but not that of a cluster. Without this permission, or with Flux before 0.68, the process ends at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import NOT_OFFERED, Command, NotOffered, Site, hookimpl

from ..commands import command

_LINE_PREFIX = "jpsi-flux"
# A program for Flux's Python with its bindings. It reports an event after one second, as the runner of a job
# usually reports it itself before that. And it prints a line at least every 30 s, so that it notices when
# jpsi has stopped reading.
_JOURNAL_READER = f"""\
import time
import flux
from flux.job import JournalConsumer

consumer = JournalConsumer(flux.Flux(), full=False)
consumer.start()
pending, last_line = [], time.monotonic()
while True:
    try:
        event = consumer.poll(timeout=1.0)
        if event is None:
            break
        if event.name in ("start", "exception", "clean"):
            pending.append((time.monotonic() + 1.0, int(event.jobid)))
    except TimeoutError:
        pass
    now = time.monotonic()
    if (pending and pending[0][0] <= now) or now > last_line + 30.0:
        due = [job for when, job in pending if when <= now]
        del pending[: len(due)]
        print("{_LINE_PREFIX}", *dict.fromkeys(due), flush=True)
        last_line = now
"""


@hookimpl
def watch(site: Site) -> Command | NotOffered:
    """Return the command that follows the event stream; NOT_OFFERED if the configuration turns it off."""
    return command(site, "flux", "python", "-", stdin=_JOURNAL_READER) if site.config.events else NOT_OFFERED


@hookimpl
def parse_event(line: str) -> Sequence[str]:
    """Return the ids of the jobs for which a line reports events.

    >>> parse_event("jpsi-flux 7290690207744 17"), parse_event("Welcome 17")
    (['7290690207744', '17'], [])
    """
    prefix, *words = line.split() or [""]
    return [word for word in words if word.isdecimal()] if prefix == _LINE_PREFIX else []
