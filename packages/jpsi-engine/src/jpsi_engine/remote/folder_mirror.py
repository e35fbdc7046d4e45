"""Creates folders of jobs and arrays in the mirror from those on the remote host; see `folders`."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time

import attrs

from jpsi_engine.host import forget, make_directory, write, write_new, write_once
from jpsi_engine.remote.folders import RemoteFolder
from jpsi_engine.remote.marker_mirror import DRAFT, marker_sort_key
from jpsi_engine.remote.markers import ClockDifference, RemoteMarker
from jpsi_engine.spool import FOUND, Spool
from jpsi_engine.verdict import parse

# No process takes longer to write a folder that it has found.
_DRAFT_SECONDS = 3600.0
_NONCE_BYTES = 16


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
            is_new = not os.path.lexists(f"{folder}/{marker.name}")
            if parse(marker.name, 0) is not None and is_new:
                draft = self._draft()
                _touch(draft, clocks.to_local(marker.time_ns, time.time_ns()))
                os.rename(draft, f"{self.spool.events}/{marker.name}")  # noqa: PTH104  text, as in the spool

    def adopt(self, found: RemoteFolder, clocks: ClockDifference) -> None:
        """Create a folder of the mirror from a remote one."""
        draft = self._draft()
        make_directory(draft)
        try:
            write_new(f"{draft}/{FOUND}", b"")
            for name, text in found.texts.items():
                write_new(f"{draft}/{name}", os.fsencode(text.rstrip("\n")))
            for name, time_ns in found.times.items():
                if parse(name, 0) is not None or name.startswith("start."):
                    _touch(f"{draft}/{name}", clocks.to_local(time_ns, time.time_ns()))
            os.rename(draft, f"{self.spool.root}/{found.name}")  # noqa: PTH104  as above
        except OSError:
            # another process may have adopted it meanwhile
            if not os.path.isdir(f"{self.spool.root}/{found.name}"):  # noqa: PTH112  as above
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _draft(self) -> str:
        # not in the trash, which another process may be emptying
        return f"{self.spool.root}/{DRAFT}{secrets.token_hex(_NONCE_BYTES)}"

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


def _touch(path: str, time_ns: int) -> None:
    write_new(path, b"")
    os.utime(path, ns=(time_ns, time_ns))
