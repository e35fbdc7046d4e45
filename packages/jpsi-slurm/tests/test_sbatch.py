"""Submission: the command line and environment of sbatch, and the id in its output."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import JobAttributes, JobSpec, ResourceSpecV1, Script
from jpsi_slurm import hooks
from jpsi_testing import command_result
from slurm_support import CONTEXT, site


def _is_unset(name: str) -> bool:
    patterns = hooks.submit(Script([]), JobSpec("/bin/true"), CONTEXT).unset
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns
    )


def test_the_script_is_read_from_standard_input() -> None:
    script, context = Script([]), attrs.evolve(CONTEXT, site=site(cluster="other"))
    command = hooks.submit(script, JobSpec("/bin/true"), context)

    assert command.argv == ("sbatch", "--clusters=other", "--parsable", "--comment=jpsi-abc-1")
    assert command.stdin == script.text
    assert command.environment == {}


def test_the_line_that_submits_ends_with_the_tag() -> None:
    """The accounting stores the line; a comment in it would replace that of the script."""
    spec = JobSpec("/bin/true", attributes=JobAttributes(custom_attributes={"slurm.comment": "two words"}))

    assert hooks.submit(Script([]), spec, CONTEXT).argv[-1] == "--comment=two words jpsi-abc-1"
    assert "--comment='two words jpsi-abc-1'" in hooks.render_script(spec, CONTEXT).text


# The recorded variables of a job of 2 nodes x 2 tasks, of its step, and of an array element; and variables
# that users set for sbatch and srun.
# fmt: off
_OF_ANOTHER_JOB = (
    "SBATCH_JOB_NAME", "SBATCH_TIMELIMIT", "SBATCH_EXPORT", "SBATCH_PARTITION", "SBATCH_ARRAY_INX",
    "SBATCH_REQUEUE", "SLURMD_NODENAME", "SLURM_CLUSTERS", "SLURM_CLUSTER_NAME", "SLURM_CPUS_ON_NODE",
    "SLURM_CPUS_PER_TASK", "SLURM_EXPORT_ENV", "SLURM_GET_USER_ENV", "SLURM_GPUS_PER_TASK",
    "SLURM_GTIDS", "SLURM_HINT", "SLURM_JOBID", "SLURM_JOB_ACCOUNT", "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST", "SLURM_LOCALID", "SLURM_MEM_PER_CPU", "SLURM_NNODES", "SLURM_NODEID",
    "SLURM_NODELIST", "SLURM_NODE_ALIASES", "SLURM_NPROCS", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE",
    "SLURM_PRIO_PROCESS", "SLURM_PROCID", "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST",
    "SLURM_TASKS_PER_NODE", "SLURM_TASK_PID", "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN",
    "SLURM_WORKING_CLUSTER", "SLURM_DISTRIBUTION", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST",
    "SLURM_STEPID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_UMASK", "SLURM_ARRAY_TASK_ID",
    "SLURM_RESTART_COUNT", "SLURM_EXIT_ERROR", "SLURM_TIMELIMIT", "SLURM_ACCOUNT", "SLURM_PARTITION",
    "SLURM_CONSTRAINT", "SLURM_CONTAINER", "SLURM_CORE_SPEC", "SLURM_COMPRESS", "SLURM_OVERCOMMIT",
    "SLURM_RESERVATION", "SLURM_WCKEY", "SRUN_CPUS_PER_TASK", "SRUN_DEBUG", "PMI_RANK", "PMIX_RANK",
    "PMIX_SERVER_URI4",
)
# fmt: on


@pytest.mark.parametrize(
    "name",
    _OF_ANOTHER_JOB,
)
def test_no_variable_of_another_job_is_inherited(name: str) -> None:
    assert _is_unset(name)


@pytest.mark.parametrize(
    "name", ["SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_MPI_TYPE", "PATH", "PMIX_MCA_gds"]
)
def test_variables_for_slurm_clients_and_mpi_are_inherited(name: str) -> None:
    assert not _is_unset(name)


def test_srun_gives_its_tasks_their_cores() -> None:
    spec = JobSpec("/bin/true", resources=ResourceSpecV1(cpu_cores_per_process=4))

    assert hooks.submit(Script([]), spec, CONTEXT).environment == {"SRUN_CPUS_PER_TASK": "4"}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("4711\n", "4711"),
        ("4711;ci\n", "4711"),
        ("Submitted batch job 4711\n", "4711"),
        ("Submitted batch job 4711 on cluster ci\n", "4711"),
        ("*** Welcome, 12 messages ***\n4711\nbye\n", "4711"),
        ("\n  4711  \n4711\n", "4711"),
    ],
)
def test_the_id_in_the_output_is_found(output: str, expected: str) -> None:
    assert hooks.parse_submit(command_result(output)) == expected


@pytest.mark.parametrize("output", ["", "\n", "ok\n", "job 4711\n", "4711 4712\n", "4711\n4712\n"])
def test_no_id_is_guessed(output: str) -> None:
    with pytest.raises(ValueError, match="in the answer"):
        hooks.parse_submit(command_result(output))


@given(st.text(max_size=40).filter(lambda text: not any(c.isdecimal() for c in text)))
def test_a_banner_without_digits_hides_no_id(banner: str) -> None:
    assert hooks.parse_submit(command_result(f"{banner}\n4711;ci\n{banner}")) == "4711"


@pytest.mark.parametrize("name", ["all", "ALL", "a,b", ""])
def test_name_that_is_not_one_cluster_is_refused(name: str) -> None:
    """Slurm's commands would take `all`, in any case, for every cluster."""
    with pytest.raises(ValueError, match="must be the name of one cluster"):
        site(cluster=name)


def test_name_that_only_begins_like_all_is_a_cluster() -> None:
    assert site(cluster="alliance").config.cluster == "alliance"
