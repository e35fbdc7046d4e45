"""The connection to a kernel's launcher: keeps the kernel alive, and sends it signals."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence

from .kernel_launcher import response

_PATIENCE = 30.0
_INTERVAL = 0.1
# A connection that hangs ends after three of these, and a tunnel that cannot listen does not stay.
_OPTIONS = ("-oBatchMode=yes", "-oExitOnForwardFailure=yes", "-oServerAliveInterval=15")


def tunnel_command(url: str, host: str, ports: Mapping[int, int]) -> Sequence[str]:
    """Return the command that forwards ports of this machine to those of a host that ssh's host sees.

    >>> " ".join(tunnel_command("ssh://me@login", "node7", {4000: 5000})[-3:])
    '-L 127.0.0.1:4000:[node7]:5000 ssh://me@login'
    """
    ways = [f"127.0.0.1:{here}:[{host}]:{there}" for here, there in ports.items()]
    return ["ssh", "-N", "-T", *_OPTIONS, *(word for way in ways for word in ("-L", way)), url]


class KernelConnection:
    """A connection to the launcher of a kernel.

    Args:
        host: the node.
        ports: the ports of the kernel and of its launcher, by name.
        key: the key of the kernel's connection.
        url: the host that leads to the node, such as ssh://me@login.example; None if this machine does.

    Raises:
        OSError: there is no launcher at that port, or ssh does not lead there.
    """

    def __init__(self, host: str, ports: Mapping[str, int], key: str, url: str | None) -> None:
        #: The address of the kernel for this machine.
        self.host = host
        #: The ports for this machine, by name.
        self.ports = ports
        self._tunnel: subprocess.Popen[bytes] | None = None
        if url is not None:
            self.host, self.ports = "127.0.0.1", dict(zip(ports, _free_ports(len(ports)), strict=True))
            forwarded = dict(zip(self.ports.values(), ports.values(), strict=True))
            self._tunnel = subprocess.Popen(tunnel_command(url, host, forwarded), stdin=subprocess.DEVNULL)  # noqa: S603  ssh
        self._socket = self._open(key)

    def send_signal(self, number: int) -> None:
        """Send a signal to the kernel and its processes.

        Raises:
            OSError: the connection broke.
        """
        self._socket.sendall(b"%d\n" % number)

    def close(self) -> None:
        """Close the connection; the kernel ends some time later."""
        self._socket.close()
        self._close_tunnel()

    def _open(self, key: str) -> socket.socket:
        """Connect to the launcher, once the tunnel is there."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return _greet((self.host, self.ports["launcher_port"]), key)
            except OSError:
                is_waiting = self._tunnel is not None and self._tunnel.poll() is None
                if not is_waiting or time.monotonic() > deadline:
                    self._close_tunnel()
                    raise
            time.sleep(_INTERVAL)

    def _close_tunnel(self) -> None:
        if self._tunnel is not None:
            self._tunnel.terminate()
            self._tunnel.wait()


def _greet(address: tuple[str, int], key: str) -> socket.socket:
    """Connect to a launcher, and prove that this is the client of the kernel."""
    connected = socket.create_connection(address, _PATIENCE)
    challenge = connected.recv(100).decode().strip()
    if not challenge:
        connected.close()
        raise ConnectionError(f"no kernel's launcher at {address[0]}, port {address[1]}")
    connected.sendall(response(key, challenge).encode() + b"\n")
    return connected


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [it.getsockname()[1] for it in sockets]
