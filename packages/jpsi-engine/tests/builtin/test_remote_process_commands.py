"""What `local` has a shell do elsewhere, done by the shells of this machine: by /proc, and by ps(1) alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import pytest

from jpsi.plugin import Command, CommandResult, JobState, Observation, Reason
from jpsi_engine.builtin import remote_process_commands as commands
from jpsi_engine.builtin import remote_process_output as output
from jpsi_engine.remote.submission import (
    RemoteJobFolder,
    RemoteOutcome,
    RemoteSubmission,
    parse_submission,
    render_submission,
)
from jpsi_testing.waiting import eventually

PATIENCE = 30
# Others may run these tests as well.
TAG = f"jpsi-{uuid.uuid4()}-1"

_SHELLS = [path for name in ("dash", "bash", "busybox") if (path := shutil.which(name))]


@attrs.define(eq=False)
class Machine:
    """This machine, as a shell sees it that knows so much of it."""

    shell: str
    has_proc: bool
    environment: Mapping[str, str]
    started: list[str] = attrs.field(factory=list)

    def run(self, text: str, *arguments: str) -> CommandResult:
        """Have the shell carry a program out."""
        words = f"{self.shell} sh" if self.shell.endswith("busybox") else self.shell
        text = text.replace("/bin/sh", words)
        if not self.has_proc:
            text = text.replace("/proc/", "/nowhere/")
        done = subprocess.run(
            [*words.split(), "-s", *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env=dict(self.environment),
            start_new_session=True,
            timeout=PATIENCE,
        )
        return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def start(self, script: str, *, limit: int = 0, delay: int = 5) -> str:
        """Start a job and return its native id."""
        result = self.run(commands.render_start(f"#!/bin/sh\n{script}\n", TAG, limit=limit, delay=delay))
        native_id = output.parse_started(result)
        self.started.append(native_id)
        return native_id

    def seen(self, *native_ids: str) -> dict[str, Observation]:
        """What is said of these jobs."""
        return output.parse_observations(self.run(commands.render_query(), *native_ids), native_ids)

    def end(self, native_id: str) -> Observation | None:
        """Wait until a job has ended, and return what is said of it then."""
        assert eventually(lambda: (it := self.seen(native_id).get(native_id)) is None or it.final)
        return self.seen(native_id).get(native_id)

    def cancel(self, *native_ids: str) -> dict[str, str]:
        """Have jobs end; returns why which of them do not."""
        return output.parse_refused(self.run(commands.render_cancel(), *native_ids), native_ids)


# Where there is busybox, there is /proc.
_KINDS = [
    (shell, has_proc) for shell in _SHELLS for has_proc in (True, False) if has_proc or "box" not in shell
]


@pytest.fixture(params=_KINDS, ids=[f"{Path(shell).name}-{'proc' if it else 'ps'}" for shell, it in _KINDS])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    shell, has_proc = request.param
    machine = Machine(shell, has_proc, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    yield machine
    for native_id in machine.started:
        for pid in living(leader(native_id)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def leader(native_id: str) -> int:
    return int(native_id.partition(".")[0])


def living(group: int) -> list[int]:
    """The processes of a group that are more than zombies."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in listed.splitlines())
    return [int(pid) for pid, found, state in rows if int(found) == group and not state.startswith("Z")]


@pytest.fixture
def hear(tmp_path: Path) -> Callable[[], list[str]]:
    """What jobs write into the FIFO `said` until all have closed it."""
    os.mkfifo(tmp_path / "said")
    return lambda: (tmp_path / "said").read_text().split()


def test_a_job_runs_and_is_found_by_its_id_and_its_tag(
    machine: Machine, tmp_path: Path, hear: Callable[[], list[str]]
) -> None:
    native_id = machine.start(f"echo $JPSI_PROCESS >{tmp_path}/said; exec sleep 1000")

    assert hear() == [native_id]
    assert machine.seen(native_id)[native_id].state is JobState.ACTIVE
    listed = machine.run(commands.render_listing())
    assert output.parse_found(listed, [TAG, f"{TAG}0"]) == {TAG: native_id}
    assert native_id in output.parse_observations(listed, None)


def test_a_job_that_has_ended_is_not_mentioned(machine: Machine) -> None:
    native_id = machine.start("exit 7")

    assert machine.end(native_id) is None
    assert output.parse_found(machine.run(commands.render_listing()), [TAG]) == {}
    assert machine.cancel(native_id) == {}


def test_another_process_with_the_same_pid_is_not_the_job(machine: Machine) -> None:
    native_id = machine.start("exec sleep 1000")
    pid, start, boot, node = native_id.split(".", 3)
    other_times = [f"{pid}.{start[:-1]}{(int(start[-1]) + 1) % 10}.{boot}.{node}", f"{pid}.{start}.0a.{node}"]

    assert list(machine.seen(*other_times, native_id)) == [native_id]
    assert machine.cancel(*other_times) == {}
    assert len(living(leader(native_id))) == 2


def test_what_runs_on_another_machine_is_not_taken_for_gone(machine: Machine) -> None:
    native_id = machine.start("exec sleep 1000")
    other = f"{native_id}2"

    assert machine.seen(other)[other].state is None
    assert "it runs on" in machine.cancel(other)[other]
    assert len(living(leader(native_id))) == 2


def test_all_of_a_job_ends_when_it_is_cancelled(machine: Machine) -> None:
    native_id = machine.start("(sleep 1000; :) & sh -c 'sleep 1000; :' & wait")
    # the leader, the runner, two shells, and what each of them has started
    assert eventually(lambda: len(living(leader(native_id))) == 6)

    assert machine.cancel(native_id) == {}

    observed = machine.end(native_id)
    assert observed is not None
    assert observed.reason is Reason.CANCELLED
    assert living(leader(native_id)) == []


def test_who_does_not_obey_is_killed_after_the_delay(
    machine: Machine, tmp_path: Path, hear: Callable[[], list[str]]
) -> None:
    stubborn = f"sh -c 'trap : TERM; echo ready >{tmp_path}/said; while :; do sleep 1000; done'"
    native_id = machine.start(f"{stubborn} & exec sleep 1000", delay=1)
    assert hear() == ["ready"]

    machine.cancel(native_id)

    assert machine.end(native_id) is not None
    assert living(leader(native_id)) == []


def test_the_runner_tells_its_children_itself(
    machine: Machine, tmp_path: Path, hear: Callable[[], list[str]]
) -> None:
    """So that none of them is told twice, and takes the second time for haste."""
    child = (
        f'trap "echo told >>{tmp_path}/proof" TERM; echo ready >{tmp_path}/said; read it <{tmp_path}/never'
    )
    os.mkfifo(tmp_path / "never")
    passes = "trap 'kill -s TERM $child' TERM"
    native_id = machine.start(f"sh -c '{child}; {child}' & child=$!; {passes}; wait; wait", delay=1)
    assert hear() == ["ready"]

    machine.cancel(native_id)

    machine.end(native_id)
    assert (tmp_path / "proof").read_text() == "told\n"


def test_a_job_ends_with_its_duration(machine: Machine) -> None:
    native_id = machine.start("trap 'exit 0' TERM; while :; do sleep 0.05; done", limit=1)

    observed = machine.end(native_id)

    assert observed is not None
    assert (observed.state, observed.reason) == (JobState.FAILED, Reason.TIMEOUT)
    assert living(leader(native_id)) == []


def test_of_a_job_that_ends_in_time_nothing_is_left_but_what_it_has_left_itself(machine: Machine) -> None:
    native_id = machine.start("sleep 1001 & exit", limit=1000)

    assert machine.end(native_id) is None
    assert eventually(lambda: len(living(leader(native_id))) == 1)


def test_a_job_outlives_whoever_started_it_and_a_hangup(machine: Machine) -> None:
    """The shell that started it was the leader of a session that has ended with it."""
    native_id = machine.start("exec sleep 1000")

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        os.kill(leader(native_id), number)

    assert os.getsid(leader(native_id)) == leader(native_id)
    assert list(machine.seen(native_id)) == [native_id]


def test_a_job_takes_signals_that_what_runs_in_the_background_ignores(
    machine: Machine, tmp_path: Path, hear: Callable[[], list[str]]
) -> None:
    machine.start(f"trap 'echo INT >{tmp_path}/said; exit' INT; echo $$ >{tmp_path}/said; sleep 1000 & wait")
    (runner,) = hear()

    os.kill(int(runner), signal.SIGINT)

    assert hear() == ["INT"]


def test_half_of_a_program_does_nothing(machine: Machine, tmp_path: Path) -> None:
    text = commands.render_start(f"touch {tmp_path}/proof", TAG, limit=0, delay=1)

    for length in range(0, len(text) - 2, 97):
        result = machine.run(text[:length])
        with pytest.raises(ValueError, match="no job id"):
            output.parse_started(result)

    assert not (tmp_path / "proof").exists()


def test_without_setsid_a_shell_with_job_control_does(tmp_path: Path) -> None:
    """As on macOS, whose /bin/sh is bash."""
    machine = _without_setsid("/bin/bash", tmp_path)
    native_id = machine.start("sleep 1000 & exec sleep 1000")
    assert eventually(lambda: len(living(leader(native_id))) == 3)

    machine.cancel(native_id)

    assert machine.end(native_id) is not None
    assert living(leader(native_id)) == []


def test_without_setsid_and_job_control_nothing_is_started(tmp_path: Path) -> None:
    machine = _without_setsid("/bin/dash", tmp_path)

    result = machine.run(commands.render_start(f"touch {tmp_path}/proof", TAG, limit=0, delay=1))

    failure = output.parse_failure(result)
    assert failure is not None
    assert "there is neither setsid(1)" in failure.message
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("shell", _SHELLS)
def test_every_program_is_posix_shell_whatever_the_script_is(shell: str) -> None:
    script = "#!/bin/sh\n# it's \"odd\" $HOME `x` \\ \ncat <<'end'\nend\n"
    words = [shell, "sh", "-n"] if shell.endswith("busybox") else [shell, "-n"]
    starting = commands.render_start(script, TAG, limit=60, delay=5)

    for text in (starting, commands.render_query(), commands.render_listing(), commands.render_cancel()):
        subprocess.run(words, input=text, text=True, check=True)


def test_a_job_is_started_as_part_of_a_submission_to_files_elsewhere(tmp_path: Path) -> None:
    """What it prints is collected there before it goes back; a job that kept it open would hold that up."""
    command = Command(
        ["/bin/sh", "-s"], stdin=commands.render_start("exec sleep 1000", TAG, limit=9, delay=5)
    )
    submission = RemoteSubmission(
        root=str(tmp_path / "root"),
        directories=[str(tmp_path / "root" / "jobs")],
        folders=[
            RemoteJobFolder(path=str(tmp_path / "root" / "jobs" / "5"), is_new=True, files={"intent": "{}\n"})
        ],
        command=command,
        script="script",
        answer="answer",
    )
    machine = Machine("/bin/sh", has_proc=True, environment={**os.environ, "HOME": str(tmp_path)})

    outcome, result = parse_submission(machine.run(render_submission(submission, "n0nce")), "n0nce")

    native_id = output.parse_started(result)
    assert (outcome, list(machine.seen(native_id))) == (RemoteOutcome.ENDED, [native_id])
    machine.cancel(native_id)
    machine.end(native_id)


# As ps(1) of macOS and FreeBSD describes them; not recorded there.
_BSD = """\
    1     0     1     0 Ss   Sun Nov  1 08:59:58 2026     /sbin/launchd
  501     1   501 @UID@ Ss   Sun Nov  1 09:00:42 2026     /bin/sh -s jpsi-5-1
  502   501   501 @UID@ S+   Sun Nov  1 09:00:42 2026     /bin/sh -s jpsi-5-1
  503     1   503     7 Ss   Sun Nov  1 09:00:42 2026     /bin/sh -s jpsi-6-1
"""


def test_the_ps_of_a_bsd_is_understood(tmp_path: Path) -> None:
    machine = _without_setsid("/bin/sh", tmp_path)
    ps = tmp_path / "commands" / "ps"
    ps.unlink()
    ps.write_text(f"#!/bin/sh\ncat <<'end'\n{_BSD.replace('@UID@', str(os.geteuid()))}end\n")
    ps.chmod(0o755)
    node = os.uname().nodename

    assert output.parse_found(machine.run(commands.render_listing()), ["jpsi-5-1", "jpsi-6-1"]) == {
        "jpsi-5-1": f"501.Nov1-09:00:42-2026.0.{node}"
    }
    asked = [f"{pid}.Nov1-09:00:42-2026.0.{node}" for pid in (501, 502, 504)]
    assert list(machine.seen(*asked)) == asked[:2]


def _without_setsid(shell: str, tmp_path: Path) -> Machine:
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("cat", "env", "find", "id", "mkdir", "ps", "rm", "sleep", "tr", "uname"):
        (commands / name).symlink_to(str(shutil.which(name)))
    return Machine(shell, has_proc=False, environment={"PATH": str(commands), "HOME": str(tmp_path)})
