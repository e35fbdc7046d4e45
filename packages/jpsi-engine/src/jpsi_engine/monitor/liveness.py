"""Counts the seconds during which a remote host was reporting its jobs.

Time without reports does not count towards declaring a job lost: the job may have ended, and only its report
may be missing. `remote.marker_stream` notes the reports as they arrive. `Publisher.counted_seconds` is the
method below: the publisher counts with it how long a job has been missing. One object serves all successive
connections to the host.
"""

from __future__ import annotations

import threading
from collections import deque

# The seconds after a report that count if the next one is late. A host that is reached reports every one or
# two seconds. Even if each report takes longer than this, some time counts, so that jobs
# are declared lost at last.
_TIMEOUT_SECONDS = 10.0
# The most reports and gaps to store: more gaps than occur before a job counts as lost, and more reports than
# arrive during one poll of the batch system.
_MOST_STORED = 1000


class Liveness:
    """The times of a remote host's reports, in seconds of one monotonic clock. Methods are thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._report_times: deque[float] = deque(maxlen=_MOST_STORED)
        self._is_lost = True
        # the begin and end of each time that does not count
        self._gaps: deque[tuple[float, float]] = deque(maxlen=_MOST_STORED)

    def note_report(self, now: float) -> None:
        """Note that a report arrived."""
        with self._lock:
            if not self._report_times:
                self._gaps.append((float("-inf"), now))
            elif self._is_lost:
                self._gaps.append((self._report_times[-1], now))
            elif now - self._report_times[-1] > _TIMEOUT_SECONDS:
                self._gaps.append((self._report_times[-1] + _TIMEOUT_SECONDS, now))
            self._report_times.append(now)
            self._is_lost = False

    def note_disconnect(self) -> None:
        """Note that the last connection was lost: the time from its last report to the next is a gap.

        The caller notes it when it opens the next connection.
        """
        with self._lock:
            self._is_lost = True

    def counted_seconds(self, since: float, now: float) -> float:
        """Return how many of the seconds between two times count.

        The seconds between the last report before `now` and `now` do not count: the next report may tell what
        happened in them.
        """
        with self._lock:
            until = next((it for it in reversed(self._report_times) if it <= now), float("-inf"))
            missed = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in self._gaps)
            return max(0.0, until - since - missed)
