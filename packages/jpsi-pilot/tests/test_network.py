"""The ports of agents and pilots, which require a certificate."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from jpsi import Job, JobExecutor, JobState
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.network.certificates import Authority
from jpsi_testing.conformance.base import Gate
from pilot_support import agent_pid, end_agent, processes


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of an agent with a running job."""
    config = PilotConfig(work_directory=tmp_path / "work", kill_delay=timedelta(seconds=0.5))
    with JobExecutor.get_instance("pilot", config=config) as executor:
        job = Job(Gate(tmp_path / "never").job())
        executor.submit(job)
        assert job.wait(60, target_states=JobState.ACTIVE)
        yield tmp_path / "work" / "pilots"
    end_agent(tmp_path / "work" / "pilots")


def listening_ports(process: psutil.Process) -> set[int]:
    """Return the ports of a process."""
    found = process.net_connections("inet")
    return {it.laddr.port for it in found if it.status == psutil.CONN_LISTEN}


def is_refused(port: int, context: ssl.SSLContext | None) -> bool:
    """Return True if such a connection gets no data from dask."""
    with socket.create_connection(("localhost", port), timeout=20) as plain:
        try:
            if context is None:
                plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return b"HTTP" not in plain.recv(100)
            with context.wrap_socket(plain) as secure:
                return secure.recv(100) == b""
        except (ssl.SSLError, ConnectionError):
            return True


def test_a_connection_without_a_certificate_of_the_agent_is_refused(folder: Path, tmp_path: Path) -> None:
    (worker,) = processes(folder, "jpsi_pilot.dask.worker")
    ports = [listening_ports(psutil.Process(agent_pid(folder))), listening_ports(worker)]
    assert [len(it) for it in ports] == [1, 1], "one port each"
    no_certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    no_certificate.check_hostname, no_certificate.verify_mode = False, ssl.CERT_NONE
    foreign = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    foreign.check_hostname, foreign.verify_mode = False, ssl.CERT_NONE
    own = tmp_path / "stranger"
    own.mkdir()
    Authority().write(own, "stranger")
    foreign.load_cert_chain(own / "certificate.pem", own / "key.pem")

    for port in set.union(*ports):
        for context in (None, no_certificate, foreign):
            assert is_refused(port, context), (port, context)


def test_a_pilot_has_a_key_of_its_own_that_only_the_user_reads(folder: Path) -> None:
    (pilot,) = (folder / "pilots").iterdir()

    assert (pilot / "key.pem").read_bytes() != (folder / "dask" / "key.pem").read_bytes()
    for private in (pilot, folder / "dask"):
        assert {(it.stat().st_mode & 0o077) for it in private.glob("*.pem")} == {0}
        assert private.stat().st_mode & 0o077 == 0
