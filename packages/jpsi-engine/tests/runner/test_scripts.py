"""Whatever prologue, pre_launch and post_launch do to their shell, the runner's marker and code are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jpsi.contract.shell import ShellLine
from jpsi.model.resources import ResourceSpecV1
from runners import RunnerBench, script, shell_job

pytestmark = pytest.mark.parametrize("shell", ["sh", "bash", "bash itself"], indirect=True)

_FUNCTIONS = (
    "cd",
    "echo",
    "test",
    "read",
    "true",
    "false",
    "wait",
    "kill",
    "command",
    "printf",
    "env",
    "tail",
)
#: pre_launch scripts after which the job runs as if there were none.
HARMLESS = {
    "nothing": "",
    "set -eu": "set -eu",
    "set -f": "set -f",
    "set -x": "set -x",
    "set -C": "set -C",
    "set -m": "set -m",
    "cd /": "cd /",
    "cd to nowhere": "cd /nonexistent\ntrue",
    "trap": "trap 'exit 9' EXIT\ntrap 'exit 9' TERM\ntrap '' INT",
    "trap -": "trap - HUP INT QUIT TERM USR1 USR2 XCPU EXIT",
    "ignored children": "trap '' CHLD",
    "set --": "set -- a b c",
    "shift": "set --; shift 0",
    "IFS of digits": "IFS=0123456789",
    "IFS of letters": "IFS=prelaunchrun",
    "alias": "alias set=false exec=false exit=true trap=false unset=false",
    "function cd": "cd() { exit 5; }",
    "function echo": "echo() { exit 5; }",
    "function test": "test() { exit 5; }",
    "function read": "read() { exit 5; }",
    "function true": "true() { exit 5; }",
    "function wait": "wait() { return 5; }",
    "function kill": "kill() { exit 5; }",
    "function command": "command() { exit 5; }",
    "functions of all": "\n".join(f"{name}() {{ exit 5; }}" for name in _FUNCTIONS),
    "no output": "exec >/dev/null 2>&1",
    "closed streams": "exec <&- >&- 2>&-",
    "no PATH": "unset PATH",
    "no HOME": "unset HOME",
    "umask": "umask 777",
    "unset of the runner's own": "unset _jpsi_mark _jpsi_folder",
    "lost working directory": 'd=$(mktemp -d) && cd "$d" && rmdir "$d"',
}
#: pre_launch scripts after which nothing may run, and the code with which the job fails.
FATAL = {
    "exit 0": ("exit 0", 125),
    "exit 3": ("exit 3", 3),
    "exit in set -e": ("set -e\nfalse\ntrue", 1),
    "unset in set -u": ("set -u\n: $UNSET_1\ntrue", None),
    "return 4": ("return 4", 4),
    "last command fails": ("true\n(exit 6)", 6),
    "set -n": ("set -n", 125),
    "exec": ("exec true", 125),
    "killed": ("kill -KILL $(exec sh -c 'echo $PPID')", 137),
    "syntax error": ("if", None),
    "readonly": ("readonly X=1; X=2; exit 3", None),
}
#: post_launch scripts, and the phase that they leave.
AFTER = {
    "nothing": ("", "run"),
    "exit 0": ("exit 0", "post_launch"),
    "exit 3": ("exit 3", "post_launch"),
    "return 4": ("return 4", "post_launch"),
    "fails": ("false", "post_launch"),
    "set -eu": ("set -eu", "run"),
    "set -e and fails": ("set -e\nfalse\ntrue", "post_launch"),
    "cd /": ("cd /", "run"),
    "trap": ("trap 'exit 9' EXIT", "run"),
    "set --": ("set -- a b c", "run"),
    "IFS": ("IFS=0123456789", "run"),
    "set -n": ("set -n", "post_launch"),
    "alias": ("alias exit=false command=false", "run"),
    "functions": ("\n".join(f"{name}() {{ exit 5; }}" for name in _FUNCTIONS), "run"),
    "trap -": ("trap - HUP INT QUIT TERM USR1 USR2 XCPU EXIT", "run"),
    "no PATH": ("unset PATH", "run"),
    "no output": ("exec >/dev/null 2>&1", "run"),
    "exec": ("exec true", "post_launch"),
    "killed": ("kill -KILL $(exec sh -c 'echo $PPID')", "post_launch"),
    "syntax error": ("if", "post_launch"),
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_hostile_pre_launch_changes_neither_marker_nor_code(bench: RunnerBench, text: str) -> None:
    pre = script(bench.root / "pre.sh", text)

    ended = bench.run(shell_job('pwd >"$1"; exit 7', bench.proof, pre_launch=pre))

    assert (ended.code, ended.markers) == (7, ["exit.run.7"])
    assert bench.proof.read_text() == f"{bench.directory}\n"


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_hostile_prologue_changes_neither_marker_nor_code(bench: RunnerBench, text: str) -> None:
    """The directory and arguments of pre_launch and post_launch are unaffected, too."""
    pre = script(bench.root / "pre.sh", 'pwd >"$PROOF"')
    post = script(bench.root / "post.sh", "false")

    ended = bench.run(
        shell_job("exit 7", environment={"PROOF": str(bench.proof)}, pre_launch=pre, post_launch=post),
        prologue=text.splitlines(),
    )

    assert (ended.code, ended.markers) == (7, ["exit.post_launch.7"])
    assert bench.proof.read_text() == f"{bench.directory}\n"


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_hostile_pre_launch_changes_neither_where_a_launcher_starts_processes(
    bench: RunnerBench, text: str
) -> None:
    """With what that takes in addition: what it exported, and what the launcher said."""
    pre = script(bench.root / "pre.sh", text)
    spec = shell_job(
        'pwd >"$1"; exit 7',
        bench.proof,
        pre_launch=pre,
        inherit_environment=False,
        resources=ResourceSpecV1(process_count=2),
    )
    launch = [ShellLine('"$@"; _code=$?; echo _PSI_J_LAUNCHER_DONE >"$_jpsi_log"; (exit $_code)')]

    ended = bench.run(spec, launch=launch)

    assert (ended.code, ended.markers) == (7, ["exit.run.7"])
    assert bench.proof.read_text() == f"{bench.directory}\n"


@pytest.mark.clause("post-launch-sourced")
@pytest.mark.parametrize("name", ["set -eu", "cd /", "IFS of digits", "no PATH", "closed streams", "alias"])
def test_hostile_pre_launch_does_not_change_post_launch(bench: RunnerBench, name: str) -> None:
    pre = script(bench.root / "pre.sh", HARMLESS[name])
    post = script(bench.root / "post.sh", "false")

    ended = bench.run(shell_job("exit 7", pre_launch=pre, post_launch=post))

    assert (ended.code, ended.markers) == (7, ["exit.post_launch.7"])


@pytest.mark.parametrize(("text", "code"), FATAL.values(), ids=FATAL)
def test_pre_launch_that_fails_launches_nothing(bench: RunnerBench, text: str, code: int | None) -> None:
    """Nor does it run post_launch; the code is its own, but never 0."""
    pre = script(bench.root / "pre.sh", text)
    post = script(bench.root / "post.sh", f"echo >{bench.proof}")

    ended = bench.run(shell_job('pwd >"$1"', bench.proof, pre_launch=pre, post_launch=post))

    assert ended.code == code if code is not None else ended.code != 0
    assert ended.markers == [f"exit.pre_launch.{ended.code}"]
    assert not bench.proof.exists()


@pytest.mark.parametrize(("text", "code"), FATAL.values(), ids=FATAL)
def test_prologue_that_fails_launches_nothing(bench: RunnerBench, text: str, code: int | None) -> None:
    """Nor does it run pre_launch."""
    pre = script(bench.root / "pre.sh", f"echo >{bench.proof}")

    ended = bench.run(shell_job('pwd >"$1"', bench.proof, pre_launch=pre), prologue=text.splitlines())

    assert ended.code == code if code is not None else ended.code != 0
    assert ended.markers == [f"exit.prologue.{ended.code}"]
    assert not bench.proof.exists()


def test_prologue_is_lines_of_one_shell_before_pre_launch(bench: RunnerBench) -> None:
    prologue = ["A='it'\\''s %s'", "if true; then", "  export A; fi", "# a comment", "f() { echo f; }"]
    pre = script(bench.root / "pre.sh", 'echo "$A"; f')

    ended = bench.run(shell_job('echo "$A"', pre_launch=pre), prologue=prologue)

    assert (ended.code, ended.stdout) == (0, b"it's %s\nf\nit's %s\n")


@pytest.mark.parametrize(("text", "phase"), AFTER.values(), ids=AFTER)
def test_hostile_post_launch_never_changes_the_code(bench: RunnerBench, text: str, phase: str) -> None:
    post = script(bench.root / "post.sh", text)

    ended = bench.run(shell_job("exit 7", post_launch=post))

    assert (ended.code, ended.markers) == (7, [f"exit.{phase}.7"])


def test_job_that_succeeds_does_so_whatever_post_launch_does(bench: RunnerBench) -> None:
    post = script(bench.root / "post.sh", "exit 3")

    ended = bench.run(shell_job("exit 0", post_launch=post))

    assert (ended.code, ended.markers) == (0, ["exit.post_launch.0"])


@pytest.mark.clause("pre-launch-sourced", "post-launch-sourced")
def test_pre_launch_and_post_launch_are_sourced_once_around_the_job(bench: RunnerBench) -> None:
    pre = script(bench.directory / "pre.sh", "echo pre\nX=1\n")
    script(bench.home / "post.sh", "echo post $X $#\n")

    ended = bench.run(shell_job("echo job", pre_launch=Path(pre.name), post_launch=Path("~/post.sh")))

    assert ended.stdout.startswith(b"pre\njob\npost 1 ")


@pytest.mark.parametrize("how", ["{}>/dev/null", "{}>&-"], ids=["taken", "closed"])
def test_descriptors_of_pre_launch_are_its_own(bench: RunnerBench, how: str) -> None:
    """A script may hold a lock on a descriptor, and close all that it does not know."""
    pre = script(bench.root / "pre.sh", f"exec {' '.join(map(how.format, range(3, 10)))}")

    ended = bench.run(shell_job("echo out; echo err >&2; exit 7", pre_launch=pre))

    assert (ended.code, ended.markers) == (7, ["exit.run.7"])
    assert (ended.stdout, ended.stderr) == (b"out\n", b"err\n")


def test_all_of_the_job_s_shell_speaks_on_the_streams_of_the_job(bench: RunnerBench) -> None:
    pre = script(bench.root / "pre.sh", "echo pre; echo pre >&2")
    post = script(bench.root / "post.sh", "echo post; echo post >&2")

    ended = bench.run(shell_job("echo job; echo job >&2", pre_launch=pre, post_launch=post))

    assert (ended.stdout, ended.stderr) == (b"pre\njob\npost\n",) * 2


def test_only_the_job_writes_to_its_streams(bench: RunnerBench) -> None:
    """A shell reports what a signal ended, with the command line."""
    ended = bench.run(shell_job("kill -KILL $$"))

    assert (ended.code, ended.stdout, ended.stderr) == (137, b"", b"")


@pytest.mark.parametrize("name", ["pre_launch", "post_launch"])
def test_script_that_is_gone_by_then_fails_its_phase(bench: RunnerBench, name: str) -> None:
    ended = bench.run(shell_job("exit 7", **{name: Path("/nonexistent/script")}))

    if name == "pre_launch":
        assert ended.code != 0
        assert ended.markers == [f"exit.pre_launch.{ended.code}"]
    else:
        assert (ended.code, ended.markers) == (7, ["exit.post_launch.7"])


def test_script_is_found_by_its_path_whatever_that_is_called(bench: RunnerBench) -> None:
    path = script(bench.directory / "-d x" / "pre $A.sh", "X=found\n")
    post = script(bench.root / "post.sh", "echo $X\n")

    ended = bench.run(shell_job("exit 7", pre_launch=path.relative_to(bench.directory), post_launch=post))

    assert (ended.code, ended.markers, ended.stdout) == (7, ["exit.run.7"], b"found\n")


def test_home_of_the_job_does_not_move_its_files(bench: RunnerBench) -> None:
    """`~/` is the home directory of the machine, whatever HOME says to the job."""
    script(bench.home / "pre.sh", "echo pre\n")
    (bench.home / "runs").mkdir()

    ended = bench.run(
        shell_job("pwd; echo $HOME", environment={"HOME": "/other"}, pre_launch=Path("~/pre.sh")),
        directory="~/runs",
    )

    assert (ended.code, ended.stdout) == (0, f"pre\n{bench.home}/runs\n/other\n".encode())


def test_child_in_the_background_delays_nothing(bench: RunnerBench, fifo: Callable[[str], Path]) -> None:
    """The launcher's wait must not wait for a background process of pre_launch."""
    held = fifo("held")
    pre = script(bench.root / "pre.sh", f"(read x <{held}) &\n")

    ended = bench.run(shell_job("exit 7", pre_launch=pre))

    with held.open("w"):  # lets the child end
        assert (ended.code, ended.markers) == (7, ["exit.run.7"])


@pytest.mark.clause("post-launch-waits")
def test_post_launch_runs_after_the_last_process(bench: RunnerBench, fifo: Callable[[str], Path]) -> None:
    meet = fifo("meet")
    post = script(bench.root / "post.sh", f'echo post >>"{bench.proof}"')
    text = 'if [ $RANK = 1 ]; then read x <"$1"; else echo >"$1"; fi; echo $RANK >>"$2"; exit $RANK'
    launch = [ShellLine('RANK=1 "$@" &'), ShellLine('RANK=0 "$@"'), ShellLine("wait $!")]

    ended = bench.run(shell_job(text, meet, bench.proof, post_launch=post), launch=launch)

    assert (ended.code, ended.markers) == (1, ["exit.run.1"])
    assert bench.proof.read_text() in {"0\n1\npost\n", "1\n0\npost\n"}
