"""Stand-ins for the programs that start containers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from jpsi_records.jobs.containers import ENGINES
from jpsi_records.model.request_spec import RequestSpec, read_request_spec

DIGEST = "sha256:" + "5" * 64
IMAGE = f"docker.io/library/debian@{DIGEST}"

#: Puts the stand-in for an engine on PATH; returns the folder.
OnPath = Callable[[str], Path]

#: Plays an engine: it runs the command, for which a directory with links to the mounts is the root.
STAND_IN = """\
#!/usr/bin/env python3
import csv, json, os, subprocess, sys

words, root = sys.argv[1:], os.environ["STAND_IN_ROOT"]
os.makedirs(root)
environment = {"PATH": os.environ["PATH"]}
for name, value in os.environ.items():
    if name.startswith("APPTAINERENV_"):
        environment[name.removeprefix("APPTAINERENV_")] = value
command = []
while words:
    word = words.pop(0)
    if word == "--mount":
        told = dict(it.partition("=")[::2] for it in next(csv.reader([words.pop(0)])))
        target = root + told["target"]
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(told["source"], target)
    elif word == "--env":
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    elif word == "--entrypoint":
        given = words.pop(0)
        command = json.loads(given) if given.startswith("[") else [given]
    elif word in {"--workdir", "--pwd", "--user"}:
        words.pop(0)
    elif "@sha256:" in word:
        command += words
        words = []
# A program finds its places at the root; here below it.
command = [it.replace(" /", f" {root}/") for it in command]
sys.exit(subprocess.run(command, env=environment, cwd=root).returncode)
"""


def contained(*command: str, **more: object) -> RequestSpec:
    """A wish for a command in a container."""
    document = {"container_image": IMAGE, "cwd": "/", **({"command": list(command)} if command else {})}
    return read_request_spec(document | more)


def without_engines(path: str, folder: Path) -> str:
    """A PATH on which all programs are but the engines of this machine."""
    kept = [str(folder)]
    for place in path.split(os.pathsep):
        if not any(Path(place, name).exists() for name in ENGINES):
            kept.append(place)
            continue
        for program in Path(place).iterdir():
            beside = folder / program.name
            if program.name not in ENGINES and not beside.exists():
                beside.symlink_to(program)
    return os.pathsep.join(kept)
