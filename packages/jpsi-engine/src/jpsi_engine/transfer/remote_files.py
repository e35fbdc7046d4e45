"""Transfers and reads files of a remote host, by commands that read and print bytes.

`open_job_files` returns them if the transport leads to a remote host. `remote_copy` does the work.
"""

from __future__ import annotations

import errno
import os
import posixpath

from jpsi import OutputPart
from jpsi.plugin import BytesTransport, FileTransport
from jpsi.plugin.engine import Progress
from jpsi_engine.host import parse_os_error, remote_file_error
from jpsi_engine.transfer.remote_commands import READ_RANGE, shell_command
from jpsi_engine.transfer.remote_copy import RemoteGet, RemotePut
from jpsi_engine.transfer.remote_shell import RemoteShell


class RemoteFiles:
    """The files of the remote host that a transport leads to; implements `JobFiles`."""

    are_local = False

    def __init__(self, transport: BytesTransport) -> None:
        self._transport = transport
        self._shell = RemoteShell(transport)

    def put(self, source: str, target: str, progress: Progress | None = None) -> None:
        """Copy a local file or tree to the remote host; see `JobFiles`."""
        RemotePut(self._shell, source, self._remote_path(target), progress).run()

    def get(self, source: str, target: str, progress: Progress | None = None) -> None:
        """Copy a file or tree from the remote host; see `JobFiles`."""
        local_target = os.path.abspath(target)  # noqa: PTH100  text
        RemoteGet(self._shell, self._remote_path(source), local_target, progress).run()

    def read(self, path: str, offset: int, most: int) -> OutputPart | None:
        """Return the content of a remote file from an offset on; None if there is no file. See `JobFiles`."""
        result = self._transport.exchange(shell_command(READ_RANGE, self._remote_path(path), offset, most))
        if result.timed_out or result.returncode != 0:
            cause = None if result.timed_out else parse_os_error(result.stderr)
            if cause is not None and cause.errno == errno.ENOENT:
                return None
            raise remote_file_error(path, "read", result)
        output, _, data = result.stdout.partition(b"\n")
        size, at = map(int, output.split())
        return OutputPart(data, at, size)

    def _remote_path(self, path: str) -> str:
        """Return the absolute path on the remote host; expand `~` if the transport knows the home."""
        is_at_home = path == "~" or path.startswith("~/")
        if is_at_home and isinstance(self._transport, FileTransport):
            return _absolute(self._transport.directories().expanded(path))
        return _absolute(path)


def _absolute(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"a path where jobs run must be absolute, or begin with ~/: {path!r}")
    return posixpath.normpath(path) if "//" in path or path.endswith("/") else path
