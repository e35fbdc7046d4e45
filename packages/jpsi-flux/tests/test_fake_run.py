"""The fake's `flux run`, which starts tasks with the variables recorded from flux-core 0.88."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flux_support import recordings
from jpsi.plugin import CommandResult
from jpsi_flux import fake
from jpsi_testing.fake import FakeClock, FakeScheduler, Invocation, Outcome, TaskLaunch, answer


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(), slots=8, outcome=Outcome(seconds=60)) as scheduler:
        yield scheduler


def _batch(scheduler: FakeScheduler, *options: str) -> dict[str, str]:
    """Return the environment of the script of a job that is an instance of its own."""
    call = Invocation(argv=["flux", "batch", *options], stdin="#!/bin/sh\n")
    assert answer(scheduler, fake, call).returncode == 0
    return scheduler.jobs[-1].environment


def _run(scheduler: FakeScheduler, environment: dict[str, str], *words: str) -> CommandResult:
    return answer(scheduler, fake, Invocation(argv=["flux", "run", *words], environment=environment))


def _tasks(scheduler: FakeScheduler, environment: dict[str, str], *words: str) -> list[dict[str, str]]:
    launch = _run(scheduler, environment, *words)
    assert isinstance(launch, TaskLaunch), launch
    return [dict(task.environment) for task in launch.tasks]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["-n4", "-N2"], [("0", "0"), ("1", "1"), ("2", "0"), ("3", "1")]),
        (["--ntasks=3", "--nodes=2"], [("0", "0"), ("1", "1"), ("2", "0")]),
        (["-N2"], [("0", "0"), ("1", "0")]),
        ([], [("0", "0")]),
    ],
    ids=["even", "uneven", "nodes alone", "one"],
)
def test_tasks_have_node_and_rank_variables(
    scheduler: FakeScheduler, words: list[str], ids: list[tuple[str, str]]
) -> None:
    tasks = _tasks(scheduler, _batch(scheduler, "-n4", "-N2"), *words, "true")

    assert [(it["FLUX_TASK_RANK"], it["FLUX_TASK_LOCAL_ID"]) for it in tasks] == ids
    assert [it["PMI_RANK"] for it in tasks] == [rank for rank, _ in ids]
    assert {it["FLUX_JOB_SIZE"] for it in tasks} == {it["PMI_SIZE"] for it in tasks} == {str(len(ids))}
    assert {it["FLUX_JOB_NNODES"] for it in tasks} == {str(min(2, len(ids)))}


def test_a_task_has_the_variables_that_were_recorded(scheduler: FakeScheduler) -> None:
    """All but the paths of the recorded machine."""
    text = next(it.result.stdout for it in recordings("job-environment") if "in-flux-run" in it.result.stdout)
    lines = text.partition("in-flux-run\n")[2].splitlines()
    recorded = {line.partition("=")[0] for line in lines}
    paths = {name for name in recorded if name.endswith(("_PATH", "_TMPDIR")) and name != "FLUX_JOB_ID_PATH"}
    environment = _batch(scheduler, "-n1")

    (task,) = _tasks(scheduler, environment, "true")

    found = {**environment, **task}
    assert recorded - paths - {"FLUX_TERMINUS_SESSION"} <= found.keys()
    assert found["FLUX_JOB_ID_PATH"] == f"/{found['FLUX_ENCLOSING_ID']}/{found['FLUX_JOB_ID']}"
    assert found["FLUX_JOB_ID"] != found["FLUX_ENCLOSING_ID"]


def test_the_nodes_of_tasks_are_printed(scheduler: FakeScheduler) -> None:
    """From this output jpsi knows where the tasks of a job will run."""
    environment = _batch(scheduler, "-n3", "-N2")

    result = _run(scheduler, environment, "-n3", "-N2", "--label-io", "--input=/dev/null", "hostname")

    assert result == CommandResult(returncode=0, stdout="0: node0\n1: node0\n2: node1\n")


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--label-io", "true"], "this fake Flux has no --label-io but for hostname"),
        (["--output=x", "true"], "this fake Flux has no --output"),
        (["--input=x", "true"], "this fake Flux has no --input but for one task"),
        (["-n5", "true"], "unsatisfiable request: need 5 task(s) on 1 node(s)"),
        (["-N2", "-n1", "true"], "node count must not be greater than task count"),
        (["-n1"], "job command and arguments are missing"),
        (["--nonsense", "true"], "unrecognized arguments: --nonsense"),
    ],
    ids=lambda it: it[0] if isinstance(it, list) else "",
)
def test_unsupported_options_are_refused(scheduler: FakeScheduler, words: list[str], refusal: str) -> None:
    result = _run(scheduler, _batch(scheduler, "-n4", "-N2"), *words)

    assert not isinstance(result, TaskLaunch)
    assert (result.returncode > 0, refusal in result.stderr) == (True, True)


@pytest.mark.parametrize(
    ("words", "stdin", "ends"),
    [
        ([], 0, False),
        (["--input=1", "--setopt=exit-on-error"], 1, True),
        (["--input=/dev/null", "--setopt=cpu-affinity=per-task"], None, False),
    ],
    ids=["usual", "for one", "for none"],
)
def test_input_and_failure_options_are_followed(
    scheduler: FakeScheduler,
    words: list[str],
    stdin: int | None,
    ends: bool,
) -> None:
    launch = _run(scheduler, {}, "-n2", *words, "true")

    assert isinstance(launch, TaskLaunch)
    assert (launch.stdin, launch.ends_on_failure) == (stdin, ends)


def test_an_exception_of_a_task_is_accepted(scheduler: FakeScheduler) -> None:
    """The launcher `flux` raises it when a process fails; others are no commands of the fake."""
    raised = [
        "flux",
        "job",
        "raise",
        "--severity=0",
        "--type=exec",
        "f12345",
        "rank 1 ended with exit code 5",
    ]
    other = ["flux", "job", "raise", "f12345"]

    results = [answer(scheduler, fake, Invocation(argv=argv)) for argv in (raised, other)]

    assert [(it.returncode, bool(it.stderr)) for it in results] == [(0, False), (1, True)]
