"""Makes distributions: laid out in a directory as an installer does it, or as real wheels."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path


def metadata(name: str, version: str, requires: Iterable[str] = ()) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    return "\n".join([*lines, "", "A description.", ""])


def entry_points(groups: Mapping[str, Mapping[str, str]]) -> str:
    lines = []
    for group, names in groups.items():
        lines += [f"[jpsi.{group}]", *(f"{name} = {value}" for name, value in names.items()), ""]
    return "\n".join(lines)


def lay(
    directory: Path,
    name: str = "my-plugin",
    version: str = "1.2",
    *,
    files: Mapping[str, str] | None = None,
    requires: Iterable[str] = (),
    **groups: Mapping[str, str],
) -> None:
    """Write a distribution into a directory; `executors={"mine": "module"}` is a group of entry points."""
    info = directory / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(metadata(name, version, requires))
    (info / "entry_points.txt").write_text(entry_points(groups))
    for file, text in (files or {}).items():
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).write_text(text)
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files or {}))


def wheel(
    directory: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, str],
    requires: Iterable[str] = (),
    **groups: Mapping[str, str],
) -> Path:
    """Build a wheel (PEP 427)."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    contents = {
        **files,
        f"{info}/METADATA": metadata(name, version, requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": entry_points(groups),
    }
    record = "".join(f"{file},{_digest(text)},{len(text.encode())}\n" for file, text in contents.items())
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    path = directory / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in contents.items():
            archive.writestr(file, text)
    return path


def _digest(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def install(targets: Mapping[Path, Iterable[Path]]) -> None:
    """Install wheels with `pip install --target`, side by side, since pip takes its time to start."""
    command = [sys.executable, "-m", "pip", "-q", "--isolated", "--disable-pip-version-check", "install"]
    command += ["--no-deps", "--no-index", "--no-compile", "--root-user-action=ignore"]
    running = [
        subprocess.Popen(
            [*command, "--target", str(target), *map(str, wheels)], stderr=subprocess.PIPE, text=True
        )
        for target, wheels in targets.items()
    ]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
