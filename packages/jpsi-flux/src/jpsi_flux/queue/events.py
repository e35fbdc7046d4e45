"""Flux's own stream of events: one long-lived process tells of all jobs, which is cheaper than asking.

Only the owner of an instance may read its journal: that of a `flux batch` or `flux alloc` job, not that of a
cluster. Where it may not be read, or Flux is older than 0.68, the process ends at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import NOT_OFFERED, Command, NotOffered, Site, hookimpl

from ..commands import command

_MARK = "jpsi-flux"
# For Flux's own Python, with its bindings. What has happened to a job is told a second later, since jobs
# of jpsi's mostly report it themselves until then; and something is said twice a minute, so that the process
# notices when nobody listens any more.
_JOURNAL = f"""\
import time
import flux
from flux.job import JournalConsumer

consumer = JournalConsumer(flux.Flux(), full=False)
consumer.start()
late, said = [], time.monotonic()
while True:
    try:
        event = consumer.poll(timeout=1.0)
        if event is None:
            break
        if event.name in ("start", "exception", "clean"):
            late.append((time.monotonic() + 1.0, int(event.jobid)))
    except TimeoutError:
        pass
    now = time.monotonic()
    if (late and late[0][0] <= now) or now > said + 30.0:
        due = [job for when, job in late if when <= now]
        del late[: len(due)]
        print("{_MARK}", *dict.fromkeys(due), flush=True)
        said = now
"""


@hookimpl
def watch(site: Site) -> Command | NotOffered:
    """The command that tells of jobs."""
    return command(site, "flux", "python", "-", stdin=_JOURNAL) if site.config.events else NOT_OFFERED


@hookimpl
def parse_event(line: str) -> Sequence[str]:
    """The ids of the jobs that a line has news of.

    >>> parse_event("jpsi-flux 7290690207744 17"), parse_event("Welcome 17")
    (['7290690207744', '17'], [])
    """
    mark, *words = line.split() or [""]
    return [word for word in words if word.isdecimal()] if mark == _MARK else []
