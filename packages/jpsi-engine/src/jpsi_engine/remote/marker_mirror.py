"""Creates markers in the mirror on this machine for those on the remote host; see `markers`.

`marker_stream` feeds it the lines of the remote host. From then on the monitor reads the markers of a remote
job as it reads those of any other.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping

import attrs

from jpsi_engine.host import forget, write_new
from jpsi_engine.remote.markers import ClockDifference, RemoteClock, RemoteMarker, RemoteMarkers, parse_line
from jpsi_engine.verdict import Marker, parse

#: The prefix of names in the root of the mirror for files and folders that are not complete yet.
DRAFT = "draft."
_NONCE_BYTES = 16

# If a machine has not taken the markers of its jobs for this long, it may not come back.
_ABANDONED_NS = 86_400_000_000_000


@attrs.define(slots=True, eq=False)
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

    _root: str
    _is_ours: Callable[[str], bool]
    _now_ns: Callable[[], int]
    _before_create: Callable[[Marker], None] = lambda _: None
    _clocks: ClockDifference = attrs.field(factory=ClockDifference, init=False)
    _pending: list[RemoteMarker] = attrs.field(factory=list, init=False)
    _mirrored: dict[str, list[str]] = attrs.field(factory=dict, init=False)

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
        folders = (f"{self._root}/events", f"{self._root}/jobs/{marker.job_id}")
        is_new = not any(os.path.exists(f"{folder}/{marker.name}") for folder in folders)  # noqa: PTH110
        if is_new:
            self._before_create(marker)
            create_marker(self._root, marker, time_ns)
        self._schedule_removal(marker)
        return is_new

    def _schedule_removal(self, marker: Marker) -> None:
        """Note that a marker is to leave the remote directory, which is reported again and again."""
        names = self._mirrored.setdefault(marker.job_id, [])
        if marker.name not in names:
            names.append(marker.name)


def create_marker(root: str, marker: Marker, time_ns: int) -> None:
    """Create a marker with its time in one step, since a reader looks at the time at once."""
    draft = draft_path(root)
    try:
        write_new(draft, b"")
        os.utime(draft, ns=(time_ns, time_ns))
        os.rename(draft, f"{root}/events/{marker.name}")  # noqa: PTH104  text, as in the spool
    except BaseException:
        forget(draft)
        raise


def draft_path(root: str) -> str:
    """Return a path in the mirror for a file or folder that is not complete yet."""
    # not in the trash, which another process may be emptying
    return f"{root}/{DRAFT}{secrets.token_hex(_NONCE_BYTES)}"


def marker_sort_key(marker: RemoteMarker) -> tuple[float, bool, str]:
    """Return the sort key of markers of one listing: of equal times, the end of a run comes last."""
    time = float("inf") if marker.time_ns is None else marker.time_ns
    return time, ".exit." in marker.name, marker.name
