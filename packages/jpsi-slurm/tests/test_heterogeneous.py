"""Heterogeneous jobs, for slots of several kinds: the first component runs the script."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from jpsi.plugin import (
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    JobState,
    ResourceSpecV1,
)
from jpsi_slurm import fake, hooks
from jpsi_testing import FakeTransport, executor_hooks
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeState, Outcome
from slurm_support import (
    CONTEXT,
    SITE,
    sacct_line,
    sacct_result,
    squeue_line,
    squeue_result,
    tag_line,
    tag_result,
)

HOOKS = executor_hooks(hooks)
GIBIBYTE = 2**30


def _spec(*components: ResourceSpecV1, **attributes: object) -> JobSpec:
    return JobSpec(
        "/bin/true",
        resources=HeterogeneousResources(components),
        attributes=JobAttributes(**attributes),  # type: ignore[arg-type]  # fields of it
    )


SPEC = _spec(ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1(node_count=1, processes_per_node=3))


def _directives(spec: JobSpec) -> list[str]:
    return hooks.render_script(spec, CONTEXT).text.splitlines()[1:-1]


def test_each_component_has_all_options() -> None:
    spec = _spec(ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1(process_count=3), queue_name="main")

    common = [
        "#SBATCH --job-name=jpsi",
        "#SBATCH --comment=jpsi-abc-1",
        "#SBATCH --chdir=/",
        "#SBATCH --output=/dev/null",
        "#SBATCH --error=/dev/null",
        "#SBATCH --export=ALL",
        "#SBATCH --partition=main",
        "#SBATCH --time=10",
    ]
    assert _directives(spec) == [
        *common,
        "#SBATCH --ntasks=1",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH hetjob",
        *common,
        "#SBATCH --ntasks=3",
    ]


@pytest.mark.parametrize(
    ("components", "memory"),
    [
        (
            [ResourceSpecV1(node_count=2, memory=GIBIBYTE), ResourceSpecV1(memory=GIBIBYTE)],
            ["mem=512M", "mem=1024M"],
        ),
        ([ResourceSpecV1(node_count=2, memory=GIBIBYTE), ResourceSpecV1()], ["mem-per-cpu=512M"]),
        (
            [
                ResourceSpecV1(cpu_cores_per_process=4, memory=GIBIBYTE),
                ResourceSpecV1(process_count=2, memory=GIBIBYTE),
            ],
            ["mem-per-cpu=256M", "mem-per-cpu=512M"],
        ),
        ([ResourceSpecV1(), ResourceSpecV1(memory=GIBIBYTE)], ["mem-per-cpu=1024M"]),
    ],
    ids=["of nodes", "of one", "of cores", "of the second"],
)
def test_no_component_takes_the_memory_of_another(
    components: list[ResourceSpecV1], memory: list[str]
) -> None:
    """Sbatch applies --mem of one component to the next, and refuses --mem-per-cpu beside it."""
    found = [line.removeprefix("#SBATCH --") for line in _directives(_spec(*components)) if "--mem" in line]

    assert found == memory


def test_a_problem_of_all_components_is_reported_once() -> None:
    spec = _spec(ResourceSpecV1(), ResourceSpecV1(), custom_attributes={"slurm.array": "1-2"})

    assert len(hooks.check_spec(spec, SITE)) == 1


def test_the_job_gets_its_licenses_and_its_mail_once() -> None:
    spec = _spec(ResourceSpecV1(), ResourceSpecV1(), licenses="matlab:2", mail="ann")

    text = hooks.render_script(spec, CONTEXT).text
    assert (text.count("--licenses"), text.count("--mail-user")) == (1, 1)


def test_srun_does_not_get_the_cores_of_one_component() -> None:
    script = hooks.render_script(SPEC, CONTEXT)

    assert "SRUN_CPUS_PER_TASK" not in hooks.submit(script, SPEC, CONTEXT).environment


# Output of Slurm 22.05 after the second component had been cancelled alone
QUEUE = squeue_result(
    squeue_line(JobArrayID="3713+1", JobID="3714", State="CANCELLED", NodeList="node01", Reason="None"),
    squeue_line(JobArrayID="3713+0", JobID="3713", State="RUNNING", NodeList="node02", Reason="None"),
)


@pytest.mark.parametrize("native_ids", [["3713"], None], ids=["one", "all"])
def test_the_component_that_runs_the_script_decides(native_ids: list[str] | None) -> None:
    seen = hooks.parse_status(QUEUE, native_ids)

    assert seen["3713"].state is JobState.ACTIVE
    assert seen["3713"].nodes == ("node02", "node01")
    assert "3713+0" not in seen


def test_a_component_can_be_queried() -> None:
    seen = hooks.parse_status(QUEUE, ["3713+1"])

    assert (seen["3713+1"].state, seen["3714"].state) == (JobState.CANCELED, JobState.CANCELED)


def test_the_accounting_reports_the_job_by_its_own_id() -> None:
    end = {"ExitCode": "0:0", "End": "2026-11-22T15:19:33"}
    lines = [
        sacct_line(JobID="3704+0", JobIDRaw="3704", State="COMPLETED", **end),
        sacct_line(JobID="3704+1", JobIDRaw="3705", State="CANCELLED by 0", **end),
    ]

    assert hooks.parse_finished(sacct_result(*lines), SITE)["3704"].state is JobState.COMPLETED


def test_the_tag_of_each_component_is_that_of_the_job() -> None:
    lines = tag_line("3713+1", "jpsi-a-1"), tag_line("3713+0", "jpsi-a-1")

    found = hooks.parse_find(tag_result(*lines), ["jpsi-a-1"])

    assert found == {"jpsi-a-1": "3713"}


def test_the_first_component_is_the_job() -> None:
    assert (hooks.canonical_id("17+0"), hooks.canonical_id("17+1")) == ("17", "17+1")


def test_the_nodes_of_all_components_are_named_in_their_order() -> None:
    variables = {
        "SLURM_JOB_NODELIST": "node02",
        "SLURM_TASKS_PER_NODE": "1",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "node02",
        "SLURM_TASKS_PER_NODE_HET_GROUP_0": "1",
        "SLURM_JOB_NODELIST_HET_GROUP_1": "node01",
        "SLURM_TASKS_PER_NODE_HET_GROUP_1": "3",
    }

    done = subprocess.run(
        ["/bin/sh", "-c", "\n".join(hooks.nodes(SPEC))],
        env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["node02", "node01", "node01", "node01"]


# --------------------------------------------------------------------------------------- the fake


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(), slots=8, outcome=Outcome(seconds=60)) as scheduler:
        yield scheduler


@pytest.fixture
def transport(scheduler: FakeScheduler) -> FakeTransport:
    return FakeTransport(scheduler, fake)


def _submitted(transport: FakeTransport, spec: JobSpec) -> str:
    script = HOOKS.render_script(spec=spec, context=CONTEXT)
    result = transport.run(HOOKS.submit(script=script, spec=spec, context=CONTEXT))
    native_id = HOOKS.parse_submit(result=result, context=CONTEXT)
    assert isinstance(native_id, str)
    return native_id


def test_the_fake_has_a_line_for_each_component(scheduler: FakeScheduler, transport: FakeTransport) -> None:
    native_id = _submitted(transport, SPEC)

    result = transport.run(HOOKS.query(native_ids=[native_id], site=SITE))

    rows = [line.split("|=|") for line in result.stdout.splitlines()[3:]]
    assert [(row[0], row[1], row[8]) for row in rows] == [("1+0", "1", "node01"), ("1+1", "2", "node02")]
    assert hooks.parse_status(result, [native_id])[native_id].state is JobState.ACTIVE
    assert [job.slots for job in scheduler.jobs] == [4]


def test_the_fake_ends_all_components_with_the_job(
    scheduler: FakeScheduler, transport: FakeTransport
) -> None:
    native_id = _submitted(transport, SPEC)

    transport.run(HOOKS.cancel(native_ids=[native_id], site=SITE, seen={}))

    assert [job.state for job in scheduler.jobs] == [FakeState.CANCELLED]


@pytest.mark.parametrize(
    ("directives", "message"),
    [
        (["--array=1-2", "hetjob", "--ntasks=1"], "Invalid job array specification"),
        (["--mem=1M", "hetjob", "--mem-per-cpu=1M"], "mutually exclusive"),
        (["--ntasks=1", "hetjob", "--partition=nowhere"], "Invalid partition name specified"),
    ],
    ids=["array", "memory", "partition"],
)
def test_the_fake_refuses_the_options_that_slurm_refuses(
    transport: FakeTransport, directives: list[str], message: str
) -> None:
    script = "\n".join(["#!/bin/sh", *(f"#SBATCH {it}" for it in directives), "true", ""])
    command = HOOKS.submit(script=HOOKS.render_script(spec=SPEC, context=CONTEXT), spec=SPEC, context=CONTEXT)

    result = transport.run(type(command)(command.argv, stdin=script))

    assert result.returncode != 0
    assert message in result.stderr
