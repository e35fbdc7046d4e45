"""Creates folders of jobs and arrays in the mirror from those on the remote host; see `folders`.

`RemoteHost` uses it for jobs that another machine submitted to the same host, and for files that jobs have
left there, so that this machine lists and recovers these jobs like its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time

import attrs

from jpsi_engine.host import forget, make_directory, write, write_new, write_once
from jpsi_engine.remote.folders import RemoteFolder
from jpsi_engine.remote.marker_mirror import DRAFT, create_marker, draft_path, marker_sort_key
from jpsi_engine.remote.markers import ClockDifference, RemoteMarker
from jpsi_engine.spool import FOUND, Spool
from jpsi_engine.verdict import parse

# No process takes longer to write a folder that it has found.
_DRAFT_SECONDS = 3600.0


@attrs.frozen(slots=True)
class FolderMirror:
    """The folders of jobs and arrays in a mirror. Any thread may call its methods, which raise OSError."""

    spool: Spool

    def update(self, found: RemoteFolder, clocks: ClockDifference) -> None:
        """Add to a folder of the mirror what is new in the remote one."""
        folder = f"{self.spool.root}/{found.name}"
        for name, text in found.texts.items():
            path = f"{folder}/{name}"
            if name.startswith("claim") and text.strip():
                mirror_file(path, text.strip())
            elif text.strip() and not os.path.lexists(path):
                # the file belongs to an attempt that another machine has made
                with contextlib.suppress(FileNotFoundError):
                    write_once(path, os.fsencode(text.strip()))
        for marker in sorted((RemoteMarker(*it) for it in found.times.items()), key=marker_sort_key):
            parsed = parse(marker.name, 0)
            if parsed is not None and not os.path.lexists(f"{folder}/{marker.name}"):
                create_marker(self.spool.root, parsed, clocks.to_local(marker.time_ns, time.time_ns()))

    def adopt(self, found: RemoteFolder, clocks: ClockDifference) -> None:
        """Create a folder of the mirror from a remote one."""
        draft = draft_path(self.spool.root)
        make_directory(draft)
        try:
            write_new(f"{draft}/{FOUND}", b"")
            for name, text in found.texts.items():
                write_new(f"{draft}/{name}", os.fsencode(text.rstrip("\n")))
            for name, time_ns in found.times.items():
                if parse(name, 0) is not None or name.startswith("start."):
                    local_ns = clocks.to_local(time_ns, time.time_ns())
                    write_new(f"{draft}/{name}", b"")
                    os.utime(f"{draft}/{name}", ns=(local_ns, local_ns))
            os.rename(draft, f"{self.spool.root}/{found.name}")  # noqa: PTH104  text, as in the spool
        except OSError:
            # another process may have adopted it meanwhile
            if not os.path.isdir(f"{self.spool.root}/{found.name}"):  # noqa: PTH112  as above
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def remove_drafts(self) -> None:
        """Remove the drafts of processes that were killed while they adopted a folder."""
        with os.scandir(self.spool.root) as entries:
            drafts = [entry for entry in entries if entry.name.startswith(DRAFT)]
        for draft in drafts:
            with contextlib.suppress(FileNotFoundError):
                # the time of modification is that of the remote marker
                if time.time() - draft.stat().st_ctime > _DRAFT_SECONDS:
                    if draft.is_dir():
                        shutil.rmtree(draft.path, ignore_errors=True)
                    else:
                        forget(draft.path)


def mirror_file(path: str, text: str) -> None:
    """Write a file with the content of the remote one; do nothing if the job's folder is gone."""
    with contextlib.suppress(FileNotFoundError):
        write(path, os.fsencode(text))
