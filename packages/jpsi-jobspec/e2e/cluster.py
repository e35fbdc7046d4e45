"""The programs of the language's larger examples, as far as they matter: the database serves, and is reached.

Each is this file under another name. `kubectl apply` starts the database, which goes on by itself, and
`kubectl delete` ends it; what trains saves its result there, what tests reads all results, and fails
without any. The database writes down what reaches it, in the order in which that comes.
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
    """Write what the documents apply into the home directory; return the port that the database will have."""
    with socket.create_server(("localhost", 0)) as free:
        port: int = free.getsockname()[1]
    for name in ("database", "task-queue"):
        (home / f"{name}.yaml").write_text(json.dumps({"port": port, "records": str(home / "records")}))
    (home / "database").write_text(f"http://localhost:{port}")
    return port


def records(home: Path) -> list[dict[str, Any]]:
    """Return what has reached the database, in its order."""
    return [json.loads(it) for it in (home / "records").read_text().splitlines()]


def _who(what: str) -> dict[str, Any]:
    """What this process is, and where it runs."""
    names = {
        "task": "JPSI_TASK",
        "replica": "JPSI_REPLICA",
        "rank": "SLURM_PROCID",
        "node": "SLURMD_NODENAME",
        "job": "SLURM_JOB_ID",
        "gpus": "CUDA_VISIBLE_DEVICES",
    }
    return {"what": what, **{key: os.environ.get(name, "") for key, name in names.items()}}


def _ask(host: str, message: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Tell the database something, or nothing; return what it has."""
    data = None if message is None else json.dumps(message).encode()
    with urllib.request.urlopen(host, data, timeout=_PATIENCE) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


class _Database(BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    records: Path
    lock = Lock()

    def do_GET(self) -> None:
        """Answer with all that there is."""
        text = self.records.read_text().splitlines()
        self._answer(f"[{','.join(text)}]")

    def do_POST(self) -> None:
        """Keep what is sent."""
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with self.lock, self.records.open("a") as file:
            file.write(f"{text}\n")
        self._answer("[]")

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self, text: str) -> None:
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
        _ask(host, _who("stop"))
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
            _ask(host, _who("start"))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def main(name: str, words: list[str]) -> None:
    """Be the program of this name."""
    match name, words:
        case "kubectl", ["serve", port, file]:
            _serve(int(port), file)
        case "kubectl", [action, "-f", file]:
            _kubectl(action, file)
        case "ml-train", ["...", "-o", file]:
            # several write the same one
            draft = Path(f"{file}.{socket.gethostname()}.{os.getpid()}")
            draft.write_text(json.dumps(_who("train")))
            draft.rename(file)
        case "compspec", ["save-artifact", file, "--host", host]:
            _ask(host, {**_who("saved"), "of": json.loads(Path(file).read_text())["task"]})
        case "ml-test", ["-o", _, "--host", host]:
            saved = [it for it in _ask(host) if it["what"] == "saved"]
            _ask(host, {**_who("tested"), "saved": len(saved)})
            sys.exit(0 if saved else 1)
        case (("machine" | "munch"), _):
            _ask(Path.home().joinpath("database").read_text(), _who(name))
        case _:
            sys.exit(2)


if __name__ == "__main__":
    main(Path(sys.argv[0]).name, sys.argv[1:])
