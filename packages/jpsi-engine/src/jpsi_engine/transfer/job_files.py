"""Opens the files of the host on which jobs run, local or remote by the transport.

The engine stages files with the result, and users read the output of jobs with it.
"""

from __future__ import annotations

from jpsi import JobFiles
from jpsi.plugin import BytesTransport, Transport


def open_job_files(transport: Transport) -> JobFiles:
    """Return the files of the host on which a transport runs its commands.

    If a transport cannot transfer bytes, jpsi assumes that its commands see the files of this machine.
    """
    if not transport.is_local and isinstance(transport, BytesTransport):
        from jpsi_engine.transfer.remote_files import RemoteFiles  # noqa: PLC0415  most programs need none

        return RemoteFiles(transport)
    from jpsi_engine.transfer.local_files import LocalFiles  # noqa: PLC0415

    return LocalFiles()
