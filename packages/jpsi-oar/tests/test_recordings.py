"""Coverage of the recordings: each step is read correctly, or a table gives the reason why it is not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from jpsi.plugin import FailureKind, JobState, Observation, Reason, SubmitException
from jpsi_oar import hooks
from jpsi_testing import Recording, command_result, read_recordings
from oar_support import CONTEXT, RECORDINGS

ALL = read_recordings(RECORDINGS)
_ENDED = {"Terminated", "Error"}


def _of(command: str) -> list[Recording]:
    return [step for step in ALL if step.argv[0] == command and not {"-V", "--help"} & {*step.argv}]


def _runs(note: str) -> dict[str, Observation]:
    (step,) = (
        it for it in ALL if it.source.endswith(", runs") and it.note == note and it.argv[0] == "oarstat"
    )
    numbers = re.findall(r"\d+", step.argv[-1].partition(")")[0])
    jobs = json.loads(step.result.stdout)
    arrays = {it["array_id"] for it in jobs.values() if it["array_index"] > 1}
    elements = [f"{it['array_id']}.{it['array_index']}" for it in jobs.values() if it["array_id"] in arrays]
    return dict(hooks.parse_status(step.result, elements or numbers))


@pytest.mark.parametrize("recording", _of("oarsub"), ids=str)
def test_oarsub(recording: Recording) -> None:
    result = recording.result
    if result.timed_out:
        return
    is_array = any(it.startswith("--array") for it in recording.argv)
    if result.returncode == 0:
        first = re.findall(r"OAR_JOB_ID=(\d+)", result.stdout)[0]
        context = attrs.evolve(CONTEXT, elements=3 if is_array else None)
        assert hooks.parse_submit(result, context) == first
        return
    failure = hooks.classify_failure(result)
    # A script with -S, a name or a message that the database refuses, and a lack of PWD, are none of jpsi's.
    is_foreign = (
        "-S" in recording.argv
        or "positive number" in result.stderr
        or result.stdout.endswith("OAR_JOB_ID=\n")
    )
    assert failure.kind is (FailureKind.AMBIGUOUS if is_foreign else FailureKind.INVALID_JOB), failure


def _listings() -> Iterator[tuple[Recording, dict[str, Any]]]:
    for step in _of("oarstat"):
        if "-J" in step.argv and "-f" in step.argv and step.result.stdout:
            yield step, json.loads(step.result.stdout)


@pytest.mark.parametrize(("recording", "jobs"), list(_listings()), ids=str)
def test_oarstat(recording: Recording, jobs: dict[str, Any]) -> None:
    """Each job has the printed state, and its end a reason or a code."""
    found = hooks.parse_status(recording.result, list(jobs))

    for number, job in jobs.items():
        observed = found.get(number) or found[f"{job['array_id']}.{job['array_index']}"]
        is_last = number == max((it for it in jobs if jobs[it]["array_id"] == job["array_id"]), key=int)
        if is_last or job["array_index"] > 1:
            assert observed.native_state == job["state"]
            assert observed.state is not None
            assert observed.final == (job["state"] in _ENDED)
            assert not observed.final or observed.exit_code is not None or observed.reason is not None


def test_the_recorded_ends_have_their_reasons_and_codes() -> None:
    ends = {
        step.note: hooks.parse_status(step.result, [step.argv[-1]])
        for step, _ in _listings()
        if step.argv[-2] == "-j"
    }
    found = {
        note: (it.state, it.reason, it.exit_code) for note, by_id in ends.items() for it in by_id.values()
    }

    failed = JobState.FAILED
    expected = {
        "ok": (JobState.COMPLETED, None, 0),
        "exit 7": (failed, None, 7),
        "kill -9 itself": (failed, None, 137),
        "exit 137": (failed, None, 137),
        "walltime 5 s": (failed, Reason.TIMEOUT, None),
        "del running": (JobState.CANCELED, Reason.CANCELLED, None),
        "del pending": (JobState.CANCELED, Reason.CANCELLED, None),
        "bad output": (failed, Reason.LAUNCH, None),
        "after failed": (JobState.COMPLETED, None, 0),
    }
    assert {note: found[note] for note in expected} == expected


def test_a_besteffort_job_is_preempted() -> None:
    (preempted,) = (
        it for it in _runs("a besteffort job that was killed for another").values() if it.tag == "jpsi-abc-1"
    )

    assert (preempted.state, preempted.reason) == (JobState.FAILED, Reason.PREEMPTED)


def test_an_idempotent_one_is_resubmitted() -> None:
    again = _runs("a besteffort job that was killed for another and resubmitted")
    (observed,) = (it for it in again.values() if it.tag == "jpsi-abc-3")
    (deleted,) = (it for it in _runs("a resubmitted job that was deleted").values() if it.tag == "jpsi-abc-3")

    assert (observed.final, observed.restarts) == (False, 1)
    assert (deleted.state, deleted.reason, deleted.restarts) == (JobState.CANCELED, Reason.CANCELLED, 1)


def test_elements_end_one_by_one() -> None:
    states = {
        name: it.state
        for name, it in _runs("an array, of which an element was deleted").items()
        if "." in name
    }
    codes = {
        name: it.exit_code for name, it in _runs("an array whose elements have ended").items() if "." in name
    }

    assert list(states.values()).count(JobState.CANCELED) == 1
    assert sorted(map(str, codes.values())) == ["1", "3", "None"]


def test_an_unknown_job_is_denied_and_nothing_is_no_answer() -> None:
    found = _runs("unknown, and the newest job")

    assert not found["999999"].exists
    silent = [it for it in ALL if "nothing is printed" in it.note]
    assert len(silent) == 2
    for step in silent:
        with pytest.raises(SubmitException):
            hooks.parse_status(step.result, ["1"])


def test_a_signal_before_the_walltime_is_the_jobs_own_end() -> None:
    assert {it.exit_code for it in _runs("ended by a checkpoint signal").values()} == {3}


@pytest.mark.parametrize("command", ["oardel", "oarhold", "oarresume"])
def test_requests(command: str) -> None:
    parse = hooks.parse_cancel if command == "oardel" else hooks.parse_hold
    for step in _of(command):
        numbers = [it for it in step.argv if it.isdecimal()] or re.findall(
            r"(?:job_id|array_id) = (\d+)", step.argv[-1]
        )
        if step.result.timed_out or "--sql" not in step.argv or not numbers:
            continue
        is_unchanged = step.note in {"already held", "ended"} or (
            step.note == "unknown" and command != "oardel"
        )
        assert bool(parse(step.result, numbers)) == is_unchanged, step


@pytest.mark.parametrize(("recording", "jobs"), list(_listings())[:1], ids=str)
def test_a_listing_that_is_cut_is_no_answer(recording: Recording, jobs: dict[str, Any]) -> None:
    text = recording.result.stdout.rstrip()
    for end in range(len(text)):
        with pytest.raises(SubmitException):
            hooks.parse_status(command_result(text[:end]), list(jobs))


def test_the_version_is_printed() -> None:
    (step,) = (it for it in ALL if it.argv == hooks.version().argv)

    assert "2.5.9" in step.result.stdout
