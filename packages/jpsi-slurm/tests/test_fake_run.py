"""The fake's srun, which starts the tasks of a step with the variables recorded from Slurm 22.05."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi_slurm import fake
from jpsi_testing.fake import FakeClock, FakeScheduler, Invocation, Outcome, TaskLaunch, answer, on_path
from slurm_support import recordings


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(), slots=8, outcome=Outcome(seconds=60)) as scheduler:
        yield scheduler


def _job(scheduler: FakeScheduler, *options: str) -> dict[str, str]:
    """Return the environment of the script of a running job."""
    call = Invocation(argv=["sbatch", *options], stdin="#!/bin/sh\n")
    assert answer(scheduler, fake, call).returncode == 0
    return scheduler.jobs[-1].environment


def _srun(scheduler: FakeScheduler, environment: dict[str, str], *words: str) -> TaskLaunch:
    launch = answer(scheduler, fake, Invocation(argv=["srun", *words], environment=environment))
    assert isinstance(launch, TaskLaunch), launch
    return launch


def _refusal(scheduler: FakeScheduler, environment: dict[str, str], *words: str) -> str:
    result = answer(scheduler, fake, Invocation(argv=["srun", *words], environment=environment))
    assert not isinstance(result, TaskLaunch)
    assert result.returncode != 0
    return result.stderr


def _task_variables(launch: TaskLaunch, *names: str) -> list[tuple[str, ...]]:
    return [tuple(task.environment[f"SLURM_{name}"] for name in names) for task in launch.tasks]


# variables that describe the recorded machine, or that the fake does not imitate
_OF_THE_RECORDING = """
SLURM_CLUSTER_NAME SLURM_CONF SLURM_CPUS_ON_NODE SLURM_DISTRIBUTION SLURM_JOBID SLURM_JOB_ACCOUNT
SLURM_JOB_CPUS_PER_NODE SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0 SLURM_JOB_GID SLURM_JOB_ID SLURM_JOB_NAME
SLURM_JOB_PARTITION SLURM_JOB_QOS SLURM_JOB_UID SLURM_JOB_USER SLURM_LAUNCH_NODE_IPADDR SLURM_MEM_PER_CPU
SLURM_NODE_ALIASES SLURM_PRIO_PROCESS SLURM_SRUN_COMM_HOST SLURM_SRUN_COMM_PORT SLURM_STEP_LAUNCHER_PORT
SLURM_SUBMIT_DIR SLURM_SUBMIT_HOST SLURM_TASK_PID SLURM_TOPOLOGY_ADDR SLURM_TOPOLOGY_ADDR_PATTERN SLURM_UMASK
SLURM_WORKING_CLUSTER
"""


def _recorded_in_script() -> dict[str, str]:
    """Return the variables of the script of a job with 2 nodes."""
    (output,) = recordings("job-environment")[0].details["files_after"].values()
    lines = output.partition("== srun\n")[0].splitlines()
    return dict(it.split("=", 1) for it in lines if it.startswith("SLURM"))


def _recorded() -> tuple[list[str], dict[str, str]]:
    """Return the output of the tasks of a step over 2 nodes, and the variables of one of them."""
    (output,) = recordings("job-environment")[0].details["files_after"].values()
    _, _, rest = output.partition("== srun\n")
    places, _, rest = rest.partition("== one task of srun\n")
    variables = rest.partition("== scontrol")[0]
    return places.splitlines(), dict(it.split("=", 1) for it in variables.splitlines())


def test_tasks_have_the_recorded_node_and_rank_variables(scheduler: FakeScheduler) -> None:
    environment = _job(scheduler, "-N2", "--ntasks-per-node=2", "-c", "2")

    launch = _srun(scheduler, environment, "true")

    lines = []
    for task in launch.tasks:
        procid, localid, nodeid = (task.environment[f"SLURM_{it}"] for it in ("PROCID", "LOCALID", "NODEID"))
        host = task.environment["SLURMD_NODENAME"]
        lines.append(f"{procid}: host={host} procid={procid} localid={localid} nodeid={nodeid}")
    assert lines == _recorded()[0]


def test_a_task_has_the_variables_that_were_recorded(scheduler: FakeScheduler) -> None:
    """Of those that mean something on this machine."""
    recorded = {name: value for name, value in _recorded()[1].items() if name.startswith("SLURM")}
    environment = _job(scheduler, "-N2", "--ntasks-per-node=2", "-c", "2")
    _srun(scheduler, environment, "true")

    (task,) = _srun(scheduler, environment, "-N1", "-n1", "true").tasks

    found = {**environment, **task.environment}
    names = recorded.keys() - set(_OF_THE_RECORDING.split())
    assert {name: found.get(name) for name in names} == {name: recorded[name] for name in names}
    assert (found["SLURM_JOB_ID"], found["SLURM_JOBID"]) == ("1", "1")


def test_the_script_of_a_job_has_the_variables_that_were_recorded(scheduler: FakeScheduler) -> None:
    """All but those of the site, and of the recorded machine."""
    recorded = _recorded_in_script()
    options = ["-N2", "--ntasks-per-node=2", "-c2", "-J", "envjob", "-A", "proj1", "-p", "debug"]
    call = Invocation(argv=["sbatch", *options], stdin="#!/bin/sh\n", directory=recorded["SLURM_SUBMIT_DIR"])
    answer(scheduler, fake, call)

    found = scheduler.jobs[-1].environment

    of_the_site = """
    SLURM_CONF SLURM_CPUS_ON_NODE SLURM_JOBID SLURM_JOB_CPUS_PER_NODE SLURM_JOB_GID SLURM_JOB_ID SLURM_JOB_QOS
    SLURM_JOB_UID SLURM_JOB_USER SLURM_MEM_PER_CPU SLURM_NODE_ALIASES SLURM_PRIO_PROCESS SLURM_SUBMIT_HOST
    SLURM_TASK_PID SLURM_TOPOLOGY_ADDR SLURM_TOPOLOGY_ADDR_PATTERN SLURM_WORKING_CLUSTER
    """
    names = recorded.keys() - set(of_the_site.split())
    assert {name: found.get(name) for name in names} == {name: recorded[name] for name in names}


def test_a_script_has_the_number_of_its_processors(scheduler: FakeScheduler) -> None:
    names = ("SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE")

    uneven, one = _job(scheduler, "-N2", "-n3", "-c2"), _job(scheduler)

    assert [[found[name] for name in names] for found in (uneven, one)] == [["4", "4,2"], ["1", "1"]]


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        (["-n3"], "1 1 2"),
        (["--ntasks=4", "--ntasks-per-node=3"], "1 1 1 2"),
        (["-n4", "--distribution=cyclic"], "1 2 1 2"),
        (["-n2"], "1 2"),
        (["-n1"], "1"),
        (["-N1"], "1"),
        (["--nodes=2"], "1 2"),
        ([], "1 1 2 2"),
    ],
    ids=["even", "filled", "cyclic", "one each", "less than nodes", "one node", "nodes alone", "as the job"],
)
def test_tasks_are_placed(scheduler: FakeScheduler, words: list[str], nodes: str) -> None:
    environment = _job(scheduler, "--nodes=2", "--ntasks=4")

    launch = _srun(scheduler, environment, *words, "true")

    assert " ".join(it.environment["SLURMD_NODENAME"].removeprefix("node0") for it in launch.tasks) == nodes


def test_tasks_are_placed_by_the_hostfile(scheduler: FakeScheduler, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node01\nnode02\nnode02\n")
    environment = {**_job(scheduler, "-N2", "-n3"), "SLURM_HOSTFILE": str(tmp_path / "hosts")}

    launch = _srun(scheduler, environment, "--distribution=arbitrary", "-n3", "true")

    assert _task_variables(launch, "NODEID", "LOCALID", "STEP_TASKS_PER_NODE") == [
        ("0", "0", "1,2"),
        ("1", "0", "1,2"),
        ("1", "1", "1,2"),
    ]


def test_the_components_of_a_step_are_numbered_through(scheduler: FakeScheduler) -> None:
    script = "#!/bin/sh\n#SBATCH --ntasks=1\n#SBATCH hetjob\n#SBATCH --ntasks=2\n"
    answer(scheduler, fake, Invocation(argv=["sbatch"], stdin=script))
    environment = scheduler.jobs[0].environment

    words = ["--het-group=0", "-n1", "first", ":", "--het-group=1", "-n2", "second"]
    launch = _srun(scheduler, environment, *words)

    assert [task.argv for task in launch.tasks] == [("first",), ("second",), ("second",)]
    assert _task_variables(launch, "PROCID", "NODEID", "LOCALID", "NTASKS") == [
        ("0", "0", "0", "3"),
        ("1", "1", "0", "3"),
        ("2", "1", "1", "3"),
    ]


def test_steps_are_numbered_and_srun_outside_a_job_starts_a_job(scheduler: FakeScheduler) -> None:
    environment = _job(scheduler)
    inside = [_srun(scheduler, environment, "true") for _ in range(2)]
    alone = _srun(scheduler, {}, "-N2", "true")

    assert [_task_variables(it, "JOB_ID", "STEP_ID") for it in inside] == [[("1", "0")], [("1", "1")]]
    assert _task_variables(alone, "JOB_ID", "JOB_NODELIST") == [("2", "node[01-02]")] * 2


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["-n3", "true"], "Unable to create step for job 1: More processors requested than permitted"),
        (["-N3", "-n3", "true"], "Requested node configuration is not available"),
        (["--multi-prog", "true"], "this fake Slurm has no --multi-prog"),
        (["-w", "x", "true"], "this fake Slurm has no --nodelist"),
        (["--export=NONE", "true"], "this fake Slurm has no --export but ALL"),
        (["--input=x", "true"], "this fake Slurm has no --input from a file"),
        (["--distribution=arbitrary", "true"], "Unable to read SLURM_HOSTFILE"),
        (["--nonsense", "true"], "unrecognized option '--nonsense'"),
        (["-n1"], "No command given to execute."),
        (["-n", "x", "true"], 'Invalid numeric value "x" for --ntasks.'),
        (["-n0", "true"], 'Invalid numeric value "0" for --ntasks.'),
        (["-c", "-1", "true"], 'Invalid numeric value "-1" for --cpus-per-task.'),
        (["--ntasks-per-node=1k", "true"], 'Invalid numeric value "1k" for --ntasks-per-node.'),
        (["-N", "abc", "true"], "Invalid --nodes specification"),
        (["-N", "2-1", "true"], "Invalid --nodes specification"),
    ],
    ids=lambda it: it[0] if isinstance(it, list) else "",
)
def test_unsupported_options_are_refused(scheduler: FakeScheduler, words: list[str], refusal: str) -> None:
    assert refusal in _refusal(scheduler, _job(scheduler, "-n2", "-N2"), *words)


def test_a_step_may_have_more_tasks_than_its_job(scheduler: FakeScheduler) -> None:
    """The job's processors limit the tasks unless `--overcommit` shares them."""
    environment = _job(scheduler, "-n1", "-c4")

    assert len(_srun(scheduler, environment, "-n4", "true").tasks) == 4
    assert len(_srun(scheduler, environment, "-n5", "-O", "true").tasks) == 5
    assert "More processors" in _refusal(scheduler, environment, "-n5", "true")


@pytest.mark.parametrize(
    ("words", "stdin", "ends"),
    [
        ([], 0, False),
        (["--input=1", "-K"], 1, True),
        (["--input=none", "--kill-on-bad-exit=0"], None, False),
        (["--input=all", "--kill-on-bad-exit=1"], 0, True),
    ],
)
def test_input_and_failure_options_are_followed(
    scheduler: FakeScheduler,
    words: list[str],
    stdin: int | None,
    ends: bool,
) -> None:
    launch = _srun(scheduler, _job(scheduler, "-n2"), *words, "true")

    assert (launch.stdin, launch.ends_on_failure) == (stdin, ends)


def test_a_missing_program_ends_as_recorded(scheduler: FakeScheduler) -> None:
    recorded = next(it for it in recordings("job-environment") if it.argv[-1] == "nosuchcmd")

    assert _srun(scheduler, {}, "nosuchcmd").not_found == recorded.result.returncode


def test_tasks_have_files_and_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    with on_path(fake):
        in_files = subprocess.run(["srun", "-n2", "-o", "out-%t", "printenv", "SLURM_PROCID"], check=False)
        labelled = subprocess.run(["srun", "-n2", "--label", "echo", "text"], check=False)

    assert (in_files.returncode, labelled.returncode) == (0, 0)
    assert [(tmp_path / f"out-{task}").read_text() for task in range(2)] == ["0\n", "1\n"]
    assert sorted(capfdbinary.readouterr().out.splitlines()) == [b"0: text", b"1: text"]
