"""The queue of one executor: what programs submit and list, and what is left when a server is killed."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jpsi.plugin import CommandResult
from jpsi_slurm.fake import speak
from jpsi_testing.fake import FakeState, Invocation, result_fields
from speak_support import Programs


class SlurmPrograms(Programs):
    """Programs that speak Slurm."""

    def states(self, form: str = "JobID,State,ExitCode") -> list[str]:
        """Wait for the jobs, and return what the accounting says of them."""
        self.wait()
        return self.run("sacct", "-n", "-P", "-o", form).splitlines()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[SlurmPrograms]:
    programs = SlurmPrograms(tmp_path, speak)
    yield programs
    programs.run("scancel", "--me")
    programs.wait()
    programs.queue.close()


def test_a_job_runs_with_the_variables_of_slurm_and_those_of_the_program(programs: SlurmPrograms) -> None:
    echo = 'echo "$SLURM_JOB_ID $SLURM_CPUS_PER_TASK $1 $COLOUR"; echo error >&2'
    script = f"#!/bin/sh\n#SBATCH -J heat -c 2 --output=%x-%j.txt\n{echo}\n"
    (programs.directory / "job.sh").write_text(script)

    assert programs.run("sbatch", "job.sh", "first") == "Submitted batch job 1\n"

    assert programs.states() == ["1|COMPLETED|0:0"]
    assert (programs.directory / "heat-1.txt").read_text() == "1 2 first red\nerror\n"


def test_a_script_may_come_from_standard_input(programs: SlurmPrograms) -> None:
    assert programs.run("sbatch", "--parsable", stdin="#!/bin/sh\nexit 3\n") == "1\n"

    assert programs.states() == ["1|FAILED|3:0"]


def test_an_array_has_elements_with_numbers_of_their_own(programs: SlurmPrograms) -> None:
    echo = "echo $SLURM_ARRAY_TASK_ID $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_COUNT"

    assert programs.run("sbatch", "--parsable", "--array=3,5-6%1", "-o", "%a.txt", "--wrap", echo) == "1\n"
    assert programs.run("sbatch", "--parsable", "--wrap", "true") == "5\n"

    assert programs.states("JobID,JobIDRaw,State") == [
        "1_3|2|COMPLETED",
        "1_5|3|COMPLETED",
        "1_6|4|COMPLETED",
        "5|5|COMPLETED",
    ]
    assert [(programs.directory / f"{it}.txt").read_text() for it in (3, 5, 6)] == [
        "3 2 1 3\n",
        "5 3 1 3\n",
        "6 4 1 3\n",
    ]


def test_elements_beyond_the_limit_wait(programs: SlurmPrograms) -> None:
    programs.run("sbatch", "--array=1-5%2", "--wrap", "sleep 300")
    with programs.queue._changed:
        assert programs.queue._changed.wait_for(
            lambda: sum(it.state is FakeState.RUNNING for it in programs.queue.jobs) == 2, 60
        )

    pending = programs.run("squeue", "-h", "-t", "PD", "-o", "%i %r")

    assert "1_[3-5%2] JobArrayTaskLimit\n" in pending
    programs.run("scancel", "1")
    assert all("CANCELLED" in it for it in programs.states("JobID,State"))


def test_dependencies_hold_jobs_back_until_they_are_met(programs: SlurmPrograms) -> None:
    programs.run("sbatch", "-H", "--wrap", "exit 3")
    for kind in ("afterok", "afternotok", "afterany"):
        programs.run("sbatch", f"--dependency={kind}:1", "--wrap", "true")
    programs.run("sbatch", "-d", "afterok:1", "--kill-on-invalid-dep=yes", "--wrap", "true")
    assert programs.run("squeue", "-h", "-o", "%i %t %r").splitlines() == [
        *(f"{number} PD Dependency" for number in (2, 3, 4, 5)),
        "1 PD JobHeldUser",
    ]

    programs.run("scontrol", "release", "1")

    assert [re.sub(" by.*", "", it) for it in programs.states("JobID,State")] == [
        "1|FAILED",
        "2|PENDING",
        "3|COMPLETED",
        "4|COMPLETED",
        "5|CANCELLED",
    ]
    assert programs.run("squeue", "-h", "-o", "%i %r") == "2 DependencyNeverSatisfied\n"


def test_scancel_ends_elements_and_what_a_name_selects(programs: SlurmPrograms) -> None:
    programs.run("sbatch", "-J", "a", "--array=1-2", "--wrap", "sleep 300")
    programs.run("sbatch", "-J", "b", "--wrap", "sleep 300")

    programs.run("scancel", "1_2")
    programs.run("scancel", "--name=b")

    programs.run("sbatch", "-d", "afterany:1_2:4", "--wrap", "true")
    with programs.queue._changed:
        assert programs.queue._changed.wait_for(lambda: programs.queue.jobs[-1].state.final, 60)
    accounted = programs.run("sacct", "-n", "-P", "-o", "JobID,State").splitlines()
    assert [re.sub(" by.*", "", it) for it in accounted][1:] == [
        "1_2|CANCELLED",
        "4|CANCELLED",
        "5|COMPLETED",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--nice=5",), "--nice=5 cannot be kept: the executor local has no such option"),
        (("--begin=now+60",), "--begin=now+60 cannot be kept: the executor local has no such option"),
        (("--export=NIL",), "--export=NIL cannot be kept"),
        (("--get-user-env", "--export=NONE"), "--get-user-env cannot be kept"),
        (("--dependency=singleton",), "--dependency=singleton cannot be kept"),
        (("--dependency=afterok:7",), "Job dependency problem: no job 7"),
        (("--nodes=2",), "local is one machine, but the job needs 2 nodes"),
        (("--nothing",), "unrecognized option '--nothing'"),
    ],
    ids=lambda it: it[0] if isinstance(it, tuple) else "",
)
def test_what_cannot_be_kept_is_refused_by_name(
    programs: SlurmPrograms, options: tuple[str, ...], message: str
) -> None:
    result = programs.call("sbatch", *options, "--wrap", "true")

    assert result.returncode != 0
    assert message in result.stderr
    assert programs.states() == []


@pytest.mark.parametrize("is_lenient", [False, True], ids=["strict", "lenient"])
@pytest.mark.parametrize(
    ("option", "message", "returncode"),
    [
        ("--time=5x", "Invalid --time specification", 255),
        ("--mem=4Q", "Invalid --mem specification", 255),
        ("--mem-per-cpu=lots", "Invalid --mem-per-cpu specification", 255),
        ("--signal=USR9@5", "Invalid --signal specification", 255),
        ("--signal=B:USR9", "Invalid --signal specification", 255),
        ("--array=1-x", "Batch job submission failed: Invalid job array specification", 1),
        ("--array=5-1", "Batch job submission failed: Invalid job array specification", 1),
        ("--array=1-3%x", "Batch job submission failed: Invalid job array specification", 1),
    ],
    ids=lambda it: it if str(it).startswith("--") else "",
)
def test_a_wrong_value_is_the_error_of_sbatch(
    programs: SlurmPrograms, option: str, message: str, returncode: int, *, is_lenient: bool
) -> None:
    result = programs.call("sbatch", option, "--wrap", "true", is_lenient=is_lenient)

    assert result == CommandResult(returncode=returncode, stderr=f"sbatch: error: {message}\n")
    assert programs.states() == []


def test_an_option_with_an_optional_value_takes_no_other_word(
    programs: SlurmPrograms, tmp_path: Path
) -> None:
    """AiiDA's scripts have such lines."""
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH --get-user-env\n#SBATCH --output=own.txt\necho run\n")

    programs.run("sbatch", "--get-user-env=L", str(script))

    assert programs.states() == ["1|COMPLETED|0:0"]
    assert (tmp_path / "own.txt").read_text() == "run\n"


def test_the_partition_that_sinfo_shows_is_no_queue_of_the_executor(programs: SlurmPrograms) -> None:
    shown = programs.run("sinfo", "-h", "-o", "%R").strip()

    programs.run("sbatch", "-p", shown, "--wrap", "true")
    programs.run("sbatch", "-p", "other", "--wrap", "true")

    specs = [job.attributes["spec"] for job in programs.queue.jobs]
    assert [it.attributes.queue_name for it in specs] == [None, "other"]


def test_squeue_lists_jobs_in_the_order_of_slurm(programs: SlurmPrograms) -> None:
    programs.run("sbatch", "-H", "--wrap", "true")
    programs.run("sbatch", "--wrap", "exit 3")
    programs.run("sbatch", "--wrap", "true")
    programs.run("sbatch", "-d", "afterok:1", "--wrap", "true")
    with programs.queue._changed:
        assert programs.queue._changed.wait_for(
            lambda: all(it.state.final for it in programs.queue.jobs[1:3]), 60
        )

    assert programs.run("squeue", "-h", "-t", "all", "-o", "%i %t").splitlines() == [
        "4 PD",
        "1 PD",
        "3 CD",
        "2 F",
    ]


def test_a_lenient_queue_warns(programs: SlurmPrograms) -> None:
    result = programs.call("sbatch", "--nice=5", "--wrap", "true", is_lenient=True)

    assert result.stdout == "Submitted batch job 1\n"
    assert result.stderr == (
        "sbatch: warning: --nice=5 cannot be kept: the executor local has no such option\n"
    )
    assert programs.states() == ["1|COMPLETED|0:0"]


def test_a_repeated_call_is_the_first_one(programs: SlurmPrograms) -> None:
    first = programs.call("sbatch", "--wrap", "true", key="k")

    assert programs.call("sbatch", "--wrap", "true", key="k") == first
    programs.start()
    assert programs.call("sbatch", "--wrap", "true", key="k") == first

    assert programs.states() == ["1|COMPLETED|0:0"]


def test_jobs_outlast_the_server(programs: SlurmPrograms) -> None:
    programs.run("sbatch", "--array=1-3%1", "-o", "out-%a", "--wrap", "echo $SLURM_ARRAY_TASK_ID")
    programs.run("sbatch", "-d", "afterok:1", "--wrap", "cat out-1 out-2 out-3 >all")
    programs.run("sbatch", "-H", "-J", "held", "--wrap", "true")

    programs.start()

    assert programs.states("JobID,State") == [
        *(f"1_{index}|COMPLETED" for index in (1, 2, 3)),
        "5|COMPLETED",
        "6|PENDING",
    ]
    assert (programs.directory / "all").read_text() == "1\n2\n3\n"
    programs.run("scontrol", "release", "6")
    assert programs.run("sbatch", "--parsable", "--wrap", "true") == "7\n"


@pytest.fixture
def killed_before_handover(programs: SlurmPrograms, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that lets a server be killed when a submission is in the journal, and not further."""

    def kill() -> None:
        monkeypatch.setattr("jpsi_speak.job_queue._PATIENCE_SECONDS", 0.0)
        with monkeypatch.context() as patch:
            patch.setattr(programs.queue._pool, "submit", lambda *_: None)
            programs.call("sbatch", "-o", "out", "--open-mode=append", "--wrap", "echo run", key="k")
        monkeypatch.setattr("jpsi_speak.job_queue._PATIENCE_SECONDS", 60.0)

    return kill


def test_a_submission_in_the_journal_is_carried_out_once(
    programs: SlurmPrograms, killed_before_handover: Callable[[], None]
) -> None:
    killed_before_handover()

    programs.start()
    # the client repeats its call, as it got no answer
    assert programs.call("sbatch", "--wrap", "ignored", key="k").stdout == "Submitted batch job 1\n"

    assert programs.states() == ["1|COMPLETED|0:0"]
    assert (programs.directory / "out").read_text() == "run\n"


def test_a_cut_entry_of_the_journal_was_never_answered(programs: SlurmPrograms) -> None:
    programs.run("sbatch", "--wrap", "true")
    programs.wait()
    with (programs.directory / "queue/journal").open("a") as journal:
        journal.write('{"kind": "submission", "numb')

    programs.start()

    assert programs.run("sbatch", "--wrap", "true") == "Submitted batch job 2\n"
    programs.start()
    assert programs.states("JobID,State") == ["1|COMPLETED", "2|COMPLETED"]


def test_the_tasks_of_srun_are_those_of_the_job(programs: SlurmPrograms) -> None:
    programs.run("sbatch", "-n", "3", "--signal=USR2@30", "--time=1", "--wrap", "sleep 300")
    call = Invocation(
        argv=["srun", "-o", "%j-%t", "true"], environment={"SLURM_JOB_ID": "1", "SLURM_NTASKS": "3"}
    )

    launch = programs.queue.answer("srun", call, is_lenient=False)

    assert [task.stdout for task in launch.tasks] == ["1-0", "1-1", "1-2"]  # type: ignore[attr-defined]  # a TaskLaunch
    number, seconds = result_fields(launch)["warning"]  # type: ignore[misc]  # as the client gets it
    assert (type(number), number, seconds > 0) == (int, signal.SIGUSR2, True)


def test_a_script_and_the_variables_of_the_program_reach_another_machine(programs: SlurmPrograms) -> None:
    programs.queue.is_shared = False
    script = (
        "#!/bin/bash\n#SBATCH --output=out\necho $1 '${HOME}' $COLOUR\ncat /proc/$$/cmdline | tr '\\0' ' '\n"
    )
    (programs.directory / "job.sh").write_text(script)

    programs.run("sbatch", "job.sh", "first")

    assert programs.states() == ["1|COMPLETED|0:0"]
    assert (programs.directory / "out").read_text() == "first ${HOME} red\n/bin/bash /dev/fd/3 first "


def test_memory_without_a_number_of_nodes_is_that_of_one_node(programs: SlurmPrograms) -> None:
    programs.run("sbatch", "-n", "2", "--mem=100M", "--wrap", "true")

    assert programs.states() == ["1|COMPLETED|0:0"]
    assert programs.run("sacct", "-n", "-P", "-o", "ReqMem,ReqCPUS") == "100M|2\n"


def test_old_submissions_are_forgotten_and_their_numbers_stay_used(
    programs: SlurmPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.run("sbatch", "--wrap", "true")
    programs.wait()
    programs.run("sbatch", "-d", "afterok:1", "--wrap", "true")
    programs.wait()
    monkeypatch.setattr("jpsi_speak.journal._KEPT_SECONDS", -10.0)
    # what a network file system leaves of a file that is open
    (programs.directory / "queue/scripts/.nfs01").touch()

    programs.start()

    assert programs.states() == ["2|COMPLETED|0:0"]
    assert sorted(it.name for it in (programs.directory / "queue/scripts").iterdir()) == [".nfs01", "2"]
    assert programs.run("sbatch", "--wrap", "true") == "Submitted batch job 3\n"
