"""Probes of services, which find when they can be used, by `ready` in the document."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import attrs

from jpsi import JobFiles, JpsiError

from ..document import Ready
from ..run_store import Place

_SHORTEST_SECONDS = 0.1
_LONGEST_SECONDS = 5.0
# The timeouts of one probe.
_CONNECT_SECONDS = 5.0
_COMMAND_SECONDS = 60.0


def is_ready(place: Place, files: JobFiles) -> bool:
    """Return True if a service can be used now, by its probe.

    The probe looks for a file where jobs run. It connects, and runs a command, on this machine, with the
    environment and in the directory of the service.

    Args:
        place: a service with a probe.
        files: those of the host where the service runs.
    """
    ready = place.entry.ready or Ready()
    try:
        if ready.tcp is not None:
            host, _, port = ready.tcp.rpartition(":")
            with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS):
                return True
        if ready.file is not None:
            return files.read(_absolute(ready.file, place), 0, 1) is not None
        return not ready.command or _succeeds(place, ready)
    except (OSError, ValueError, OverflowError, JpsiError, subprocess.SubprocessError):
        # an impossible host name raises ValueError
        return False


def _absolute(path: str, place: Place) -> str:
    is_absolute = path.startswith(("/", "~/"))
    return path if is_absolute else f"{place.entry.attributes.cwd or '~'}/{path}"


def _succeeds(place: Place, ready: Ready) -> bool:
    given = {
        "JPSI_TASK": place.entry.id,
        "JPSI_REPLICA": str(place.replica),
        **place.entry.attributes.environment,
    }
    variables = {name: it for name, it in {**os.environ, **given}.items() if it is not None}
    done = subprocess.run(  # noqa: S603  what the document says
        list(ready.command),
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(place.entry.attributes.cwd or "~").expanduser(),
        env=variables,
        timeout=_COMMAND_SECONDS,
    )
    return done.returncode == 0


@attrs.define(slots=True, eq=False)
class _Probe:
    """The probe of one service, with a thread of its own."""

    place: Place
    is_over: threading.Event = attrs.field(factory=threading.Event)


class Probes:
    """The probes of services, each on a thread of its own, with growing pauses."""

    def __init__(self, files: Callable[[], JobFiles], told: Callable[[str], None]) -> None:
        """Prepare.

        Args:
            files: returns the files of the host where jobs run.
            told: called from a probe's thread with the id of a job whose service can be used.
        """
        self._files = files
        self._told = told
        self._probes: dict[str, _Probe] = {}

    def begin(self, job_id: str, place: Place) -> None:
        """Probe the service that a job runs, until it can be used; a second call does nothing."""
        if job_id not in self._probes:
            probe = self._probes[job_id] = _Probe(place)
            threading.Thread(target=self._run, args=(job_id, probe), name="jpsi-ready", daemon=True).start()

    def end(self, job_id: str) -> None:
        """Stop the probe of a job."""
        if job_id in self._probes:
            self._probes[job_id].is_over.set()

    def _run(self, job_id: str, probe: _Probe) -> None:
        pause = _SHORTEST_SECONDS
        while not probe.is_over.wait(pause):
            with contextlib.suppress(JpsiError):
                if is_ready(probe.place, self._files()):
                    self._told(job_id)
                    return
            pause = min(pause * 2, _LONGEST_SECONDS)
