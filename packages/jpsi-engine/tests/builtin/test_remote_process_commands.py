"""The shell programs of `local` for remote hosts, run by shells of this host, with /proc or ps(1)."""

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
# Other users may run these tests at the same time.
TAG = f"jpsi-{uuid.uuid4()}-1"

_SHELLS = [path for name in ("dash", "bash", "busybox") if (path := shutil.which(name))]


@attrs.define(eq=False)
class Host:
    """This host, with a shell and the commands that a test leaves it."""

    shell: str
    has_proc: bool
    environment: Mapping[str, str]
    started: list[str] = attrs.field(factory=list)

    def run(self, text: str, *arguments: str) -> CommandResult:
        """Run a program in the shell."""
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

    def query(self, *native_ids: str) -> dict[str, Observation]:
        """Query these jobs."""
        return output.parse_observations(self.run(commands.render_query(), *native_ids), native_ids)

    def end(self, native_id: str) -> Observation | None:
        """Wait until a job has ended, and query it."""
        assert eventually(lambda: (it := self.query(native_id).get(native_id)) is None or it.final)
        return self.query(native_id).get(native_id)

    def cancel(self, *native_ids: str) -> dict[str, str]:
        """Cancel jobs, and return the reasons of those that it cannot cancel."""
        return output.parse_refused(self.run(commands.render_cancel(), *native_ids), native_ids)


# Every host with busybox has /proc.
_KINDS = [
    (shell, has_proc) for shell in _SHELLS for has_proc in (True, False) if has_proc or "box" not in shell
]


@pytest.fixture(params=_KINDS, ids=[f"{Path(shell).name}-{'proc' if it else 'ps'}" for shell, it in _KINDS])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    shell, has_proc = request.param
    host = Host(shell, has_proc, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    yield host
    for native_id in host.started:
        for pid in living(leader(native_id)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def leader(native_id: str) -> int:
    return int(native_id.partition(".")[0])


def living(group: int) -> list[int]:
    """Return the processes of a group that are not zombies."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in listed.splitlines())
    return [int(pid) for pid, found, state in rows if int(found) == group and not state.startswith("Z")]


@pytest.fixture
def read_lines(tmp_path: Path) -> Callable[[], list[str]]:
    """Return a function that reads from the FIFO `output` what jobs write until all have closed it."""
    os.mkfifo(tmp_path / "output")
    return lambda: (tmp_path / "output").read_text().split()


def test_a_job_runs_and_is_found_by_its_id_and_its_tag(
    host: Host, tmp_path: Path, read_lines: Callable[[], list[str]]
) -> None:
    native_id = host.start(f"echo $JPSI_PROCESS >{tmp_path}/output; exec sleep 1000")

    assert read_lines() == [native_id]
    assert host.query(native_id)[native_id].state is JobState.ACTIVE
    listed = host.run(commands.render_listing())
    assert output.parse_found(listed, [TAG, f"{TAG}0"]) == {TAG: native_id}
    assert native_id in output.parse_observations(listed, None)


def test_an_ended_job_is_not_reported(host: Host) -> None:
    native_id = host.start("exit 7")

    assert host.end(native_id) is None
    assert output.parse_found(host.run(commands.render_listing()), [TAG]) == {}
    assert host.cancel(native_id) == {}


def test_a_process_with_a_reused_pid_is_not_the_job(host: Host) -> None:
    native_id = host.start("exec sleep 1000")
    pid, start, boot, node = native_id.split(".", 3)
    other_times = [f"{pid}.{start[:-1]}{(int(start[-1]) + 1) % 10}.{boot}.{node}", f"{pid}.{start}.0a.{node}"]

    assert list(host.query(*other_times, native_id)) == [native_id]
    assert host.cancel(*other_times) == {}
    assert len(living(leader(native_id))) == 2


def test_a_process_on_another_host_is_not_reported_as_gone(host: Host) -> None:
    native_id = host.start("exec sleep 1000")
    other = f"{native_id}2"

    assert host.query(other)[other].state is None
    assert "it runs on" in host.cancel(other)[other]
    assert len(living(leader(native_id))) == 2


def test_cancel_ends_all_processes_of_a_job(host: Host) -> None:
    native_id = host.start("(sleep 1000; :) & sh -c 'sleep 1000; :' & wait")
    # the leader, the runner, two shells, and a child of each
    assert eventually(lambda: len(living(leader(native_id))) == 6)

    assert host.cancel(native_id) == {}

    observed = host.end(native_id)
    assert observed is not None
    assert observed.reason is Reason.CANCELLED
    assert living(leader(native_id)) == []


def test_a_job_that_ignores_the_signal_is_killed_after_the_delay(
    host: Host, tmp_path: Path, read_lines: Callable[[], list[str]]
) -> None:
    stubborn = f"sh -c 'trap : TERM; echo ready >{tmp_path}/output; while :; do sleep 1000; done'"
    native_id = host.start(f"{stubborn} & exec sleep 1000", delay=1)
    assert read_lines() == ["ready"]

    host.cancel(native_id)

    assert host.end(native_id) is not None
    assert living(leader(native_id)) == []


def test_the_runner_signals_its_children_itself(
    host: Host, tmp_path: Path, read_lines: Callable[[], list[str]]
) -> None:
    """None of them must get the signal twice, since a second one may mean an immediate end."""
    child = (
        f'trap "echo TERM >>{tmp_path}/proof" TERM; echo ready >{tmp_path}/output; read it <{tmp_path}/never'
    )
    os.mkfifo(tmp_path / "never")
    passes = "trap 'kill -s TERM $child' TERM"
    native_id = host.start(f"sh -c '{child}; {child}' & child=$!; {passes}; wait; wait", delay=1)
    assert read_lines() == ["ready"]

    host.cancel(native_id)

    host.end(native_id)
    assert (tmp_path / "proof").read_text() == "TERM\n"


def test_a_job_ends_with_its_duration(host: Host) -> None:
    native_id = host.start("trap 'exit 0' TERM; while :; do sleep 0.05; done", limit=1)

    observed = host.end(native_id)

    assert observed is not None
    assert (observed.state, observed.reason) == (JobState.FAILED, Reason.TIMEOUT)
    assert living(leader(native_id)) == []


def test_a_job_that_ends_in_time_leaves_only_its_own_processes(host: Host) -> None:
    native_id = host.start("sleep 1001 & exit", limit=1000)

    assert host.end(native_id) is None
    assert eventually(lambda: len(living(leader(native_id))) == 1)


def test_a_job_outlives_its_client_and_a_hangup(host: Host) -> None:
    """The shell that started it led a session, which has ended with that shell."""
    native_id = host.start("exec sleep 1000")

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        os.kill(leader(native_id), number)

    assert os.getsid(leader(native_id)) == leader(native_id)
    assert list(host.query(native_id)) == [native_id]


def test_a_job_handles_signals_that_background_processes_ignore(
    host: Host, tmp_path: Path, read_lines: Callable[[], list[str]]
) -> None:
    host.start(f"trap 'echo INT >{tmp_path}/output; exit' INT; echo $$ >{tmp_path}/output; sleep 1000 & wait")
    (runner,) = read_lines()

    os.kill(int(runner), signal.SIGINT)

    assert read_lines() == ["INT"]


def test_an_incomplete_program_does_nothing(host: Host, tmp_path: Path) -> None:
    text = commands.render_start(f"touch {tmp_path}/proof", TAG, limit=0, delay=1)

    for length in range(0, len(text) - 2, 97):
        result = host.run(text[:length])
        with pytest.raises(ValueError, match="no job id"):
            output.parse_started(result)

    assert not (tmp_path / "proof").exists()


def test_without_setsid_a_shell_with_job_control_does(tmp_path: Path) -> None:
    """On macOS, /bin/sh is bash."""
    host = _without_setsid("/bin/bash", tmp_path)
    native_id = host.start("sleep 1000 & exec sleep 1000")
    assert eventually(lambda: len(living(leader(native_id))) == 3)

    host.cancel(native_id)

    assert host.end(native_id) is not None
    assert living(leader(native_id)) == []


def test_without_setsid_and_job_control_nothing_is_started(tmp_path: Path) -> None:
    host = _without_setsid("/bin/dash", tmp_path)

    result = host.run(commands.render_start(f"touch {tmp_path}/proof", TAG, limit=0, delay=1))

    failure = output.parse_failure(result)
    assert failure is not None
    assert "there is neither setsid(1)" in failure.message
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("shell", _SHELLS)
def test_every_program_is_posix_shell_for_any_script(shell: str) -> None:
    script = "#!/bin/sh\n# it's \"odd\" $HOME `x` \\ \ncat <<'end'\nend\n"
    words = [shell, "sh", "-n"] if shell.endswith("busybox") else [shell, "-n"]
    starting = commands.render_start(script, TAG, limit=60, delay=5)

    for text in (starting, commands.render_query(), commands.render_listing(), commands.render_cancel()):
        subprocess.run(words, input=text, text=True, check=True)


def test_a_job_is_started_by_a_remote_submission(tmp_path: Path) -> None:
    """The remote shell collects the output of the command; a job that kept it open would delay the reply."""
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
    host = Host("/bin/sh", has_proc=True, environment={**os.environ, "HOME": str(tmp_path)})

    outcome, result = parse_submission(host.run(render_submission(submission, "n0nce")), "n0nce")

    native_id = output.parse_started(result)
    assert (outcome, list(host.query(native_id))) == (RemoteOutcome.ENDED, [native_id])
    host.cancel(native_id)
    host.end(native_id)


# From the manuals of ps(1) of macOS and FreeBSD; not recordings.
_BSD = """\
    1     0     1     0 Ss   Sun Nov  1 08:59:58 2026     /sbin/launchd
  501     1   501 @UID@ Ss   Sun Nov  1 09:00:42 2026     /bin/sh -s jpsi-5-1
  502   501   501 @UID@ S+   Sun Nov  1 09:00:42 2026     /bin/sh -s jpsi-5-1
  503     1   503     7 Ss   Sun Nov  1 09:00:42 2026     /bin/sh -s jpsi-6-1
"""


def test_the_output_of_a_bsd_ps_is_parsed(tmp_path: Path) -> None:
    host = _without_setsid("/bin/sh", tmp_path)
    ps = tmp_path / "commands" / "ps"
    ps.unlink()
    ps.write_text(f"#!/bin/sh\ncat <<'end'\n{_BSD.replace('@UID@', str(os.geteuid()))}end\n")
    ps.chmod(0o755)
    node = os.uname().nodename

    assert output.parse_found(host.run(commands.render_listing()), ["jpsi-5-1", "jpsi-6-1"]) == {
        "jpsi-5-1": f"501.Nov1-09:00:42-2026.0.{node}"
    }
    native_ids = [f"{pid}.Nov1-09:00:42-2026.0.{node}" for pid in (501, 502, 504)]
    assert list(host.query(*native_ids)) == native_ids[:2]


def _without_setsid(shell: str, tmp_path: Path) -> Host:
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("cat", "env", "find", "id", "mkdir", "ps", "rm", "sleep", "tr", "uname"):
        (commands / name).symlink_to(str(shutil.which(name)))
    return Host(shell, has_proc=False, environment={"PATH": str(commands), "HOME": str(tmp_path)})
