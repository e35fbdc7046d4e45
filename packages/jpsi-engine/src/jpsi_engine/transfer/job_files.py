"""The files of the side on which jobs run, by the transport that leads there."""

from __future__ import annotations

from jpsi import JobFiles
from jpsi.plugin import BytesTransport, Transport


def open_job_files(transport: Transport) -> JobFiles:
    """The files of the side on which the commands of a transport run.

    A transport that says nothing of files runs commands that see those of this machine.
    """
    if not transport.is_local and isinstance(transport, BytesTransport):
        from jpsi_engine.transfer.remote_files import FarFiles  # noqa: PLC0415  most programs need none

        return FarFiles(transport)
    from jpsi_engine.transfer.local_files import FilesHere  # noqa: PLC0415

    return FilesHere()
