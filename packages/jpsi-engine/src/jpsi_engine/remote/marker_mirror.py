"""Creates markers in the mirror on this machine for those on the remote host; see `markers`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping

from jpsi_engine.host import forget, open_private
from jpsi_engine.remote.markers import ClockDifference, RemoteClock, RemoteMarker, RemoteMarkers, parse_line
from jpsi_engine.verdict import Marker, parse

#: The prefix of names in the root of the mirror for files and folders that are not complete yet.
DRAFT = "draft."

# If a machine has not taken the markers of its jobs for this long, it may not come back.
_ABANDONED_NS = 86_400_000_000_000


class MarkerMirror:
    """The markers that one connection reports, as files of this machine. One thread uses it.

    A marker appears once, with its time by this machine's clock, even if this connection or a later one
    reports it again. Markers that are reported together appear in the order in which they were left, since it
    matters whether a job ended before the request to end it.

    Args:
        root: the root of the mirror.
        is_ours: returns True if the mirror has a job. Markers of other jobs are left to other machines.
        now_ns: returns the time by this machine's clock.
        before_create: called with a marker before it appears, to fetch what its readers need.
    """

    def __init__(
        self,
        root: str,
        is_ours: Callable[[str], bool],
        now_ns: Callable[[], int],
        before_create: Callable[[Marker], None] = lambda _: None,
    ) -> None:
        self._root = root
        self._is_ours = is_ours
        self._now_ns = now_ns
        self._before_create = before_create
        self._clocks = ClockDifference()
        self._pending: list[RemoteMarker] = []
        self._mirrored: dict[str, list[str]] = {}

    def handle_line(self, line: str) -> bool:
        """Take a line of the connection; return True if a marker appeared.

        Raises:
            OSError: the mirror cannot be written. The remote host reports the marker again.
        """
        reported = parse_line(line)
        if isinstance(reported, RemoteClock):
            self._clocks.add_sample(reported.time_ns, self._now_ns())
        elif isinstance(reported, RemoteMarker):
            self._pending.append(reported)
        elif isinstance(reported, RemoteMarkers):
            markers, self._pending = sorted(self._pending, key=marker_sort_key), []
            appeared = [marker for marker in markers if self._mirror(marker)]
            return bool(appeared)
        return False

    def pop_mirrored(self) -> Mapping[str, list[str]]:
        """Return, by job id, the markers taken since the last call, which the remote host need not keep.

        They include markers of other machines' jobs that no machine has taken for a day. Those are to be
        moved to their jobs' folders, where a client that follows these jobs finds them.
        """
        mirrored, self._mirrored = self._mirrored, {}
        return mirrored

    def _mirror(self, reported: RemoteMarker) -> bool:
        marker = parse(reported.name, 0)
        if marker is None:
            return False
        now_ns = self._now_ns()
        time_ns = self._clocks.to_local(reported.time_ns, now_ns)
        if not self._is_ours(marker.job_id):
            if now_ns - time_ns > _ABANDONED_NS:
                self._schedule_removal(marker)
            return False
        path = f"{self._root}/events/{reported.name}"
        collected = f"{self._root}/jobs/{marker.job_id}/{reported.name}"
        is_new = not any(map(os.path.exists, (path, collected)))
        if is_new:
            self._before_create(marker)
            self._create(path, time_ns)
        self._schedule_removal(marker)
        return is_new

    def _schedule_removal(self, marker: Marker) -> None:
        """Note that a marker is to leave the remote directory, which is reported again and again."""
        names = self._mirrored.setdefault(marker.job_id, [])
        if marker.name not in names:
            names.append(marker.name)

    def _create(self, path: str, time_ns: int) -> None:
        """Create a marker with its time in one step, since a reader looks at the time at once."""
        # other threads and processes may receive the same marker
        draft = f"{self._root}/{DRAFT}{os.getpid()}.{threading.get_ident()}"
        try:
            os.close(open_private(draft, os.O_WRONLY | os.O_CREAT))
            os.utime(draft, ns=(time_ns, time_ns))
            os.rename(draft, path)  # noqa: PTH104  text, as in the spool
        except BaseException:
            forget(draft)
            raise


def marker_sort_key(marker: RemoteMarker) -> tuple[float, bool, str]:
    """Return the sort key of markers of one listing: of equal times, the end of a run comes last."""
    time = float("inf") if marker.time_ns is None else marker.time_ns
    return time, ".exit." in marker.name, marker.name
