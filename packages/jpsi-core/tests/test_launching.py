"""Launchers, prologue and shell, as a user of an executor gets them, with `local` and a batch system."""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import jpsi
from jpsi import Evidence, Job, JobExecutor, JobSpec, JobState, JobStatus, Reason, ResourceSpecV1
from jpsi.plugin import BatchConfig
from jpsi_testing import PluginDirectory, toy
from jpsi_testing.fake import FakeScheduler

PATIENCE = 60

LAUNCHERS = """
from jpsi.plugin import ShellLine, hookimpl

class Launcher:
    def __init__(self, *lines, patterns=None):
        self.lines, self.patterns = lines, patterns

    @hookimpl
    def launch(self):
        return [ShellLine(line) for line in self.lines]

    @hookimpl
    def rank_variables(self):
        return self.patterns

twice = Launcher('RANK=0 "$@" && RANK=1 "$@"')
ranked = Launcher('PMI_RANK=0 OTHER=1 "$@"', patterns=["PMI_*"])
missing = Launcher('echo "no mpi on $(echo this machine)" >"$_jpsi_log"; exit 3')
silent = Launcher('exit 3 >"$_jpsi_log"')
chatty = Launcher('i=0; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i + 1)); done >"$_jpsi_log"; exit 3')
injecting = Launcher('"$@"', patterns=["PMI_*) rm -rf /"])
text = Launcher('"$@"', patterns="PMI_*")
"""
OWN = """
from pathlib import Path
from jpsi_launchers import ScriptLauncher
launcher = ScriptLauncher(Path(__file__).with_name("launch.sh"), interpreter="/bin/sh")
"""
# It gets the id, a log, pre_launch, post_launch, stdin, stdout and stderr, then the command.
OWN_SCRIPT = """
stdout=$6; shift 7
"$@" >"$stdout" && "$@" >>"$stdout" && echo _PSI_J_LAUNCHER_DONE
"""


@pytest.mark.parametrize("launcher", [None, "multiple"])
def test_a_launcher_that_was_not_named_says_nothing_of_a_job_that_its_executor_refuses(
    launcher: str | None,
) -> None:
    job = Job(JobSpec("true", resources=ResourceSpecV1(node_count=2), launcher=launcher))
    with JobExecutor.get_instance("local") as executor, pytest.raises(jpsi.InvalidJobException) as refused:
        executor.submit(job)

    named = [] if launcher is None else ["the launcher multiple runs all processes on one node, but 2 nodes"]
    expected = ["local is one machine, but the job needs 2 nodes", *named]
    assert [it.partition(" are asked for")[0] for it in refused.value.problems] == expected


@pytest.fixture(autouse=True)
def plugins(plugin_directory: PluginDirectory) -> None:
    names = ("twice", "ranked", "missing", "silent", "chatty", "injecting", "text")
    plugin_directory.add(
        "test-launchers",
        entry_points={
            "jpsi.launchers": {**{name: f"test_launchers:{name}" for name in names}, "own": "own:launcher"},
            "jpsi.executors": {"toy": "test_toy"},
        },
        files={
            "test_launchers.py": LAUNCHERS,
            "own.py": OWN,
            "launch.sh": OWN_SCRIPT,
            "test_toy.py": Path(toy.__file__).read_text(),
        },
    )


@pytest.fixture(params=["local", "toy"])
def new_executor(
    request: pytest.FixtureRequest, tmp_path: Path, fake_commands: Callable[..., FakeScheduler]
) -> Callable[..., JobExecutor]:
    """Return a function that makes an executor with a configuration."""
    if request.param == "toy":
        fake_commands("toy")

    def make(**config: Any) -> JobExecutor:
        quick: dict[str, Any] = {"work_directory": tmp_path / "work", "kill_delay": timedelta(seconds=0.5)}
        if request.param == "toy":
            quick |= {"shortest_interval": timedelta(seconds=0.1), "grace": timedelta(seconds=1)}
        kind = BatchConfig if request.param == "toy" else jpsi.ExecutorConfig
        return JobExecutor.get_instance(request.param, config=kind(**quick, **config))

    return make


@pytest.fixture
def executor(new_executor: Callable[..., JobExecutor]) -> Iterator[JobExecutor]:
    with new_executor() as executor:
        yield executor


def run(executor: JobExecutor, spec: JobSpec) -> tuple[JobStatus, str]:
    """Return the final status of a job, and its output."""
    job = Job(spec)
    executor.submit(job)
    status = job.wait(PATIENCE)
    assert status is not None
    assert job.streams is not None
    stdout = job.streams.stdout
    return status, stdout.read_text() if stdout.exists() else ""


def shell(text: str, **fields: Any) -> JobSpec:
    return JobSpec("/bin/sh", ["-c", text], **fields)


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def two(text: str, **fields: Any) -> JobSpec:
    return shell(text, resources=ResourceSpecV1(process_count=2), launcher="twice", **fields)


def failed(status: JobStatus, code: int, reason: Reason) -> None:
    outcome = (status.state, status.exit_code, status.reason, status.evidence)
    assert outcome == (JobState.FAILED, code, reason, Evidence.MARKER)


# ---------------------------------------------------------------------------------------- launchers


@pytest.mark.clause("resources-processes")
def test_several_processes_know_their_nodes(executor: JobExecutor) -> None:
    _, written = run(executor, two('echo $RANK; cat "$JPSI_NODEFILE"; cmp "$JPSI_NODEFILE" "$PSIJ_NODEFILE"'))

    node = platform.node()
    assert written.split() == ["0", node, node, "1", node, node]


@pytest.mark.clause("python-launcher-own", "python-launcher-arguments", "python-launcher-done")
def test_a_launcher_may_be_a_script_that_an_entry_point_leads_to(executor: JobExecutor) -> None:
    resources = ResourceSpecV1(process_count=2)

    status, written = run(executor, shell("echo here", resources=resources, launcher="own"))

    assert (status.state, written) == (JobState.COMPLETED, "here\nhere\n")


def test_job_knows_its_id(executor: JobExecutor) -> None:
    job = Job(shell("echo $JPSI_JOB_ID"))
    executor.submit(job)
    job.wait(PATIENCE)

    assert job.streams is not None
    assert job.streams.stdout.read_text() == f"{job.id}\n"


def test_processes_that_inherit_nothing_have_the_variables_of_the_launcher(executor: JobExecutor) -> None:
    spec = JobSpec("/usr/bin/env", launcher="ranked", inherit_environment=False, environment={"A": "1"})

    _, written = run(executor, spec)

    names = {line.partition("=")[0] for line in written.splitlines()}
    assert names - {"JPSI_NODEFILE", "PSIJ_NODEFILE"} == {"A", "JPSI_JOB_ID", "PMI_RANK"}


@pytest.mark.parametrize("pre_launch", [None, "true"])
def test_the_failure_of_a_launcher_quotes_its_message(
    executor: JobExecutor, tmp_path: Path, pre_launch: str | None
) -> None:
    pre = None if pre_launch is None else script(tmp_path / "pre.sh", pre_launch)

    status, _ = run(executor, JobSpec("/bin/true", launcher="missing", pre_launch=pre))

    failed(status, 3, Reason.LAUNCH)
    assert status.message == "the launcher failed: no mpi on this machine"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_job_ignores_no_signal_that_python_or_a_shell_does(executor: JobExecutor) -> None:
    """Python ignores SIGPIPE and SIGXFSZ, and a shell has commands in the background ignore INT and QUIT."""
    _, written = run(executor, JobSpec("/bin/grep", ["SigIgn:", "/proc/self/status"]))

    mask = int(written.split()[1], 16)
    names = ("PIPE", "XFSZ", "INT", "QUIT", "CHLD", "TERM")
    assert [name for name in names if mask >> (signal.Signals[f"SIG{name}"] - 1) & 1] == []


def test_a_launcher_may_fail_without_a_message(executor: JobExecutor) -> None:
    status, _ = run(executor, JobSpec("/bin/true", launcher="silent"))

    failed(status, 3, Reason.LAUNCH)
    assert status.message == "the launcher failed"


def test_the_end_of_a_long_launcher_message_is_quoted(executor: JobExecutor) -> None:
    status, _ = run(executor, JobSpec("/bin/true", launcher="chatty"))

    assert status.message is not None
    assert status.message.endswith("line 1998\nline 1999")
    assert len(status.message) < 5000


SEVERAL = jpsi.HeterogeneousResources([ResourceSpecV1(process_count=2), ResourceSpecV1(process_count=1)])


def test_job_with_slots_of_several_kinds_runs_once_with_single(executor: JobExecutor) -> None:
    status, written = run(executor, shell('cat "$JPSI_NODEFILE"', resources=SEVERAL, launcher="single"))

    assert status.state is JobState.COMPLETED
    assert written.split() == [platform.node()] * 3


def test_launcher_for_one_kind_of_slot_names_those_for_several(executor: JobExecutor) -> None:
    with pytest.raises(jpsi.InvalidJobException) as caught:
        executor.submit(Job(shell("true", resources=SEVERAL, launcher="twice")))

    message = str(caught.value)
    assert "the launcher twice cannot start several kinds of processes; these can: " in message
    assert "single" in message.rpartition(": ")[2].split(", ")
    assert "twice" not in message.rpartition(": ")[2]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "injecting",
            "the launcher injecting names variables by patterns such as 'PMI_*', and not 'PMI_*) rm",
        ),
        ("text", "the hook rank_variables of the launcher 'text' of test-launchers 1.0"),
    ],
)
def test_an_invalid_pattern_is_reported(executor: JobExecutor, name: str, expected: str) -> None:
    job = Job(JobSpec("/bin/true", launcher=name))

    with pytest.raises(jpsi.InvalidJobException) as caught:
        executor.submit(job)

    assert expected in str(caught.value)
    assert job.status.state is JobState.NEW


# ------------------------------------------------------------------------------ prologue, pre_launch


def test_pre_launch_that_failed_is_named(executor: JobExecutor, tmp_path: Path) -> None:
    pre = script(tmp_path / "pre.sh", "exit 126")

    status, written = run(executor, shell("echo ran", pre_launch=pre))

    failed(status, 126, Reason.PRE_LAUNCH)
    assert status.message == f"pre_launch failed, so that nothing was launched: {pre}"
    assert not written


def test_the_prologue_precedes_everything(new_executor: Callable[..., JobExecutor], tmp_path: Path) -> None:
    pre = script(tmp_path / "pre.sh", 'export A="$A, pre_launch"')

    with new_executor(prologue=["A=prologue", "export A"]) as executor:
        _, written = run(executor, shell("echo $A", pre_launch=pre))

    assert written == "prologue, pre_launch\n"


def test_a_failed_prologue_is_reported(new_executor: Callable[..., JobExecutor]) -> None:
    with new_executor(prologue=["exit 0"]) as executor:
        status, written = run(executor, shell("echo ran"))

    failed(status, 125, Reason.PRE_LAUNCH)
    assert status.message == "the configured prologue failed, so that nothing was launched"
    assert not written


def test_shell_may_have_options(
    new_executor: Callable[..., JobExecutor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login shell, as `module` often needs it, reads the profile; a script is checked without one."""
    script(tmp_path / ".bash_profile", "module() { export LOADED=$2; }\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    pre = script(tmp_path / "pre.sh", "export B=1")

    with new_executor(shell="/bin/bash -l", prologue=["module load openmpi"]) as executor:
        status, written = run(executor, shell("echo $LOADED $B; exit 7", pre_launch=pre))

    assert (status.exit_code, written) == (7, "openmpi 1\n")


@pytest.mark.parametrize("shell", ["", "bash", "bash -l", "/bin/bash 'x", None])
def test_shell_that_is_none_is_refused(shell: Any) -> None:
    with pytest.raises(ValueError, match="shell must be the absolute path"):
        jpsi.ExecutorConfig(shell=shell)


@pytest.mark.parametrize("prologue", ["module load x", [1], None, ["a\0b"]])
def test_prologue_that_is_none_is_refused(prologue: Any) -> None:
    with pytest.raises(ValueError, match="prologue must be a list of lines of shell"):
        jpsi.ExecutorConfig(prologue=prologue)


def test_a_backend_names_another_launcher_for_jobs_of_several_nodes(
    plugin_directory: PluginDirectory,
) -> None:
    text = Path(toy.__file__).read_text()
    wide = text.replace("computed_node_count > 1", "computed_node_count > 2")
    named = wide.replace('default_launcher="multiple",', 'default_launcher="single", nodes_launcher="twice",')
    plugin_directory.add(
        "test-nodes",
        entry_points={"jpsi.executors": {"wide": "test_wide"}},
        files={"test_wide.py": named},
    )
    one, two = ResourceSpecV1(process_count=2), ResourceSpecV1(node_count=2, processes_per_node=1)

    with JobExecutor.get_instance("wide") as executor:
        assert "RANK=1" not in executor.preview(Job(JobSpec("/bin/true", resources=one))).run
        assert "RANK=1" in executor.preview(Job(JobSpec("/bin/true", resources=two))).run
