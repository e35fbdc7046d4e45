"""The engine `batch`: the hooks by which jpsi-core gets its engines. Each hook imports what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jpsi.plugin import hookimpl
from jpsi_engine import host, local, transfer

if TYPE_CHECKING:
    from jpsi import JobFiles
    from jpsi.plugin import ExecutorHooks, Transport
    from jpsi.plugin.engine import Engine, EngineSetup


@hookimpl
def local_transport() -> Transport:
    """Return the transport that runs commands on this machine."""
    return host.LocalTransport()


@hookimpl
def batch_engine(setup: EngineSetup, hooks: ExecutorHooks) -> Engine:
    """Return the engine of an executor whose backend works by command lines."""
    from jpsi_engine.batch import BatchEngine  # noqa: PLC0415

    return BatchEngine(setup, hooks)


@hookimpl
def process_engine(setup: EngineSetup) -> Engine:
    """Return the engine for processes of this machine."""
    return local.LocalEngine(setup)


@hookimpl
def open_files(transport: Transport) -> JobFiles:
    """Return the files of the machine on which the commands of a transport run."""
    return transfer.open_job_files(transport)
