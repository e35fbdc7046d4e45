"""Implements `jpsi convert`: makes a job document from a submit script written for a batch system."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import jpsi
from jpsi.plugin import install_command, line

from .. import messages


def convert(file: str, arguments: Sequence[str], *, executor: str | None, as_json: bool) -> int:
    """Write the document, report what it leaves out, and return the exit code."""
    path = Path(file).absolute()
    text = _text(path, file)
    try:
        found = jpsi.read_script(text, path, Path.cwd(), executor)
    except jpsi.InvalidJobException as e:
        msg = f"{e}{_advise_package(text, executor)}"
        raise jpsi.InvalidJobException(msg, e) from e
    found.spec.arguments = [*(found.spec.arguments or ()), *map(jpsi.escape, arguments)]
    try:
        document = jpsi.write_document(found.spec, as_json=as_json)
    except jpsi.InvalidJobException as e:
        # without its problems, which would be shown as those of a command's options
        raise jpsi.InvalidJobException(f"{file}: {'; '.join(e.problems)}", e) from e
    for sentence in _conversion_warnings(found):
        messages.warning(sentence)
    if as_json:
        content = {
            "executor": found.executor,
            "others": list(found.others),
            "document": json.loads(document),
            "lost": list(found.lost),
        }
        messages.show_json(content)
    else:
        messages.show(document)
    return 0


def _text(path: Path, file: str) -> str:
    if file == "-":
        # the document names the script, which has to be there when the job runs
        msg = "a script has to be a file, not standard input: the job runs it"
        raise jpsi.InvalidJobException(msg)
    try:
        content = path.read_bytes()
    except OSError as e:
        msg = f"{file} cannot be read: {e.strerror}"
        raise jpsi.InvalidJobException(msg, e) from e
    if b"\r\n" in content:
        # sbatch refuses such scripts as well
        why = f"{file} has Windows line ends, which a shell takes for parts of its words"
        raise jpsi.InvalidJobException(f"{why}: {line('dos2unix', file)}")
    # a script need not be UTF-8, but its directives are
    return content.decode(errors="replace")


# The packages of batch systems by the marks of their directives.
_PACKAGES = {
    "#SBATCH": "jpsi-slurm",
    "#PBS": "jpsi-pbs",
    "#BSUB": "jpsi-lsf",
    "#$": "jpsi-gridengine",
    "# flux:": "jpsi-flux",
    "#flux:": "jpsi-flux",
    "#OAR": "jpsi-oar",
}


def _advise_package(text: str, executor: str | None) -> str:
    """Return which package to install, as it reads the directives of a script; empty if there is none."""
    if executor is not None:
        return ""
    installed = {it.distribution for it in jpsi.plugins()}
    missing = {mark: package for mark, package in _PACKAGES.items() if package not in installed}
    lines = text.splitlines()
    mark = next((mark for mark in missing if any(it.startswith(f"{mark} ") for it in lines)), None)
    if mark is None:
        return ""
    package = missing[mark]
    return f"; those with {mark} are read by the package {package}; try: {install_command(package)}"


def _conversion_warnings(found: jpsi.Conversion) -> Iterator[str]:
    """Yield warnings: what the document cannot express, and other executors that the script may be for."""
    if found.others:
        others = " or ".join(f"-x {name}" for name in found.others)
        yield f"jpsi reads it as a script for {found.executor}; {others} reads it differently"
    yield from found.lost
