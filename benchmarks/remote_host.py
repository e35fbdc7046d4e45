"""A simulated remote host: this machine behind the sshd of ci/sshd, which has a user of its own."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs

from benchmarks.side_by_side import has

_CI = Path(__file__).parent.parent / "ci/sshd"
_STATE = Path("/var/lib/jpsi-ci-sshd")
_RUNS = Path("/run/jpsi-ci-sshd.pid")
_USER, _PORT = "jpsi-ci", 2222
_HOST = "cluster"
_MEMORY_FILE_SYSTEM = Path("/dev/shm")  # noqa: S108
_CONFIG = """\
Host {host}
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {key}
  IdentitiesOnly yes
  HostKeyAlias {host}
  UserKnownHostsFile {known}
"""


@attrs.frozen(slots=True)
class RemoteHost:
    """The url of the remote host, and a directory on it in which jpsi may work."""

    url: str
    work_directory: str


def skip_reason() -> str:
    """Return why there can be no remote host; an empty text if there can."""
    if os.geteuid() != 0:
        return "ci/sshd/up starts an sshd, which takes root"
    return "" if has("jpsi-ssh") else "jpsi-ssh is not installed"


@contextlib.contextmanager
def remote_host() -> Iterator[RemoteHost]:
    """Run the sshd within the block, and let `ssh` on PATH know it, whatever is in ~/.ssh."""
    was_up = _RUNS.exists()
    subprocess.run([_CI / "up"], check=True, stdout=sys.stderr)
    before = {name: os.environ.get(name) for name in ("PATH", "XDG_RUNTIME_DIR")}
    memory = _MEMORY_FILE_SYSTEM if _MEMORY_FILE_SYSTEM.is_dir() else None
    try:
        # a socket's path must be short
        with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory(dir=memory) as work:
            _write_client(Path(place))
            os.environ |= {"PATH": f"{place}:{before['PATH']}", "XDG_RUNTIME_DIR": place}
            user = pwd.getpwnam(_USER)
            os.chown(work, user.pw_uid, user.pw_gid)
            try:
                yield RemoteHost(f"ssh://{_HOST}", work)
            finally:
                _close_connection(Path(place))
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if not was_up:
            subprocess.run([_CI / "down"], check=True)


def _write_client(place: Path) -> None:
    """Write an `ssh` command that knows only this remote host."""
    kind, key = (_STATE / "host.pub").read_text(encoding="ascii").split()[:2]
    known, config, client = place / "known_hosts", place / "config", place / "ssh"
    known.write_text(f"{_HOST} {kind} {key}\n", encoding="ascii")
    settings = {"host": _HOST, "port": _PORT, "user": _USER, "key": _STATE / "client", "known": known}
    config.write_text(_CONFIG.format(**settings), encoding="ascii")
    client.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n', encoding="ascii")
    client.chmod(0o755)


def _close_connection(place: Path) -> None:
    for socket in place.glob("jpsi-ssh/*.?"):
        command = ["ssh", "-O", "exit", "-S", str(socket), _HOST]
        subprocess.run(command, capture_output=True, check=False)
