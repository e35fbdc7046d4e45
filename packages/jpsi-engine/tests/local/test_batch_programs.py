"""Batch jobs that need no shell: the same files, environment and markers as by their script."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import marshal
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import attrs
import pytest

from jpsi import JobAttributes, JobSpec, ResourceSpecV1
from jpsi.contract.hookspecs import Arrays, Capabilities
from jpsi.contract.shell import Script, ShellLine
from jpsi.layers.default_hooks import nodes
from jpsi.model import serialization
from jpsi_engine.local import (
    BatchProgram,
    ProgramLostError,
    RunningProgram,
    Starter,
    find_batch_program,
    job_starter,
)
from jpsi_engine.runner import (
    BatchFrame,
    ElementFrame,
    RequeueRules,
    Run,
    element_blocks,
    element_text,
    render_array_runner,
    render_runner,
    run_line,
)
from jpsi_engine.spool import Layout
from jpsi_testing.waiting import eventually
from killed_starter import KILLED
from runners import SINGLE, without_usage

ARRAYS = Arrays(largest=100, id_variable="TOY_ARRAY", index_variable="TOY_INDEX")
CAPABILITIES = Capabilities(default_launcher="single", id_variable="TOY_JOB", arrays=ARRAYS)
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "INHERITED": "of the submission", "JPSI_JOB_ID": "outer"}
RULES = RequeueRules(exit_codes=())
PATIENCE = 60.0
SHOW = JobSpec("sh", ["-c", "env -0; pwd >&2; umask >&2; kill -l >/dev/null; cat; exit 3"])


@functools.cache
def shared_starter() -> Starter:
    """Return a process that starts programs for all of these tests."""
    return Starter(None, ready_seconds=PATIENCE, ends_jobs=True)


def shell(script: str, *arguments: str, **fields: Any) -> JobSpec:
    return JobSpec("/bin/sh", ["-c", script, "sh", *arguments], **fields)


@attrs.frozen
class Node:
    """A node that starts one job, by its script or without a shell."""

    root: Path
    umask: int = 0o022

    @property
    def folder(self) -> Path:
        return self.root / "jobs" / "a1"

    @property
    def variables(self) -> dict[str, str]:
        return {"TOY_JOB": "7"}

    def write(self, spec: JobSpec, **fields: Any) -> str:
        """Write the files of the job, and return the script that the batch system gets."""
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ("jobs", "events", "arrays/b1", "work"):
            (self.root / name).mkdir(parents=True)
        return self.write_files(spec, fields)

    def write_files(self, spec: JobSpec, fields: dict[str, Any]) -> str:
        self.folder.mkdir(mode=0o700)
        run = self.make_run(spec, BatchFrame("TOY_JOB", RULES), **fields)
        content = {"attempt": run.attempt, "directory": run.directory, **self.encode(spec)}
        (self.folder / f"intent.{run.attempt}.json").write_text(json.dumps(content) + "\n7")
        path = self.folder / f"run.{run.attempt}"
        path.write_text(render_runner(run))
        marker = f"{self.root}/events/a1.{run.attempt}.exit.shell.125"
        return Script([], run_line(["/bin/sh"], str(path), marker), str(path)).text

    def make_run(self, spec: JobSpec, frame: BatchFrame, **fields: Any) -> Run:
        given = {
            "job_id": "a1",
            "attempt": 1,
            "folder": str(self.folder),
            "events": f"{self.root}/events",
            "directory": f"{self.root}/work",
            "spec": spec,
            "launch": SINGLE,
            "nodes": nodes(spec),
            "frame": frame,
        }
        return Run(**{**given, **fields})

    def encode(self, spec: JobSpec) -> dict[str, Any]:
        return {"id": "a1", "spec": serialization.encode(spec)}

    def find(self, script: str) -> BatchProgram | None:
        inherited = {os.fsencode(name): os.fsencode(it) for name, it in ENVIRONMENT.items()}
        return find_batch_program(script, CAPABILITIES, self.variables, inherited, self.umask)

    def run_by_shell(self, script: str) -> int:
        return subprocess.run(
            ["/bin/sh", "-c", script],
            env=self.environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            umask=self.umask,
            start_new_session=True,
            check=False,
        ).returncode

    def run_by_itself(self, script: str) -> int | None:
        running = self.start(script)
        running.begin()
        assert running.wait(PATIENCE)
        return running.returncode

    def start(self, script: str, starter: Starter | None = None) -> RunningProgram:
        program = self.find(script)
        assert program is not None
        running = program.start(starter or shared_starter())
        assert running is not None
        return running

    @property
    def environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, **self.variables}

    def snapshot(self) -> dict[str, Any]:
        """Return all files by name, with mode and content."""
        found: dict[str, Any] = {}
        for path in sorted(self.root.rglob("*")):
            name = without_usage(str(path.relative_to(self.root)))
            content = path.read_bytes() if path.is_file() else None
            if name.endswith("/stdout") and content is not None:
                # a shell that changes its directory exports the last one
                content = sorted(it for it in content.split(b"\0") if not it.startswith((b"OLDPWD=", b"_=")))
            found[name] = oct(path.stat().st_mode), content
        return found


@attrs.frozen
class ElementNode(Node):
    """A node that starts the second element of an array."""

    @property
    def variables(self) -> dict[str, str]:
        return {"TOY_JOB": "7[2]", "TOY_ARRAY": "7", "TOY_INDEX": "2"}

    def write_files(self, spec: JobSpec, fields: dict[str, Any]) -> str:
        folder = self.root / "arrays" / "b1"
        path = f"{folder}/run"
        layout = Layout(str(self.root))
        (folder / "run").write_text(render_array_runner("b1", layout, ARRAYS, RULES))
        runs = [self.make_run(spec, ElementFrame("", common=path, index=it), **fields) for it in (1, 2)]
        other = attrs.evolve(runs[0], job_id="a0", folder=f"{layout.jobs}/a0")
        (folder / "elements.0").write_text("".join(element_blocks(map(element_text, [other, runs[1]]))))
        element = {"attempt": runs[1].attempt, "directory": runs[1].directory, **self.encode(spec)}
        lines = [{"count": 2, "spec": {}}, {**element, "id": "a0"}, element]
        (folder / "intent.json").write_text("".join(json.dumps(it) + "\n" for it in lines) + "7")
        return Script([], run_line(["/bin/sh"], path, ""), path).text


@pytest.fixture(params=[Node, ElementNode], ids=["job", "element"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    made: Node = request.param(tmp_path / "spool")
    return made


@pytest.mark.parametrize("umask", [0o022, 0o007])
@pytest.mark.parametrize(
    "spec",
    [
        SHOW,
        attrs.evolve(SHOW, environment={"A": "it's\na b", "INHERITED": None, "PATH": "/bin", "HOME": "x"}),
        shell('touch "$1"; kill -KILL $$', "new file"),
        shell("kill -TERM $$"),
        shell("kill -PIPE $$"),
        shell("trap 'exit 5' TERM; kill -TERM $$; :"),
        JobSpec("true"),
        JobSpec("/bin/echo", ["", "'", '"', "a\nb", "$HOME", "*", "ü"]),
        shell("echo a; echo b >&2", stdout_path=Path("out"), stderr_path=Path("err")),
        shell("echo a; echo b >&2; umask", stdout_path=Path("both"), stderr_path=Path("both")),
    ],
    ids=[
        *("show", "variables", "killed", "terminated", "pipe", "trapped", "path", "words"),
        *("streams", "one stream"),
    ],
)
def test_a_program_leaves_what_its_script_leaves(node: Node, spec: JobSpec, umask: int) -> None:
    node = attrs.evolve(node, umask=umask)
    node.run_by_shell(node.write(spec))
    expected = node.snapshot()

    node.run_by_itself(node.write(spec))

    if b"kill -TERM $$" in str(spec.arguments).encode() and "trap" not in str(spec.arguments):
        # the runner of a job whose program alone got the signal does not know of it
        assert node.snapshot().pop("events/a1.1.signalled", None) is not None
        (node.root / "events" / "a1.1.signalled").unlink()
    assert node.snapshot() == expected


def test_a_program_gets_default_signals(node: Node) -> None:
    show = JobSpec("grep", ["-E", "^Sig(Blk|Ign)", "/proc/self/status"])

    node.run_by_itself(node.write(show))

    # glibc ignores its own two in what it spawns
    valid = sum(1 << number - 1 for number in signal.valid_signals())
    shown = (node.folder / "stdout").read_text().splitlines()
    assert {int(it.split()[1], 16) & valid for it in shown} == {0}


def test_a_program_gets_no_descriptors_but_its_streams(node: Node) -> None:
    node.run_by_itself(node.write(JobSpec("ls", ["/proc/self/fd"])))

    # ls has opened the directory
    assert (node.folder / "stdout").read_text().split() == ["0", "1", "2", "3"]


def test_a_program_leads_a_session(node: Node) -> None:
    running = node.start(node.write(shell("ps -o sid= -p $$; echo $$")))
    assert running.wait(PATIENCE)

    assert {int(it) for it in (node.folder / "stdout").read_text().split()} == {running.pid}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (shell(":", pre_launch=Path("/etc/profile")), {}),
        (shell(":", post_launch=Path("/etc/profile")), {}),
        (shell(":", stdin_path=Path("/dev/zero")), {}),
        (shell(":", inherit_environment=False), {}),
        (shell(":", create_directory=True), {}),
        (shell("echo ${HOME}"), {}),
        (shell(":", resources=ResourceSpecV1(process_count=2)), {}),
        (shell(":", environment_setup=["source:/etc/profile"]), {}),
        (shell(":"), {"prologue": ["module load x"]}),
        (shell(":"), {"launch": [ShellLine('"$@"')]}),
        (shell(":"), {"rank_variables": ["PMI_*"]}),
        (shell(":"), {"nodes": [ShellLine("echo other")]}),
        (shell(":"), {"nodes": []}),
        (shell(":"), {"attempt": 2}),
        (JobSpec("no-such-program"), {}),
        (JobSpec("-x"), {}),
        (JobSpec("a=b"), {}),
    ],
)
def test_other_jobs_have_a_shell(node: Node, spec: JobSpec, fields: Mapping[str, Any]) -> None:
    assert node.find(node.write(spec, **fields)) is None


def test_a_job_that_is_warned_has_a_shell(node: Node) -> None:
    from jpsi_engine.runner import WalltimeWarning  # noqa: PLC0415

    attributes = JobAttributes(duration=timedelta(minutes=1), warn=("USR1", 10))
    spec = shell(":", attributes=attributes)

    assert node.find(node.write(spec, warning=WalltimeWarning("USR1", 50))) is None


@pytest.mark.parametrize("name", ["intent.1.json", "run.1"])
def test_a_damaged_file_leaves_the_job_to_the_shell(tmp_path: Path, name: str) -> None:
    node = Node(tmp_path / "spool")
    for content in (None, b"", b"{", b"[]\n", b"{}\n", b"\xff\n"):
        script = node.write(SHOW)
        path = node.folder / name
        path.unlink() if content is None else path.write_bytes(content)

        assert node.find(script) is None


def test_another_script_leaves_the_job_to_the_shell(node: Node) -> None:
    script = node.write(SHOW)

    for it in (
        script.replace("\ntest", "\necho; test"),
        script.replace("/bin/sh /", "/bin/bash /"),
        "true",
        "",
    ):
        assert node.find(it) is None


def make_claim(node: Node, text: str) -> None:
    is_single = type(node) is Node
    (node.folder / "claim.1" if is_single else node.root / "arrays/b1/claim").write_text(text)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda node: make_claim(node, "8\n"),
        lambda node: make_claim(node, "revoked\n"),
        lambda node: make_claim(node, ""),
        lambda node: (node.folder / "final.1.json").write_text("{}"),
        lambda node: (node.folder / "start.1.0").touch(),
        lambda node: (node.folder / "a1.1.active").touch(),
        lambda node: (node.root / "events" / "a1.1.active").touch(),
        lambda node: (node.root / "events" / "a1.1.exit.shell.125").touch(),
    ],
)
def test_a_job_that_may_have_run_is_left_to_the_shell(node: Node, spoil: Callable[[Node], object]) -> None:
    program = node.find(node.write(SHOW))
    assert program is not None
    node.folder.mkdir(exist_ok=True)
    spoil(node)

    files = node.snapshot()

    assert program.start(shared_starter()) is None
    # what the script leaves as well, before it refuses
    assert node.snapshot().keys() - files.keys() <= {"arrays/b1/claim", "jobs/a1/claim.1", "jobs/a1/array.1"}


@pytest.mark.parametrize("text", ["8\n", "revoked\n", ""])
def test_nothing_is_left_of_an_element_whose_array_is_not_to_run(tmp_path: Path, text: str) -> None:
    node = ElementNode(tmp_path / "spool")
    program = node.find(node.write(SHOW))
    assert program is not None
    make_claim(node, text)
    files = node.snapshot()

    assert program.start(shared_starter()) is None
    assert node.snapshot() == files


@pytest.mark.parametrize(
    "spec", [JobSpec("/no/such/file"), JobSpec("/etc/passwd"), JobSpec("/bin/true", ["x" * (1 << 20)])]
)
def test_a_program_that_cannot_be_started_is_left_to_the_shell_which_says_why(
    node: Node, spec: JobSpec
) -> None:
    node.run_by_shell(node.write(spec))
    expected = node.snapshot()
    script = node.write(spec)
    program = node.find(script)
    assert program is not None

    assert program.start(shared_starter()) is None
    node.run_by_shell(script)

    assert node.snapshot() == expected


def test_a_job_goes_on_if_its_markers_cannot_be_written(node: Node) -> None:
    script = node.write(shell("exit 3"))
    shutil.rmtree(node.root / "events")

    assert node.run_by_itself(script) == 3


def markers(node: Node) -> set[str]:
    return {without_usage(it.name.removeprefix("a1.1.")) for it in (node.root / "events").iterdir()}


@pytest.mark.parametrize(
    ("script", "number", "expected"),
    [
        ("read x; exit 4", 0, {"signalled", "exit.run.4"}),
        ("read x", signal.SIGTERM, {"signalled", "exit.run.143"}),
        ("read x", signal.SIGKILL, {"signalled", "exit.run.137"}),
        ("trap 'exit 5' TERM; read x", signal.SIGTERM, {"signalled", "exit.run.5"}),
    ],
)
def test_the_markers_of_a_program_that_was_asked_to_end_say_so(
    node: Node, tmp_path: Path, script: str, number: int, expected: set[str]
) -> None:
    running, writer = start_waiting(node, tmp_path, script)

    running.request_end()
    os.kill(running.pid, number) if number else os.write(writer, b"\n")
    assert running.wait(PATIENCE)
    os.close(writer)

    assert markers(node) == expected


def start_waiting(
    node: Node, folder: Path, script: str, starter: Starter | None = None
) -> tuple[RunningProgram, int]:
    """Start a program that reads from a pipe; return it once it does so, and the pipe."""
    for name in ("fifo", "ready"):
        os.mkfifo(folder / name)
    spec = shell(f'exec <"$1"; {script.replace("read x", "echo >$2; read x")}', *pipes(folder))
    running = node.start(node.write(spec), starter)
    # the pipe opens once both sides have
    writer = os.open(folder / "fifo", os.O_WRONLY)
    (folder / "ready").read_text()
    return running, writer


def pipes(folder: Path) -> list[str]:
    return [str(folder / name) for name in ("fifo", "ready")]


@pytest.mark.parametrize("is_exit", [False, True])
def test_a_starter_that_a_batch_system_signals_too_serves_on_and_says_so(
    node: Node, tmp_path: Path, is_exit: bool
) -> None:
    """A batch system that ends a pilot signals all its processes, in any order."""
    starter = Starter(None, ready_seconds=PATIENCE, ends_jobs=True)
    running, writer = start_waiting(node, tmp_path, "trap 'exit 5' TERM; read x", starter)
    assert starter.pid is not None

    os.kill(starter.pid, signal.SIGTERM)
    os.kill(running.pid, signal.SIGTERM) if is_exit else os.write(writer, b"\n")
    assert running.wait(PATIENCE)
    os.close(writer)

    assert markers(node) == {"signalled", f"exit.run.{5 if is_exit else 0}"}


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
    except OSError:
        return True


def test_a_program_that_runs_when_its_client_goes_is_killed_and_leaves_no_end(
    node: Node, tmp_path: Path
) -> None:
    starter = Starter(None, ready_seconds=PATIENCE, ends_jobs=True)
    running, writer = start_waiting(node, tmp_path, "trap '' TERM; read x", starter)
    pid = starter.pid
    assert pid is not None

    starter.retire()

    assert eventually(lambda: is_gone(pid))
    assert is_gone(running.pid)
    os.close(writer)
    assert markers(node) == set()


def test_a_program_that_has_ended_when_its_client_goes_leaves_its_end(node: Node, tmp_path: Path) -> None:
    starter = Starter(None, ready_seconds=PATIENCE, ends_jobs=True)
    running, writer = start_waiting(node, tmp_path, "read x; exit 4", starter)
    pid = starter.pid
    assert pid is not None
    # the process sees both at once, whatever is first
    os.kill(pid, signal.SIGSTOP)
    os.write(writer, b"\n")
    assert eventually(lambda: is_gone(running.pid))

    starter.retire()
    os.kill(pid, signal.SIGCONT)

    assert eventually(lambda: is_gone(pid))
    os.close(writer)
    assert markers(node) == {"exit.run.4"}


@pytest.mark.parametrize("ends_jobs", [False, True])
def test_a_client_that_goes_with_an_answer_unread_costs_no_end_of_other_jobs(
    node: Node, tmp_path: Path, ends_jobs: bool
) -> None:
    starter = Starter(None, ready_seconds=PATIENCE, ends_jobs=ends_jobs)
    running, writer = start_waiting(node, tmp_path, "read x; exit 4", starter)
    pid = starter.pid
    assert pid is not None
    request = (1, b"", b"", b"", b"", None, {}, b"/", 0, (None, None), b"/no/such/file", [], "")
    starter._requests.send(marshal.dumps(request))
    assert select.select([starter._requests], [], [], PATIENCE)[0]

    starter.retire()
    if not ends_jobs:
        os.write(writer, b"\n")

    assert eventually(lambda: is_gone(pid))
    assert is_gone(running.pid)
    os.close(writer)
    assert markers(node) == (set() if ends_jobs else {"exit.run.4"})


def test_a_starter_that_is_not_ready_in_time_is_given_up(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # it reads nothing, and waits until this process has closed the connection
    waiting = f"import select; it = select.poll(); it.register({job_starter.REQUESTS_FD}, 0); it.poll()"
    (tmp_path / "python").write_text(
        f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(waiting)}\n"
    )
    (tmp_path / "python").chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    starter = Starter(None, ready_seconds=0.01, ends_jobs=True)
    waits: list[float] = []

    class Poll:
        def register(self, *_: object) -> None:
            pass

        def poll(self, milliseconds: float) -> list[object]:
            waits.append(milliseconds)
            return []

    monkeypatch.setattr(select, "poll", Poll)
    program = node.find(node.write(SHOW))
    assert program is not None

    assert [program.start(starter), starter.pid] == [None, None]
    assert waits == [10]
    assert starter.is_gone
    assert not starter.was_ready


@pytest.mark.parametrize("is_ending", [False, True])
def test_a_program_whose_starter_was_killed_goes_on_and_no_end_is_guessed(
    node: Node, tmp_path: Path, is_ending: bool
) -> None:
    starter = Starter(None, ready_seconds=PATIENCE, ends_jobs=True)
    running, writer = start_waiting(node, tmp_path, "read x; exit 4", starter)
    assert starter.pid is not None

    os.kill(starter.pid, signal.SIGKILL)
    assert eventually(lambda: starter.is_gone)
    if is_ending:
        running.request_end()
    os.write(writer, b"\n")
    assert running.wait(PATIENCE)
    os.close(writer)

    # a kernel tells the exit code of a process of another parent since Linux 6.15
    ends = {"exit.run.4", "signalled"} if is_ending else {"exit.run.4"}
    assert (running.returncode, markers(node)) in ((4, ends), (None, set()))


def test_a_program_is_started_by_a_shell_if_its_starter_is_gone(node: Node) -> None:
    starter = Starter(None, ready_seconds=PATIENCE, ends_jobs=True)
    assert starter.pid is not None
    starter.retire()
    assert eventually(lambda: starter.is_gone)
    script = node.write(SHOW)
    program = node.find(script)
    assert program is not None

    assert program.start(starter) is None
    assert node.run_by_shell(script) == 3


_SET_CHILD_SUBREAPER = 36


def is_killed_at(node: Node, script: str, step: int) -> bool:
    """Start a job in a process that is killed before its `step`-th system call; False if it has fewer.

    It returns once the job has ended as well.
    """
    parent = os.fork()
    if not parent:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        child = os.fork()
        if not child:
            start_and_die(node, script, step)
        is_killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        os._exit(is_killed)
    return os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == 1


def start_and_die(node: Node, script: str, step: int) -> NoReturn:
    calls = iter(range(step, -1, -1))

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def call_or_die(*arguments: Any, **options: Any) -> Any:
            if not next(calls, 0):
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return call_or_die

    def count_calls() -> None:
        for name in ("open", "write", "close", "link", "unlink", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        for owner, name in ((Starter, "_ask"), (Starter, "_report")):
            setattr(owner, name, counted(getattr(owner, name)))

    try:
        starter = Starter(None, ready_seconds=PATIENCE, ends_jobs=True)
        count_calls()
        program = node.find(script)
        running = None if program is None else program.start(starter)
        if running is not None:
            running.begin()
            running.wait(PATIENCE)
    finally:
        os._exit(0)


def test_whenever_the_starting_process_is_killed_the_script_understands_what_is_left(node: Node) -> None:
    """The batch system may run the script again, as a requeue."""
    proof = node.root / "proof"
    spec = shell('echo >>"$1"; exit 3', str(proof))
    step, has_ended = 0, False
    while is_killed_at(node, script := node.write(spec), step):
        step += 1
        runs = len(proof.read_text()) if proof.exists() else 0
        has_ended = bool(list((node.root / "events").glob("a1.1.exit.*")))
        assert runs <= 1
        assert runs or not has_ended

        assert node.run_by_shell(script) == 3
        assert len(proof.read_text()) == (1 if has_ended else runs + 1)
    assert step > 10
    assert has_ended


STEPS = [
    ("module.Starter", "_start", "before", 0),
    ("module.Starter", "_spawn", "before", 0),
    ("module.Starter", "_spawn", "after", 1),
    ("module.Starter", "_start", "after", 1),
    ("module.Starter", "_note", "before", 1),
    ("module.Starter", "_note", "after", 1),
    ("module.Starter", "_tell", "before", 1),
]


@pytest.mark.parametrize(("owner", "name", "when", "runs"), STEPS)
def test_a_starter_killed_at_any_step_runs_no_job_twice_and_no_end_is_guessed(
    node: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: str,
    name: str,
    when: str,
    runs: int,
) -> None:
    proof, program = tmp_path / "proof", tmp_path / "killed.py"
    program.write_text(KILLED.format(path=job_starter.__file__, owner=owner, name=name, when=when, calls=1))
    monkeypatch.setattr(job_starter, "__file__", str(program))
    starter = Starter(None, ready_seconds=PATIENCE, ends_jobs=True)
    script = node.write(shell('echo ran >>"$1"; exit 3', str(proof)))

    code: int | None = None
    # the client ends what may run, and tells the agent that the job is lost
    with contextlib.suppress(ProgramLostError):
        running = node.start(script, starter)
        assert running.wait(PATIENCE)
        code = running.returncode

    assert code in {3, None}
    assert markers(node) in ({"exit.run.3"}, set())
    assert code is None or markers(node)
    if runs:
        assert eventually(lambda: proof.exists() and proof.read_text() == "ran\n")
    else:
        assert not proof.exists()
