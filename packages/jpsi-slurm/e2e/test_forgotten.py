"""Jobs that Slurm forgets before jpsi polls it: the outcome is right, or reported as unknown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import attrs
import pytest
from real_slurm import (
    Control,
    attach,
    final_status,
    job_with_proof,
    native_id,
    sbatch,
    submit_from_another_process,
    wait_for_proof,
    wait_until_forgotten,
)

from jpsi import Evidence, Job, JobExecutor, JobState, JobStatus, Reason
from jpsi_slurm import SlurmConfig
from jpsi_testing.conformance.base import Gate, shell
from jpsi_testing.waiting import eventually

PLAIN = pytest.param(False, marks=pytest.mark.slurm(min_job_age=2), id="no accounting")
ACCOUNTED = pytest.param(True, marks=pytest.mark.slurm(accounting=True, min_job_age=2), id="accounting")
BOTH_WAYS = pytest.mark.parametrize("is_accounted", [PLAIN, ACCOUNTED])

#: The jobs' commands and exit codes.
ENDS = {"true": 0, "exit 7": 7, "exit 137": 137, "exit 200": 200, "kill -9 $$": 137}


@BOTH_WAYS
def test_markers_have_the_exit_codes_of_forgotten_jobs(config: SlurmConfig, is_accounted: bool) -> None:
    """MinJobAge is shorter than the poll interval, however long Slurm takes to forget a job."""
    rarely = timedelta(seconds=8)
    config = attrs.evolve(config, shortest_interval=rarely, longest_interval=rarely)
    with JobExecutor.get_instance("slurm", config=config) as executor:
        jobs = {text: Job(shell(text)) for text in ENDS}
        for job in jobs.values():
            executor.submit(job)
        wait_until_forgotten(native_id(jobs["kill -9 $$"]))

        ends = {text: final_status(job) for text, job in jobs.items()}

    assert {text: it.exit_code for text, it in ends.items()} == ENDS
    assert {it.evidence for it in ends.values()} == {Evidence.MARKER}


def _removed(events: Path) -> None:
    """Remove the directory of markers."""
    for path in events.iterdir():
        path.unlink()
    events.rmdir()


def _unwritable(events: Path) -> None:
    """Make the directory of markers read-only."""
    events.chmod(0o500)


Spoiled = Callable[[Path], None]
HOWEVER_SPOILED = pytest.mark.parametrize("spoiled", [_unwritable, _removed])


@pytest.mark.long
@HOWEVER_SPOILED
@BOTH_WAYS
def test_without_markers_only_known_facts_are_reported(
    config: SlurmConfig, tmp_path: Path, spoiled: Spoiled, is_accounted: bool
) -> None:
    ends = _unmarked(config, tmp_path, spoiled)

    if is_accounted:
        assert _summary(ends[0]) == (JobState.COMPLETED, 0, None, Evidence.ACCOUNTING)
        # sacct of this version takes 128 from codes above 127
        assert _summary(ends[7]) == (JobState.FAILED, None, Reason.LOST, Evidence.ACCOUNTING)
        assert "7 or 135" in (ends[7].message or "")
    else:
        for status in ends.values():
            assert _summary(status) == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)
            assert (status.message or "").endswith("/events")


@HOWEVER_SPOILED
def test_without_markers_the_queue_reports_exit_codes(
    executor: JobExecutor, tmp_path: Path, spoiled: Spoiled
) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = {code: Job(shell(_WAITING, gate.path, tmp_path / str(code), code)) for code in (0, 7, 137)}
    for code, job in jobs.items():
        executor.submit(job)
        wait_for_proof(tmp_path / str(code))

    with _spoiled(tmp_path, spoiled) as events:
        # the client makes it again
        assert spoiled is not _removed or eventually(events.is_dir)
        gate.open()
        ends = {code: final_status(job) for code, job in jobs.items()}

    assert {code: it.exit_code for code, it in ends.items()} == {code: code for code in jobs}
    if spoiled is _removed:
        assert {it.evidence for it in ends.values()} == {Evidence.MARKER}
    else:
        assert {it.evidence for it in ends.values()} == {Evidence.QUEUE}
        assert {it.metadata["marker"] for it in ends.values()} == {"missing"}


@pytest.mark.long
@pytest.mark.slurm(accounting=True, min_job_age=2)
def test_accounting_that_is_down_makes_outcomes_late_not_wrong(
    config: SlurmConfig, tmp_path: Path, control: Control
) -> None:
    gate, proof = Gate(tmp_path / "gate"), tmp_path / "proof"
    job_id = submit_from_another_process(tmp_path / "work", _WAITING, gate.path, proof, 0)
    wait_for_proof(proof)
    control("stop-accounting")
    with _spoiled(tmp_path, _unwritable):
        gate.open()
        wait_until_forgotten(job_id)
    # Slurm takes a while to send slurmdbd what it missed while it was down
    config = attrs.evolve(config, grace=timedelta(seconds=60))
    with JobExecutor.get_instance("slurm", config=config) as executor:
        (found,) = executor.recover()
        marked = job_with_proof(tmp_path / "marked", 7)
        executor.submit(marked)
        assert final_status(marked).exit_code == 7
        assert found.wait(8.0) is None

        control("up")

        assert _summary(final_status(found)) == (JobState.COMPLETED, 0, None, Evidence.ACCOUNTING)


@BOTH_WAYS
def test_a_foreign_job_that_slurm_has_forgotten_is_never_completed_on_a_guess(
    executor: JobExecutor, is_accounted: bool
) -> None:
    ids = {code: sbatch(f"exit {code}") for code in (0, 9)}
    for job_id in ids.values():
        wait_until_forgotten(job_id)

    jobs = {code: attach(executor, job_id) for code, job_id in ids.items()}

    ends = {code: final_status(job) for code, job in jobs.items()}
    if is_accounted:
        assert _summary(ends[0]) == (JobState.COMPLETED, 0, None, Evidence.ACCOUNTING)
        assert _summary(ends[9]) == (JobState.FAILED, None, Reason.LOST, Evidence.ACCOUNTING)
        assert "9 or 137" in (ends[9].message or "")
    else:
        unverified = (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)
        assert [_summary(it) for it in ends.values()] == [unverified] * 2


# Leaves the proof `$2`, waits for `$1`, and ends with the code `$3`.
_WAITING = f'echo ran >>"$2"; {Gate.WAIT}; exit "$3"'


def _unmarked(config: SlurmConfig, tmp_path: Path, spoiled: Spoiled) -> dict[int, JobStatus]:
    """Return the statuses, by exit code, of two jobs without markers that Slurm has forgotten."""
    gate = Gate(tmp_path / "gate")
    codes = {}
    for code in (0, 7):
        proof = tmp_path / str(code)
        codes[submit_from_another_process(tmp_path / "work", _WAITING, gate.path, proof, code)] = code
        wait_for_proof(proof)
    with _spoiled(tmp_path, spoiled):
        gate.open()
        for job_id in codes:
            wait_until_forgotten(job_id)
    with JobExecutor.get_instance("slurm", config=config) as executor:
        return {codes[native_id(job)]: final_status(job) for job in executor.recover()}


@contextlib.contextmanager
def _spoiled(tmp_path: Path, spoiled: Spoiled) -> Iterator[Path]:
    """Prevent jobs from leaving markers within the block; yield the directory of markers."""
    events = tmp_path / "work" / "slurm" / "events"
    spoiled(events)
    yield events
    if events.exists():
        events.chmod(0o700)


def _summary(status: JobStatus) -> tuple[JobState, int | None, Reason | None, Evidence | None]:
    return status.state, status.exit_code, status.reason, status.evidence
