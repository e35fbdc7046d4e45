"""Makes here, in the mirror, the markers that are told of where files are elsewhere; see `far_markers`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping

from jpsi.plugin.kit import open_private
from jpsi_engine.host import forget
from jpsi_engine.remote.markers import ClockDifference, FarAll, FarClock, FarMarker, read_line
from jpsi_engine.verdict import Marker, parse

#: How what is found over there is called in the root of the mirror until it is whole.
DRAFT = "draft."

# A machine that has not taken the markers of its jobs for so long may not come back.
_ABANDONED_NS = 86_400_000_000_000


class MarkerMirror:
    """What one connection tells of markers, as files of this machine. One thread uses it.

    A marker appears with its time, by the clock here, and once, even if it is told again, by this connection
    or by one after it. Those that are told together appear in the order in which they were left, as it means
    something whether a job had ended before it was told to.

    Args:
        root: the root of the mirror.
        is_ours: whether the mirror has a job; those of others are left to them.
        now_ns: the time by the clock here.
        before: called with a marker before it appears: whoever sees it may want to know more.
    """

    def __init__(
        self,
        root: str,
        is_ours: Callable[[str], bool],
        now_ns: Callable[[], int],
        before: Callable[[Marker], None] = lambda _: None,
    ) -> None:
        self._root = root
        self._is_ours = is_ours
        self._now_ns = now_ns
        self._before = before
        self._clocks = ClockDifference()
        self._told: list[FarMarker] = []
        self._made: dict[str, list[str]] = {}

    def take(self, line: str) -> bool:
        """Take a line that was told; returns whether a marker has appeared by it.

        Raises:
            OSError: the mirror cannot be written. The marker is told again.
        """
        told = read_line(line)
        if isinstance(told, FarClock):
            self._clocks.heard(told.time_ns, self._now_ns())
        elif isinstance(told, FarMarker):
            self._told.append(told)
        elif isinstance(told, FarAll):
            markers, self._told = sorted(self._told, key=order), []
            appeared = [marker for marker in markers if self._appears(marker)]
            return bool(appeared)
        return False

    def made(self) -> Mapping[str, list[str]]:
        """The markers that have come since this was called last, by job; over there nobody needs them.

        Those of others are among them that nobody has taken for a day: in the folders of their jobs, whoever
        follows these finds them.
        """
        made, self._made = self._made, {}
        return made

    def _appears(self, told: FarMarker) -> bool:
        marker = parse(told.name, 0)
        if marker is None:
            return False
        now_ns = self._now_ns()
        time_ns = self._clocks.here(told.time_ns, now_ns)
        if not self._is_ours(marker.job_id):
            if now_ns - time_ns > _ABANDONED_NS:
                self._take_away(marker)
            return False
        path = f"{self._root}/events/{told.name}"
        taken = f"{self._root}/jobs/{marker.job_id}/{told.name}"
        is_new = not any(map(os.path.exists, (path, taken)))
        if is_new:
            self._before(marker)
            self._make(path, time_ns)
        self._take_away(marker)
        return is_new

    def _take_away(self, marker: Marker) -> None:
        """A marker is to go from where it is told again and again."""
        names = self._made.setdefault(marker.job_id, [])
        if marker.name not in names:
            names.append(marker.name)

    def _make(self, path: str, time_ns: int) -> None:
        """Have a marker appear; whoever sees it looks at its time at once."""
        # others of this program may hear of it as well
        draft = f"{self._root}/{DRAFT}{os.getpid()}.{threading.get_ident()}"
        try:
            os.close(open_private(draft, os.O_WRONLY | os.O_CREAT))
            os.utime(draft, ns=(time_ns, time_ns))
            os.rename(draft, path)  # noqa: PTH104  text, as in the spool
        except BaseException:
            forget(draft)
            raise


def order(marker: FarMarker) -> tuple[float, bool, str]:
    """By what markers are sorted that one look has found: the end of a run is the last that it tells."""
    time = float("inf") if marker.time_ns is None else marker.time_ns
    return time, ".exit." in marker.name, marker.name
