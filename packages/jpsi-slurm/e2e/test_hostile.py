"""Text that Slurm or a shell could misread: it arrives unchanged, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_slurm import PLAIN, command, custom, final_status, native_id, running

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobState
from jpsi_slurm.directives import legal_name
from jpsi_testing.conformance.base import Proof, shell


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """Return the path of a file that appears if text is executed."""
    return tmp_path / "canary"


@pytest.fixture
def texts(canary: Path) -> list[str]:
    """Return the texts to try."""
    touch = f"touch {canary}"
    return [
        f"$({touch})",
        f"`{touch}`",
        f"';{touch};'",
        f'";{touch};"',
        f"x\n{touch}",
        f"x\n#SBATCH --hold\n{touch}",
        "%x-%j-%u.%A_%a",
        "\\%j",
        "--hold",
        "-H",
        "#SBATCH --hold",
        "a,b=c d",
        "a/b",
        "naïve ☃ 作業",
        "{}[]*?~!^&|<>",
        " blanks around ",
        "x" * 300,
        "x" * 1024,
        "x" * 1025,
    ]


def test_names_arrive_legal_or_are_refused(
    executor: JobExecutor, tmp_path: Path, texts: list[str], canary: Path
) -> None:
    jobs = {}
    for number, text in enumerate(texts):
        job = Job(shell('printf %s "$SLURM_JOB_NAME" >"$1"', tmp_path / str(number), name=text))
        try:
            executor.submit(job)
        except jpsi.InvalidJobException:
            assert job.status.state is JobState.NEW
            continue
        jobs[number] = job

    for number, job in jobs.items():
        assert final_status(job).state is JobState.COMPLETED, texts[number]
        assert (tmp_path / str(number)).read_text() == legal_name(texts[number])
    refused = [text for number, text in enumerate(texts) if number not in jobs]
    # names that sbatch cannot take, or would not pass on to the job
    assert all(set(text) & set("\n/\\") or len(text) > 1024 for text in refused)
    assert not canary.exists()


def test_projects_arrive_as_they_are_or_are_refused(
    executor: JobExecutor, tmp_path: Path, texts: list[str], canary: Path
) -> None:
    """Without accounting Slurm takes any project."""
    for number, text in enumerate(texts):
        output = tmp_path / str(number)
        spec = shell(
            'printf %s "$SLURM_JOB_ACCOUNT" >"$1"', output, attributes=JobAttributes(project_name=text)
        )
        job = Job(spec)
        try:
            executor.submit(job)
        except jpsi.InvalidJobException:
            continue
        assert final_status(job).state is JobState.COMPLETED, text
        # Slurm converts projects to lower case
        assert output.read_text() == text.lower()
    assert not canary.exists()


def test_queues_that_do_not_exist_are_refused(executor: JobExecutor, texts: list[str], canary: Path) -> None:
    for text in texts:
        job = Job(shell("true", attributes=JobAttributes(queue_name=text)))
        with pytest.raises(jpsi.InvalidJobException):
            executor.submit(job)
        assert job.status.state is JobState.NEW
    assert not canary.exists()


def test_custom_attributes_are_values_and_nothing_else(
    executor: JobExecutor, texts: list[str], canary: Path
) -> None:
    for text in texts:
        job = Job(shell("true", attributes=custom(comment=text, hold=True)))
        try:
            executor.submit(job)
        except jpsi.InvalidJobException:
            continue
        comment = command("squeue", "-h", "-o", "%k", "-j", native_id(job)).rstrip("\n")
        job.cancel()
        assert comment.rpartition(" ")[0] == text
    assert not canary.exists()


def test_paths_are_taken_literally(
    executor: JobExecutor, tmp_path: Path, texts: list[str], canary: Path
) -> None:
    jobs = {}
    for number, text in enumerate(texts):
        if "/" in text or len(text) > 255:
            continue
        directory = tmp_path / str(number) / text
        jobs[directory] = Job(
            shell(
                "pwd; echo done >&2",
                directory=directory,
                create_directory=True,
                stdout_path=text,
                stderr_path=f"e{text}",
            )
        )
        executor.submit(jobs[directory])

    for directory, job in jobs.items():
        assert final_status(job).state is JobState.COMPLETED, directory
        assert (directory / directory.name).read_text() == f"{directory}\n"
        assert (directory / f"e{directory.name}").read_text() == "done\n"
    assert not canary.exists()


def test_directive_looking_text_is_no_directive(executor: JobExecutor, tmp_path: Path) -> None:
    lines = "\n".join(
        f"#SBATCH {it}" for it in ("--job-name=evil", "--partition=nowhere", "--hold", "--time=3")
    )
    pre_launch = tmp_path / "pre_launch"
    pre_launch.write_text(f"{lines}\n: '\n{lines}\n'\n")
    print_names = 'echo "$SLURM_JOB_NAME $SLURM_JOB_PARTITION" >"$1"'
    job = Job(
        shell(
            f"{lines}\n{print_names}; exit 7",
            tmp_path / "output",
            lines,
            name="plain",
            pre_launch=pre_launch,
            environment={"MINE": lines},
            directory=tmp_path,
        )
    )
    executor.submit(job)

    assert final_status(job).exit_code == 7
    assert (tmp_path / "output").read_text() == "plain main\n"
    assert command("squeue", "-h", "-t", "all", "-o", "%l", "-j", native_id(job)) == "10:00\n"


#: Variables that a user, or a surrounding job, may have set.
SURROUNDINGS = {
    "SBATCH_ACCOUNT": "evil",
    "SBATCH_ARRAY_INX": "0-3",
    "SBATCH_BEGIN": "now+1hour",
    "SBATCH_CHDIR": "/nowhere",
    "SBATCH_CLUSTERS": "nowhere",
    "SBATCH_COMMENT": "evil",
    "SBATCH_CPUS_PER_TASK": "7",
    "SBATCH_DEPENDENCY": "afterok:1",
    "SBATCH_ERROR": "/nowhere/error",
    "SBATCH_EXPORT": "NONE",
    "SBATCH_HOLD": "1",
    "SBATCH_INPUT": "/nowhere/input",
    "SBATCH_JOB_NAME": "evil",
    "SBATCH_MEM_PER_NODE": "7",
    "SBATCH_NODES": "7",
    "SBATCH_OUTPUT": "/nowhere/output",
    "SBATCH_PARTITION": "nowhere",
    "SBATCH_TEST_ONLY": "1",
    "SBATCH_TIMELIMIT": "3",
    "SBATCH_WAIT": "1",
    "SACCT_FORMAT": "jobname",
    "SCANCEL_INTERACTIVE": "1",
    "SCANCEL_NAME": "evil",
    "SCANCEL_STATE": "PENDING",
    "SCONTROL_ALL": "1",
    "SQUEUE_FORMAT": "%i",
    "SQUEUE_FORMAT2": "JobID",
    "SQUEUE_PARTITION": "debug",
    "SQUEUE_STATES": "PENDING",
    "SQUEUE_USERS": "root",
    "SLURM_CLUSTERS": "nowhere",
    "SLURM_CPUS_PER_TASK": "7",
    "SLURM_EXPORT_ENV": "NONE",
    "SLURM_HINT": "nomultithread",
    "SLURM_JOBID": "1",
    "SLURM_JOB_ID": "1",
    "SLURM_JOB_NAME": "evil",
    "SLURM_MEM_PER_CPU": "7",
    "SLURM_MEM_PER_NODE": "7",
    "SLURM_NNODES": "7",
    "SLURM_NTASKS": "7",
    "SLURM_RESTART_COUNT": "3",
    "SLURM_TASKS_PER_NODE": "7",
    "SLURM_TIMELIMIT": "3",
    "SLURM_TIME_FORMAT": "relative",
}


@pytest.mark.slurm(accounting=True)
def test_the_callers_environment_overrides_nothing(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**SURROUNDINGS, "MINE": "inherited"}.items():
        monkeypatch.setenv(name, value)
    output = tmp_path / "output"
    text = 'echo "$SLURM_JOB_NAME $SLURM_JOB_PARTITION $SLURM_NTASKS $SLURM_JOB_NUM_NODES $MINE" >>"$1"'

    job = Job(shell(f"{text}; exit 137", output, name="plain"))
    executor.submit(job)

    assert final_status(job).exit_code == 137
    assert output.read_text() == "plain main 1 1 inherited\n"
    with monkeypatch.context() as clean:
        for name in SURROUNDINGS:
            clean.delenv(name)
        assert command("squeue", "-h", "-t", "all", "-o", "%l", "-j", native_id(job)) == "10:00\n"

    endless = running(executor, PLAIN, tmp_path / "proof")
    endless.cancel()

    assert final_status(endless).state is JobState.CANCELED
    assert Proof(tmp_path / "proof").runs == 1
