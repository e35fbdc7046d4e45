"""Coverage of the recordings: each step is read correctly, or a table gives the reason why it is not."""

from __future__ import annotations

import re

import pytest

from jpsi.plugin import NOT_OFFERED, FailureKind, JobState, SubmitException
from jpsi_slurm import hooks
from jpsi_slurm.states import STATES
from jpsi_testing import Recording, read_recordings
from slurm_support import (
    RECORDINGS,
    SITE,
    recorded_accounting,
    recorded_rows,
    replayed_sacct,
    replayed_squeue,
)

ALL = read_recordings(RECORDINGS)

# Scenarios of transcripts/slurm-22.05 that are not among the recordings.
UNUSED = {
    "export": "what --export does was decided from it; nothing in it is parsed",
    "mpi": "srun with MPI, read by launchers",
    "slurmrestd": "jpsi uses the commands",
    "strigger": "users may not use it",
}
# Commands that this package never calls.
NEVER_CALLED = {
    "/bin/sh": "test_identity.py reads what jpsi asks itself",
    "sinfo": "test_partitions.py reads the sizes of nodes, in one command with the partitions",
    "salloc": "jobs are submitted by sbatch",
    "srun": "the launcher's, and the fake's",
    "sacctmgr": "accounts are not listed",
    "strigger": "not for users",
    "tail": "of an administrator's file",
    "ls": "shows the recorder's directory",
}
# Forms in which this package never calls the others.
_SBATCH_DIFFERS = {"--wait", "--version", "-V", "--help", "--test-only", "-Q"}


def _why_unused(recording: Recording) -> str | None:
    command, *arguments = recording.argv
    if command in NEVER_CALLED:
        return NEVER_CALLED[command]
    if command == "sbatch" and _SBATCH_DIFFERS & set(arguments):
        return "waits for the job, or submits none, or does not tell its id"
    if command == "scancel" and ("--signal=NOSUCH" in arguments or not _ids(recording)):
        return "jobs are cancelled by their ids"
    if command == "scontrol" and arguments[0] not in {"hold", "release"} and arguments != ["show", "config"]:
        return "squeue tells the same, of all jobs at once"
    return None


def _of(command: str) -> list[Recording]:
    return [step for step in ALL if step.argv[0] == command and _why_unused(step) is None]


def _ids(recording: Recording) -> list[str]:
    return [word for word in recording.argv if word.isdecimal()]


def test_every_recorded_command_is_covered() -> None:
    assert {step.argv[0] for step in ALL} == {
        *("sbatch", "squeue", "sacct", "scancel", "scontrol"),
        *NEVER_CALLED,
    }


def test_every_recording_is_used() -> None:
    assert not UNUSED.keys() & {path.stem for path in RECORDINGS.glob("*.json")}


@pytest.mark.parametrize("recording", _of("sbatch"), ids=str)
def test_sbatch(recording: Recording) -> None:
    result = recording.result
    if result.returncode == 0:
        assert hooks.parse_submit(result) == re.findall(r"\d+", result.stdout)[0]
    else:
        assert hooks.classify_failure(result).kind is _expected_kind(recording)


def _expected_kind(recording: Recording) -> FailureKind:
    stderr = recording.result.stderr
    for words, kind in {
        "Socket timed out": FailureKind.AMBIGUOUS,
        "Unable to open file": FailureKind.AMBIGUOUS,  # never called with a file
        "Script arguments not permitted": FailureKind.AMBIGUOUS,  # never called with --wrap
        "connect failure": FailureKind.TRANSIENT,
        "REQUEST_SUBMIT_BATCH_JOB has authentication error": FailureKind.TRANSIENT,
        "alking to database": FailureKind.TRANSIENT,
        "talking to the database": FailureKind.TRANSIENT,
        "known by database": FailureKind.PERMANENT,
        "ClusterName needs to be specified": FailureKind.PERMANENT,
    }.items():
        if words in stderr:
            return kind
    return FailureKind.INVALID_JOB


@pytest.mark.parametrize("recording", _of("squeue"), ids=str)
def test_squeue(recording: Recording) -> None:
    """Each listed job has the printed state, whatever columns were requested."""
    result = recording.result
    if result.returncode != 0 and "Invalid job id specified" in result.stderr:
        assert not hooks.parse_status(result, ["999999"])["999999"].exists
        return
    if result.returncode != 0:
        with pytest.raises(SubmitException, match=r"\w"):
            hooks.parse_status(result, None)
        return

    rows = [row for row in recorded_rows(recording) if "[" not in row["JobArrayID"]]
    found = hooks.parse_status(replayed_squeue(list(rows)), None)

    assert {hooks.canonical_id(row["JobArrayID"]) for row in rows} <= found.keys()
    for row in rows:
        if "State" in row:
            seen = found[hooks.canonical_id(row["JobArrayID"])]
            assert seen.native_state == row["State"]
            assert seen.state is STATES[row["State"]].state


@pytest.mark.parametrize("recording", _of("sacct"), ids=str)
def test_sacct(recording: Recording) -> None:
    result = recording.result
    if "accounting storage is disabled" in result.stderr:
        assert hooks.parse_finished(result, SITE) is NOT_OFFERED
        return
    if result.returncode != 0:
        with pytest.raises(SubmitException, match=r"\w"):
            hooks.parse_finished(result, SITE)
        return

    rows = [
        row for row in recorded_accounting(recording) if re.fullmatch(r"\d+([_+]\d+)?", row.get("JobID", ""))
    ]
    found = hooks.parse_finished(replayed_sacct(list(rows)), SITE)

    for row in rows:
        if "-D" not in recording.argv and "State" in row:
            assert found[hooks.canonical_id(row["JobID"])].native_state == row["State"].partition(" ")[0]


@pytest.mark.parametrize("recording", _of("scancel"), ids=str)
def test_scancel(recording: Recording) -> None:
    ids = _ids(recording)

    refused = hooks.parse_cancel(recording.result, ids)

    assert set(refused) == (set(ids) if recording.result.returncode else set())


@pytest.mark.parametrize("recording", _of("scontrol"), ids=str)
def test_scontrol(recording: Recording) -> None:
    if recording.argv[1] == "show":
        assert hooks.parse_probe(recording.result)["version"] == [22, 5]
        return

    refused = hooks.parse_hold(recording.result, _ids(recording))

    assert set(refused) == (set(_ids(recording)) if recording.result.returncode else set())


def test_an_unreachable_controller_reports_no_job() -> None:
    queries = [step for step in ALL if step.argv[0] == "squeue" and "Unable to contact" in step.result.stderr]

    assert queries
    for step in queries:
        with pytest.raises(SubmitException, match="Unable to contact slurm controller"):
            hooks.parse_status(step.result, None)


def test_every_kind_of_end_is_distinguished() -> None:
    """The jobs of the scenario squeue-states, with the exit codes of squeue's exit_code."""
    steps = [step for step in ALL if "-O" in step.argv and "exit_code:|" in step.argv[-1]]
    rows = [{**row, "NodeList": "node01"} for step in steps for row in recorded_rows(step)]

    found = hooks.parse_status(replayed_squeue(list(rows)), None)

    ends = {name: (found[name].state, found[name].exit_code) for name in ("29", "35", "36", "45", "55", "64")}
    assert ends == {
        "29": (JobState.FAILED, None),  # its directory did not exist
        "35": (JobState.FAILED, 7),
        "36": (JobState.FAILED, 137),  # killed itself by signal 9
        "45": (JobState.FAILED, None),  # time used up
        "55": (JobState.COMPLETED, 0),
        "64": (JobState.CANCELED, None),
    }
