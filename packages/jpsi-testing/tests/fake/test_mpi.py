"""The fake mpirun: it parses the options that scripts give Open MPI, and gives each rank its number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeScheduler, Invocation, TaskLaunch, mpirun_commands

SLOTS = ["a", "a", "b"]
COMMANDS = mpirun_commands(lambda _, call: SLOTS if "JOB" in call.environment else [])


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler() as scheduler:
        yield scheduler


def _call(scheduler: FakeScheduler, *words: str, job: bool = True) -> CommandResult:
    environment = {"JOB": "1"} if job else {}
    return COMMANDS["mpirun"](scheduler, Invocation(argv=["mpirun", *words], environment=environment))


def _ranks(result: CommandResult) -> list[tuple[str, ...]]:
    assert isinstance(result, TaskLaunch), result
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    return [tuple(task.environment[f"OMPI_COMM_WORLD_{name}"] for name in names) for task in result.tasks]


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ([], ["0302", "1312", "2301"]),
        (["-n", "2"], ["0202", "1212"]),
        (["-np", "3", "--map-by", "slot:PE=1", "--mca", "a", "b", "-x", "A"], ["0302", "1312", "2301"]),
        (["--hostfile", "hosts", "-n", "2"], ["0201", "1201"]),
        (["--oversubscribe", "-n", "5"], ["0504", "1514", "2501", "3524", "4534"]),
        (["-n", "2", "-oversubscribe"], ["0202", "1212"]),
    ],
    ids=["all slots", "number", "options", "hosts", "more than slots", "fewer than slots"],
)
def test_ranks_have_their_rank_variables(
    scheduler: FakeScheduler,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    ranks: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hosts").write_text("# two\nc slots=1\nd slots=2\n")

    assert _ranks(_call(scheduler, *words, "true")) == [tuple(rank) for rank in ranks]


def test_outside_a_job_all_ranks_run_on_localhost(scheduler: FakeScheduler) -> None:
    assert _ranks(_call(scheduler, "-n", "2", "true", job=False)) == [tuple("0202"), tuple("1212")]


def test_variables_are_exported_and_a_failure_ends_all(scheduler: FakeScheduler) -> None:
    launch = _call(scheduler, "-n", "1", "-x", "A=b c", "-x", "B", "env", "-n")

    assert isinstance(launch, TaskLaunch)
    (task,) = launch.tasks
    assert (task.argv, task.environment["A"], "B" in task.environment) == (("env", "-n"), "b c", False)
    assert launch.ends_on_failure


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["-n", "4", "true"], "not enough slots available in the system: 4 were requested, 3 exist"),
        (["--nonsense", "true"], "no option nonsense"),
        (["-n", "x", "true"], "invalid literal"),
        (["-n"], "the option n needs a value"),
        (["-n", "1"], "no program"),
        (["--hostfile", "/nothing", "true"], "No such file"),
    ],
)
def test_unsupported_options_are_refused(scheduler: FakeScheduler, words: list[str], refusal: str) -> None:
    result = _call(scheduler, *words)

    assert not isinstance(result, TaskLaunch)
    assert (result.returncode > 0, refusal in result.stderr) == (True, True)


def test_its_version_is_that_of_an_open_mpi(scheduler: FakeScheduler) -> None:
    """By this jpsi's launcher knows what options it has."""
    assert _call(scheduler, "--version").stdout.startswith("mpirun (Open MPI) 4.")
