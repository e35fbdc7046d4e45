"""Probes services until they can be used, as `ready` in the document says.

The driver uses it: tasks that need a service start once its probe has succeeded.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from jpsi import JobFiles, JpsiError

from ..document import Ready
from ..run_store import Part

_SHORTEST_SECONDS = 0.1
_LONGEST_SECONDS = 5.0
# The timeouts of one probe.
_CONNECT_SECONDS = 5.0
_COMMAND_SECONDS = 60.0


def is_ready(part: Part, files: JobFiles) -> bool:
    """Return True if a service can be used now, by its probe.

    The probe looks for a file where jobs run. It connects, and runs a command, on this machine, with the
    environment and in the directory of the service.

    Args:
        part: a service with a probe.
        files: those of the host where the service runs.
    """
    ready = part.entry.ready or Ready()
    try:
        if ready.tcp is not None:
            host, _, port = ready.tcp.rpartition(":")
            with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS):
                return True
        if ready.file is not None:
            return files.read(_absolute_path(ready.file, part), 0, 1) is not None
        return not ready.command or _run_command(part, ready)
    except (OSError, ValueError, OverflowError, JpsiError, subprocess.SubprocessError):
        # an impossible host name raises ValueError
        return False


def _absolute_path(path: str, part: Part) -> str:
    is_absolute = path.startswith(("/", "~/"))
    return path if is_absolute else f"{part.entry.attributes.cwd or '~'}/{path}"


def _run_command(part: Part, ready: Ready) -> bool:
    job_variables = {
        "JPSI_TASK": part.entry.id,
        "JPSI_REPLICA": str(part.replica),
        **part.entry.attributes.environment,
    }
    variables = {name: it for name, it in {**os.environ, **job_variables}.items() if it is not None}
    completed = subprocess.run(  # noqa: S603  what the document says
        list(ready.command),
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(part.entry.attributes.cwd or "~").expanduser(),
        env=variables,
        timeout=_COMMAND_SECONDS,
    )
    return completed.returncode == 0


class Probes:
    """The probes of services, each on a thread of its own, with growing pauses."""

    def __init__(self, files: Callable[[], JobFiles], on_ready: Callable[[str], None]) -> None:
        """Prepare.

        Args:
            files: returns the files of the host where jobs run.
            on_ready: called from a probe's thread with the id of a job whose service can be used.
        """
        self._files = files
        self._on_ready = on_ready
        self._ends: dict[str, threading.Event] = {}

    def begin(self, job_id: str, part: Part) -> None:
        """Probe the service that a job runs, until it can be used; a second call does nothing."""
        if job_id not in self._ends:
            is_over = self._ends[job_id] = threading.Event()
            arguments = (job_id, part, is_over)
            threading.Thread(target=self._run, args=arguments, name="jpsi-probe", daemon=True).start()

    def end(self, job_id: str) -> None:
        """Stop the probe of a job."""
        if job_id in self._ends:
            self._ends[job_id].set()

    def _run(self, job_id: str, part: Part, is_over: threading.Event) -> None:
        delay = _SHORTEST_SECONDS
        while not is_over.wait(delay):
            with contextlib.suppress(JpsiError):
                if is_ready(part, self._files()):
                    self._on_ready(job_id)
                    return
            delay = min(delay * 2, _LONGEST_SECONDS)
