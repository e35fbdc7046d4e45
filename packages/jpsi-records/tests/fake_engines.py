"""Fakes of the programs that start containers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from jpsi_records.jobs.containers import ENGINES
from jpsi_records.model.request_spec import RequestSpec, read_request_spec

DIGEST = "sha256:" + "5" * 64
IMAGE = f"docker.io/library/debian@{DIGEST}"

#: Puts the fake of an engine on PATH; returns the folder.
InstallEngine = Callable[[str], Path]

#: The fake of an engine: it runs the command below a directory with links to the mounts, not at the root.
FAKE_ENGINE = """\
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
        mount = dict(it.partition("=")[::2] for it in next(csv.reader([words.pop(0)])))
        target = root + mount["target"]
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(mount["source"], target)
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
# A command's absolute paths are below that directory.
command = [it.replace(" /", f" {root}/") for it in command]
sys.exit(subprocess.run(command, env=environment, cwd=root).returncode)
"""


def container_spec(*command: str, **more: object) -> RequestSpec:
    """Return the spec of a command in a container."""
    document = {"container_image": IMAGE, "cwd": "/", **({"command": list(command)} if command else {})}
    return read_request_spec(document | more)


def path_without_engines(path: str, folder: Path) -> str:
    """Return a PATH with all programs except the engines of this machine."""
    path_entries = [str(folder)]
    for place in path.split(os.pathsep):
        if not any(Path(place, name).exists() for name in ENGINES):
            path_entries.append(place)
            continue
        for program in Path(place).iterdir():
            beside = folder / program.name
            if program.name not in ENGINES and not beside.exists():
                beside.symlink_to(program)
    return os.pathsep.join(path_entries)
