"""Fakes of the programs of the larger examples, among them a real database server.

Each program is this file under another name. `kubectl apply` starts the database in the background, and
`kubectl delete` stops it. The training program stores its result there; the test program reads all results,
and fails if there are none. The database records its requests in the order in which they arrive.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

_NAMES = ("kubectl", "ml-train", "ml-test", "compspec", "machine", "munch")
_PATIENCE = 30.0


def install(folder: Path) -> None:
    """Put the programs into a folder."""
    for name in _NAMES:
        path = folder / name
        path.write_text(f"#!{sys.executable}\n{Path(__file__).read_text()}")
        path.chmod(0o755)


def configure(home: Path) -> int:
    """Write the files that the documents apply into the home directory; return the database's future port."""
    with socket.create_server(("localhost", 0)) as free:
        port: int = free.getsockname()[1]
    for name in ("database", "task-queue"):
        (home / f"{name}.yaml").write_text(json.dumps({"port": port, "records": str(home / "records")}))
    (home / "database").write_text(f"http://localhost:{port}")
    return port


def records(home: Path) -> list[dict[str, Any]]:
    """Return the requests to the database, in order."""
    return [json.loads(it) for it in (home / "records").read_text().splitlines()]


def _identity(what: str) -> dict[str, Any]:
    """Return the identity of this process, and its node."""
    names = {
        "task": "JPSI_TASK",
        "replica": "JPSI_REPLICA",
        "rank": "SLURM_PROCID",
        "node": "SLURMD_NODENAME",
        "job": "SLURM_JOB_ID",
        "gpus": "CUDA_VISIBLE_DEVICES",
    }
    return {"what": what, **{key: os.environ.get(name, "") for key, name in names.items()}}


def _send(host: str, message: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Send a message, or none, to the database; return its records."""
    data = None if message is None else json.dumps(message).encode()
    with urllib.request.urlopen(host, data, timeout=_PATIENCE) as response:
        found: list[dict[str, Any]] = json.load(response)
    return found


class _Database(BaseHTTPRequestHandler):
    """A server that stores what it is sent."""

    records: Path
    lock = Lock()

    def do_GET(self) -> None:
        """Send all records."""
        text = self.records.read_text().splitlines()
        self._respond(f"[{','.join(text)}]")

    def do_POST(self) -> None:
        """Store the message."""
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with self.lock, self.records.open("a") as file:
            file.write(f"{text}\n")
        self._respond("[]")

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _respond(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())


def _serve(port: int, records: str) -> None:
    _Database.records = Path(records)
    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer(("localhost", port), _Database).serve_forever()


def _kubectl(action: str, file: str) -> None:
    path = Path(file)
    config = json.loads(path.read_text())
    host, pid = f"http://localhost:{config['port']}", path.with_suffix(".pid")
    if action == "delete":
        _send(host, _identity("stop"))
        os.kill(int(pid.read_text()), signal.SIGTERM)
        return
    Path(config["records"]).touch()
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", str(config["port"]), config["records"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    pid.write_text(str(server.pid))
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            _send(host, _identity("start"))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def main(name: str, words: list[str]) -> None:
    """Run the program of this name."""
    match name, words:
        case "kubectl", ["serve", port, file]:
            _serve(int(port), file)
        case "kubectl", [action, "-f", file]:
            _kubectl(action, file)
        case "ml-train", ["...", "-o", file]:
            # several processes write the same file
            draft = Path(f"{file}.{socket.gethostname()}.{os.getpid()}")
            draft.write_text(json.dumps(_identity("train")))
            draft.rename(file)
        case "compspec", ["save-artifact", file, "--host", host]:
            _send(host, {**_identity("saved"), "of": json.loads(Path(file).read_text())["task"]})
        case "ml-test", ["-o", _, "--host", host]:
            saved = [it for it in _send(host) if it["what"] == "saved"]
            _send(host, {**_identity("tested"), "saved": len(saved)})
            sys.exit(0 if saved else 1)
        case (("machine" | "munch"), _):
            _send(Path.home().joinpath("database").read_text(), _identity(name))
        case _:
            sys.exit(2)


if __name__ == "__main__":
    main(Path(sys.argv[0]).name, sys.argv[1:])
