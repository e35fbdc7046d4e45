"""Follows a page of the documentation as its reader would: writes its files, types its commands.

A page shows a file as a `{code-block}` whose `:caption:` is the path, and a session as a `console` block, in
which `$ ` stands before a command, `> ` before its further lines, and the rest is what it prints; `...` there
is anything. No test runs blocks of `text`. Any other block is an error, as no test would run it.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import attrs

from jpsi.contract.shell import line

_ROOT = Path(__file__).parents[3]
_INSTALLER = Path(__file__).with_name("page_installer.py")
_FENCE = re.compile(r"^(?P<fence>```+)(?P<kind>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE)
_CAPTION = re.compile(r"\A:caption: *(?P<path>\S+)\n(?::\S+:.*\n)*\n")
_COMMAND = re.compile(r"^\$ (?P<first>.*)(?P<more>(?:\n> .*)*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
# However busy the machine is: the longest is the whole conformance class.
_PATIENCE = 600
# Tests must not use a batch system of this host: a command that a page forgets to fake fails.
_HIDDEN = (
    *("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun"),
    *("qsub", "qstat", "qdel", "qhold", "qrls", "qacct", "qconf"),
    *("bsub", "bjobs", "flux", "docker", "ssh"),
)


class PageError(AssertionError):
    """A page does not do what it says."""


@attrs.frozen(slots=True)
class File:
    """A file that a page has its reader write."""

    line: int
    path: str
    text: str


@attrs.frozen(slots=True)
class Typed:
    """A command that a page has its reader type, and what it shows to be printed."""

    line: int
    command: str
    output: str


def steps(text: str) -> list[File | Typed]:
    """Return the steps of a page, in order.

    Raises:
        PageError: no test would run a block.
    """
    return [step for match in _FENCE.finditer(text) for step in _steps(match, text)]


def _steps(match: re.Match[str], text: str) -> Iterator[File | Typed]:
    kind, body = match["kind"].strip(), match["body"]
    at = text.count("\n", 0, match.start()) + 1
    if kind == "console":
        yield from _typed(body, at)
    elif kind.startswith("{code-block}"):
        caption = _CAPTION.match(body)
        if caption is None:
            msg = f"line {at}: the caption of the block must be the path of a file, and nothing else"
            raise PageError(msg)
        yield File(at, caption["path"], body[caption.end() :])
    elif kind != "text" and not kind.startswith("{toctree}"):
        msg = f"line {at}: no test runs a block of {kind or 'nothing'}"
        raise PageError(msg)


def _typed(body: str, at: int) -> Iterator[Typed]:
    if not body.startswith("$ "):
        msg = f"line {at}: a session begins with a command"
        raise PageError(msg)
    for match in _COMMAND.finditer(body):
        command = match["first"] + match["more"].replace("\n> ", "\n")
        yield Typed(at + 1 + body.count("\n", 0, match.start()), command, match["output"])


class Reader:
    """A reader of a page: a home directory, a root of a file system, and an environment to install into.

    Args:
        root: the directory that contains them.
        hidden: commands of the machine that the reader does not have.
        at_a_time: how many tests of a page are run at a time; 0 is one after the other, without xdist.
    """

    def __init__(self, root: Path, hidden: Collection[str] = _HIDDEN, at_a_time: int = 0) -> None:
        root.chmod(0o755)
        self._root = root
        #: What pages call some places, and where these are, the longest first.
        self._places = {
            "/home/me": root / "home/me",
            "/etc/xdg": root / "etc/xdg",
            "/opt/site": root / "opt/site",
        }
        for place in (*self._places.values(), root / "bin", root / "site"):
            place.mkdir(mode=0o755, parents=True)
        self._directory = self._places["/home/me"]
        self._state = root / "environment"
        self._state.touch()
        self._write_commands(hidden, at_a_time)

    def follow(self, text: str) -> None:
        """Do what a page says.

        Raises:
            PageError: something else came of it than the page shows.
        """
        for step in steps(text):
            if isinstance(step, File):
                self._write(step)
            else:
                self._type(step)

    def _write(self, file: File) -> None:
        path = self._directory / Path(self._real(file.path.replace("~", "/home/me")))
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.write_text(self._real(file.text))
        path.chmod(0o644)

    def _type(self, typed: Typed) -> None:
        if typed.command.startswith("jpsi ") and not shutil.which("jpsi", path=str(self._root / "bin")):
            return  # the command line is a package of its own
        state, directory = map(str, (self._state, self._root / "directory"))
        script = f"{line('.', state)}\n{self._real(typed.command)}\n"
        script += f"code=$?; export -p >{directory}.new; pwd -P >{directory}; exit $code"
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            check=False,
            cwd=self._directory,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            umask=0o022,
            text=True,
        )
        Path(f"{directory}.new").replace(self._state)
        self._directory = Path(Path(directory).read_text().rstrip("\n"))
        printed = self._shown(done.stdout)
        is_as_shown = doctest.OutputChecker().check_output(typed.output, printed, doctest.ELLIPSIS)
        if done.returncode != 0 or not is_as_shown:
            ended = f"ended with {done.returncode} and printed"
            msg = f"line {typed.line}: `{typed.command}` {ended}\n{printed}\nThe page shows\n{typed.output}"
            raise PageError(msg)

    def _environment(self) -> dict[str, str]:
        private = ("JPSI_", "XDG_", "PYTEST_", "COV_", "PYTHON")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(private)}
        return {
            **kept,
            "HOME": str(self._places["/home/me"]),
            "PATH": f"{self._root}/bin:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": f"{self._root}/site",
            "XDG_CONFIG_DIRS": str(self._places["/etc/xdg"]),
            "COLUMNS": "80",
        }

    def _real(self, text: str) -> str:
        for shown, place in self._places.items():
            text = text.replace(shown, str(place))
        return text

    def _shown(self, text: str) -> str:
        for shown, place in self._places.items():
            text = text.replace(str(place), shown)
        return text

    def _write_commands(self, hidden: Collection[str], at_a_time: int) -> None:
        """Link the commands of the environment of the tests that a reader has."""
        python = line(sys.executable)
        installer = line(sys.executable, str(_INSTALLER), str(_ROOT), str(self._root / "site"))
        options = f"-p no:cacheprovider -n {at_a_time}" if at_a_time else "-p no:cacheprovider"
        # A new environment would lack what the tests have; it is this one under another name.
        venv = '[ "$1 $2" != "-m venv" ] || { mkdir -p "$3/bin" && : >"$3/bin/activate"; exit; }'
        commands: Mapping[str, str] = {
            **dict.fromkeys(hidden, 'echo "${0##*/}: not faked by the page" >&2; exit 127'),
            "python3": f'{venv}\nexec {python} "$@"',
            "python": f'exec {python} "$@"',
            "pytest": f'exec {python} -m pytest {options} "$@"',
            "pip": f'exec {installer} "$@"',
        }
        if _has_command_line():
            commands = {**commands, "jpsi": f'exec {python} -m jpsi_cli "$@"'}
        for name, text in commands.items():
            path = self._root / "bin" / name
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)


def _has_command_line() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415  rarely needed

    return find_spec("jpsi_cli") is not None
