"""Runs a kernel on its node: finds ports, starts the kernel, passes signals on, and ends it without a client.

This text is a program that travels with the job, and runs on any Python from 3.8 on:

    launcher HOST SECONDS COMMAND...

HOST is the address that the kernel listens on, empty for all of the node. The key of the connection is in
the environment; the connection file is private. The first line of the output tells the address and the ports.
A client connects to the last port, answers a challenge by the key, and sends numbers of signals, a line each.
The kernel ends when its client has been gone for SECONDS.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import pathlib
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
FORM = {"transport": "tcp", "signature_scheme": "hmac-sha256"}
KEY = "JPSI_KERNEL_KEY"
ANNOUNCEMENT = "jpsi-kernel "
# Signs nothing that could be a message of Jupyter.
CHALLENGE = "jpsi-kernel-control "
_SECONDS_TO_END = 5
_INTERVAL = 0.2


def response(key: str, challenge: str) -> str:
    """Return the proof that a client knows the key."""
    return hmac.new(key.encode(), (CHALLENGE + challenge).encode(), "sha256").hexdigest()


def main(host: str, seconds: str, *command: str) -> int:
    """Run the kernel; return its exit code, 128 + n after signal n."""
    key = os.environ.pop(KEY)
    bound = host or "0.0.0.0"  # noqa: S104  a client without the key is refused
    folder = tempfile.mkdtemp(prefix="jpsi-kernel-")
    try:
        listener, *others = [socket.create_server((bound, 0)) for _ in range(1 + len(PORTS))]
        ports = {name: it.getsockname()[1] for name, it in zip(PORTS, others)}  # noqa: B905  Python 3.8
        info = {"ip": bound, **ports, "key": key, **FORM}
        path = pathlib.Path(folder, "kernel.json")
        path.touch(0o600)
        path.write_text(json.dumps(info), encoding="utf-8")
        for it in others:
            it.close()
        shown = {**ports, "ip": host or socket.gethostname(), "launcher_port": listener.getsockname()[1]}
        print(ANNOUNCEMENT + json.dumps(shown), flush=True)  # noqa: T201  the provisioner reads it
        words = [it.replace("{connection_file}", str(path)) for it in command]
        # a kernel of Python ends with the process that this variable names
        os.environ["JPY_PARENT_PID"] = str(os.getpid())
        kernel = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603  the user's
        return _Watch(listener, key, kernel).run(float(seconds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Watch:
    """The kernel, and the connection of its client."""

    def __init__(self, listener: socket.socket, key: str, kernel: subprocess.Popen[bytes]) -> None:
        self._listener = listener
        self._key = key
        self._kernel = kernel
        self._client: socket.socket | None = None
        self._lost = time.monotonic() + 60  # the first connection takes some time
        self._is_ending = False
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "_is_ending", True))

    def run(self, seconds: float) -> int:
        """Return the exit code of the kernel, which ends when it has had no client for so long."""
        while self._kernel.poll() is None and not self._is_ending:
            sockets = [self._listener] + ([self._client] if self._client else [])
            for it in select.select(sockets, [], [], _INTERVAL)[0]:
                (self._accept if it is self._listener else self._read)(it)
            if self._client is None and time.monotonic() > self._lost + seconds:
                print(f"no client for {seconds:.0f} s: the kernel ends", file=sys.stderr)  # noqa: T201
                break
        return self._end()

    def _accept(self, listener: socket.socket) -> None:
        client, _ = listener.accept()
        client.settimeout(_SECONDS_TO_END)
        challenge = secrets.token_hex(16)
        try:
            client.sendall(challenge.encode() + b"\n")
            answer = client.recv(100).strip()
        except OSError:
            answer = b""
        if hmac.compare_digest(answer, response(self._key, challenge).encode()):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            # or else a client whose machine has lost the network would be missed after hours
            for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
                client.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
            self._client = client
        else:
            client.close()

    def _read(self, client: socket.socket) -> None:
        try:
            numbers = client.recv(4096).split()
        except OSError:
            numbers = []
        for number in numbers:
            self._send_signal(int(number))
        if not numbers:
            client.close()
            self._client, self._lost = None, time.monotonic()

    def _send_signal(self, number: int) -> None:
        # it may have ended meanwhile
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._kernel.pid, number)

    def _end(self) -> int:
        """End the kernel, if it has not ended; return its exit code."""
        if self._kernel.poll() is None:
            self._send_signal(signal.SIGTERM)
        try:
            code = self._kernel.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._send_signal(signal.SIGKILL)
            code = self._kernel.wait()
        return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
