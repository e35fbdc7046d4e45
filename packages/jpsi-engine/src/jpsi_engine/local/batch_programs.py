"""Carries out the script of a batch job without a shell, where the shell would only start a program.

A batch system of jpsi's own, such as that of pilots, uses it on the node of the job. A small process starts
the programs (`job_starter`), so that no end is lost if the process that uses this is killed. It guesses
nothing about the script: the files must be, letter by letter, those that `runner` renders for such a program.
All other jobs have a shell, and so has a job that is started again, or that cannot be started as it is: the
shell then leaves the markers that say why.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from jpsi.plugin import Arrays, Capabilities, JpsiError, Script, ShellLine
from jpsi.plugin.engine import serialization
from jpsi.plugin.kit import SIGNALS
from jpsi_engine.local.exits import Exit
from jpsi_engine.local.programs import Program, program_of
from jpsi_engine.local.starter import ProgramEnd, ProgramFiles, StartedProgram, Starter, StarterLostError
from jpsi_engine.runner import (
    NODEFILES,
    BatchFrame,
    ElementFrame,
    Frame,
    RequeueRules,
    Run,
    element_text,
    render_array_runner,
    render_runner,
    run_line,
)
from jpsi_engine.spool import BLOCK, ArrayFiles, ArrayMember, Layout, attempt_file
from jpsi_engine.verdict import NODES, RAN, SETUP_CODE, SHELL, SIGNAL_BASE

_SHELL = ["/bin/sh"]
_LAUNCH = [ShellLine('exec "$@"')]
# The lines by which a job of one process learns the name of its node, if the backend has no others.
_NODES = [
    ShellLine("{ read -r node </proc/sys/kernel/hostname; } 2>/dev/null || node=$(uname -n) || exit"),
    *(ShellLine(it) for it in ("left=1", "while [ $left -gt 0 ]; do", '  echo "$node"')),
    *(ShellLine(it) for it in ("  left=$((left - 1))", "done")),
]
# The exceptions for files that are missing or damaged, or that another version has written.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, JpsiError)
# The signals of which a runner leaves a marker.
_MARKED = frozenset(signal.Signals[f"SIG{it}"] for it in SIGNALS)
# The marker of a script whose shell is missing.
_NO_SHELL = f"exit.{SHELL}.{SETUP_CODE}"


class ProgramLostError(JpsiError):
    """The process that starts programs is gone; it may have started this one, which is not followed."""


class RunningProgram:
    """The program of a batch job, which runs or has ended. Any thread may call its methods.

    The process that has started it leaves the markers of its end. If that process is gone, this one does, if
    the kernel tells how the program has ended.
    """

    def __init__(self, started: StartedProgram, mark: str) -> None:
        #: The pid of the program, which leads a session.
        self.pid = started.process.pid
        #: Its start time, as proc(5) counts it; 0 if that is not known.
        self.start_time = started.process.start
        #: The exit code once it has ended, or -n after signal n; None if it is not known.
        self.returncode: int | None = None
        #: See `exits.Sink`.
        self.events = mark.rpartition("/")[0]
        self._started = started
        self._mark = mark
        self._is_ending = False
        self._ended = threading.Event()

    @property
    def has_ended(self) -> bool:
        """True once it has ended."""
        return self._ended.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, but no longer than this; return True if it has."""
        return self._ended.wait(None if seconds is None else min(seconds, threading.TIMEOUT_MAX))

    def begin(self) -> None:
        """Leave the marker of the beginning, once the process is recorded."""
        _note(f"{self._mark}.active")

    def request_end(self) -> None:
        """Have the markers of its end say that it was asked to end, whatever it makes of the signal."""
        self._is_ending = True
        self._started.request_end()

    def on_program_end(self, token: object, end: ProgramEnd) -> None:  # noqa: ARG002  as the sink of several has it
        """See `EndSink`."""
        self.returncode = os.waitstatus_to_exitcode(end.wait_status)
        self._ended.set()

    def on_exits(self, exits: list[Exit]) -> Iterable[Any]:
        """Take its end from the kernel, as the process that has started it is gone; see `exits.Sink`."""
        (found,) = exits
        if found.wait_status is None and not found.is_last:
            return [found.token]
        if found.wait_status is not None:
            self.returncode = status = os.waitstatus_to_exitcode(found.wait_status)
            if self._is_ending or -status in _MARKED:
                _note(f"{self._mark}.signalled")
            _note(f"{self._mark}.exit.{RAN}.{status if status >= 0 else SIGNAL_BASE - status}")
        self._ended.set()
        return ()

    def on_markers(self, tokens: list[Any]) -> None:
        """Do nothing: its process is looked at as well; see `exits.Sink`."""


@attrs.frozen(slots=True)
class BatchProgram:
    """The program of a batch job that needs no shell."""

    _program: Program
    _inherited: Mapping[bytes, bytes]
    _layout: Layout
    _job_id: str
    _attempt: int
    #: The native id of the job, or of its array; the claim has it.
    _native_id: str
    _member: ArrayMember | None

    def start(self, starter: Starter) -> RunningProgram | None:
        """Have a process start the program as the leader of a session; return None if a shell must do it.

        The claim and the markers are those of the script.

        Raises:
            ProgramLostError: it may run.
        """
        start = self._file("start") + ".0"
        if not self._claim() or self._may_have_run():
            return None
        try:
            _write_new(start, "")
            _write(self._file(NODES), f"{os.uname().nodename}\n")
        except OSError:
            return None
        mark = f"{self._layout.events}/{self._mark}"
        files = ProgramFiles(self._folder, mark)
        try:
            started = starter.start(self._program, files, inherited=self._inherited)
        except StarterLostError as e:
            msg = "the process that starts programs was lost while it started this one"
            raise ProgramLostError(msg) from e
        if started is None:
            with contextlib.suppress(OSError):
                os.unlink(start)  # noqa: PTH108  text
            return None
        running = RunningProgram(started, mark)
        started.follow(running, None)
        return running

    @property
    def _folder(self) -> str:
        return f"{self._layout.jobs}/{self._job_id}"

    @property
    def _mark(self) -> str:
        return f"{self._job_id}.{self._attempt}"

    def _file(self, name: str) -> str:
        return attempt_file(self._folder, name, self._attempt)

    def _claim(self) -> bool:
        """Make the claim, unless it is there; return True if it is that of this job."""
        member = self._member
        claim = self._file("claim") if member is None else f"{self._layout.arrays}/{member.array}/claim"
        text = f"{self._native_id}\n"
        try:
            _make_claim(claim, text, draft=f"{claim}.{0 if member is None else member.index}.{os.getpid()}")
            is_own = _read_start(claim) == text.encode()
            if is_own and member is not None:
                self._make_folder(member)
        except OSError:
            return False
        return is_own

    def _make_folder(self, member: ArrayMember) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)  # noqa: PTH102  text
        with contextlib.suppress(FileExistsError):
            _write_new(self._file("array"), f"{member.array} {member.index}\n")

    def _may_have_run(self) -> bool:
        facts = [f"{self._mark}.{it}" for it in ("active", _NO_SHELL)]
        left = [f"{folder}/{it}" for folder in (self._layout.events, self._folder) for it in facts]
        return any(map(os.path.lexists, [self._file("final") + ".json", *left]))


def find_batch_program(
    script: str,
    capabilities: Capabilities,
    variables: Mapping[str, str],
    inherited: Mapping[bytes, bytes],
    umask: int,
) -> BatchProgram | None:
    """Return the program of a batch job that needs no shell; None for all others.

    Args:
        script: the script that the batch system got.
        capabilities: those of its backend.
        variables: the environment of the script that only this job has. From these it reads the native id of
            the job, or that of its array and its index.
        inherited: the environment of the script that it shares with other jobs.
        umask: its umask.
    """
    with contextlib.suppress(*_UNREADABLE):
        path = script.rpartition(";")[0].rpartition(" ")[2]
        found = _find_run(path, capabilities, variables)
        if found is None:
            return None
        run, layout, native_id, member = found
        marker = "" if member is not None else f"{layout.events}/{run.job_id}.{run.attempt}.{_NO_SHELL}"
        if script != Script([], run_line(_SHELL, path, marker), path).text:
            return None
        own = {os.fsencode(name): os.fsencode(it) for name, it in variables.items()}
        search_path = own.get(b"PATH", inherited.get(b"PATH"))
        paths = {} if search_path is None else {"PATH": os.fsdecode(search_path)}
        program = program_of(attrs.evolve(run, nodes=()), umask, paths)
        if program is None:
            return None
        node_file = dict.fromkeys(map(os.fsencode, NODEFILES), os.fsencode(run.file(NODES)))
        program = attrs.evolve(program, variables={**own, **program.variables, **node_file})
        return BatchProgram(program, inherited, layout, run.job_id, run.attempt, native_id, member)
    return None


def _find_run(
    path: str, capabilities: Capabilities, variables: Mapping[str, str]
) -> tuple[Run, Layout, str, ArrayMember | None] | None:
    """Return the attempt whose script is this file, its native id, and its element if it is of an array.

    None if the script does anything else than to start a program.
    """
    folder, _, name = path.rpartition("/")
    parent, _, owner = folder.rpartition("/")
    root, _, kind = parent.rpartition("/")
    layout = Layout(root)
    rules = RequeueRules(capabilities.restart_variable, exit_codes=())
    arrays = capabilities.arrays
    if kind == "jobs":
        attempt = name.removeprefix("run.")
        with open(f"{folder}/intent.{attempt}.json", encoding="ascii") as file:  # noqa: PTH123  text
            content = json.loads(file.readline())
        run = _run_of(content, layout, BatchFrame(capabilities.id_variable, rules))
        is_plain = path == run.file("run") and _read(path) == render_runner(run)
        return (run, layout, variables[capabilities.id_variable], None) if is_plain else None
    if kind != "arrays" or arrays is None or not _is_plain_array(path, layout, owner, arrays, rules):
        return None
    member = ArrayMember(owner, int(variables[arrays.index_variable]))
    element = ArrayFiles(root).read_element(member)
    if element is None:
        return None
    run = _run_of(element, layout, ElementFrame("", common=path, index=member.index))
    text = f"\n{member.index})\n{element_text(run)}\n;;\n"
    is_plain = text in _read_block(f"{folder}/elements.{(member.index - 1) // BLOCK}")
    return (run, layout, variables[arrays.id_variable], member) if is_plain else None


def _run_of(content: Mapping[str, Any], layout: Layout, frame: Frame) -> Run:  # Any: as JSON has it
    """Return the attempt of an intent, if it needs nothing but a program."""
    job_id = str(content["id"])
    return Run(
        job_id=job_id,
        attempt=int(content["attempt"]),
        folder=f"{layout.jobs}/{job_id}",
        events=layout.events,
        directory=str(content["directory"]),
        spec=serialization.decode(content["spec"]),
        launch=_LAUNCH,
        nodes=_NODES,
        frame=frame,
    )


@functools.lru_cache(maxsize=16)
def _is_plain_array(path: str, layout: Layout, array: str, arrays: Arrays, rules: RequeueRules) -> bool:
    is_at_its_place = path == f"{layout.arrays}/{array}/run"
    return is_at_its_place and _read(path) == render_array_runner(array, layout, arrays, rules)


@functools.lru_cache(maxsize=16)
def _read_block(path: str) -> str:
    return _read(path)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123  text
        return file.read()


def _make_claim(path: str, text: str, draft: str) -> None:
    """Make a claim unless there is one, in one step: a script that reads a part of it would run nothing."""
    if os.path.lexists(path):
        return
    try:
        _write_new(draft, text)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)  # noqa: PTH108  text


def _read_start(path: str) -> bytes:
    # a fraction of the time that `open` takes
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def _write_new(path: str, text: str) -> None:
    _write(path, text, os.O_EXCL)


def _write(path: str, text: str, flag: int = os.O_TRUNC) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flag, 0o600)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _note(path: str) -> None:
    # the job goes on if it cannot be written
    with contextlib.suppress(OSError):
        _write(path, "")
