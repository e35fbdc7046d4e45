"""Coverage of the recordings: each step is read correctly, or a table gives the reason why it is not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from gridengine_support import CONTEXT, RECORDINGS, recordings, replay, run_query
from jpsi.plugin import FailureKind, JobState, NotOffered, Reason, SubmitContext, SubmitException
from jpsi.plugin.kit import read_indices
from jpsi_gridengine import hooks
from jpsi_gridengine.states import state_meaning
from jpsi_testing import Recording, read_recordings

ALL = read_recordings(RECORDINGS)

# Commands that this package never calls.
NEVER_CALLED = {
    "qhost": "nodes are not listed",
    "qmod": "jobs are not suspended, nor their errors cleared",
    "qalter": "jobs are not changed",
}


def _why_unused(recording: Recording) -> str | None:
    """Return the reason why this package would not read this output."""
    command, *arguments = recording.argv
    if command in NEVER_CALLED or recording.source.endswith(", identity"):
        return NEVER_CALLED.get(command, "see test_identity.py")
    if command == "qsub" and ({"-sync", "-help", "-verify"} & {*arguments} or "v" in arguments):
        return "waits for the job, or submits none"
    if command == "qconf":
        return None if arguments == ["-sconf"] else "another part of the configuration"
    if command == "qstat" and ("-f" in arguments or "-help" in arguments or arguments[:1] == ["-g"]):
        return "lists queues"
    if (command == "qstat" and "-j" in arguments) or (command == "qacct" and "-j" not in arguments):
        return "says no states, or sums up accounts"
    return "all of another user's too" if arguments == ["-explain", "E"] else None


def _of(command: str) -> list[Recording]:
    return [step for step in ALL if step.argv[0] == command and _why_unused(step) is None]


def test_every_recorded_command_is_covered() -> None:
    used = {"qsub", "qstat", "qacct", "qconf", "qdel", "qhold", "qrls"}

    assert {step.argv[0] for step in ALL} - {"/bin/sh"} == used | NEVER_CALLED.keys()
    assert all(_of(command) for command in used)


@pytest.mark.parametrize("recording", _of("qsub"), ids=str)
def test_qsub(recording: Recording) -> None:
    result = recording.result
    if result.returncode == 0:
        assert hooks.parse_submit(result, _context(recording)) == re.findall(r"\d+", result.stdout)[0]
    else:
        assert hooks.classify_failure(result).kind is _expected_kind(recording)


def _context(recording: Recording) -> SubmitContext:
    return attrs.evolve(CONTEXT, elements=3 if "-t" in recording.argv else None)


def _expected_kind(recording: Recording) -> FailureKind:
    if "Error reading answer list" in recording.result.stderr:
        return FailureKind.AMBIGUOUS  # jpsi never submits with an illegal name
    if "unable to send message" in recording.result.stderr:
        return FailureKind.TRANSIENT
    return FailureKind.INVALID_JOB


@pytest.mark.parametrize("recording", _of("qstat"), ids=str)
def test_qstat(recording: Recording) -> None:
    """Each listed job has the printed state, in XML as in columns."""
    result = recording.result
    if result.returncode != 0:
        with pytest.raises(SubmitException, match="unable to send message"):
            hooks.parse_status(result, None)
        return
    if "-xml" in recording.argv:
        rows = [dict(re.findall(r"<(\w+)>(.*)</", row)) for row in result.stdout.split("<job_list")[1:]]
        words = {native_id: row["state"] for row in rows for native_id in _ids_of(row)}
        found = hooks.parse_status(result, list(words))
        assert {native_id: it.native_state for native_id, it in found.items()} == words
    # jpsi requests only XML, but the other forms have the same states
    words = re.findall(r"^ +\d+ [0-9.]+ .*?([a-zA-Z]+) +\d\d/\d\d/\d{4} ", result.stdout, re.MULTILINE)
    assert all(state_meaning(word) is not None or word == "z" for word in words)


def _ids_of(row: dict[str, str]) -> list[str]:
    number = row["JB_job_number"]
    if "tasks" not in row:
        return [number]
    return [f"{number}.{index}" for indices in read_indices(row["tasks"]) for index in indices]


def _named(words: Iterable[str]) -> list[str]:
    """Return the jobs and tasks that the arguments of a command name."""
    found = []
    for word in words:
        number, is_task, tasks = word.partition(".")
        found += _ids_of({"JB_job_number": number, **({"tasks": tasks} if is_task else {})})
    return found


def test_every_state_of_a_job_is_distinguished() -> None:
    (step,) = (it for it in recordings("qstat-qacct") if it.argv == ("qstat", "-xml"))

    found = hooks.parse_status(step.result, None)

    assert {native_id: it.state for native_id, it in found.items()} == {
        **dict.fromkeys(("270", "280", "281", "282", "285"), JobState.ACTIVE),
        **dict.fromkeys(("273", "274", "277", "278", "279", "286", "287", "288"), JobState.QUEUED),
    }
    assert found["273"].reason is Reason.LAUNCH
    assert found["270"].nodes == ("sge01",)
    assert found["270"].time == datetime(2026, 11, 21, 9, 0, 17, tzinfo=UTC)


@pytest.mark.parametrize("recording", _of("qacct"), ids=str)
def test_qacct(recording: Recording, tmp_path: Path) -> None:
    """Each job has the code of its last run; parallel jobs may have accounts of tasks as well."""
    result = recording.result
    last = {}
    for text in result.stdout.split("=" * 62)[1:]:
        account = dict(re.findall(r"^(\w+) +(\S+)", text, re.MULTILINE))
        number, task = account["jobnumber"], account["taskid"]
        if account.get("granted_pe") == "NONE" and account.keys() >= {"exit_status", "maxvmem"}:
            ran = account["failed"] not in {"26", "28"}
            code = int(account["exit_status"]) if ran else None
            last[number if task == "undefined" else f"{number}.{task}"] = code

    # `-j` and `-t` of the recording
    queried = [".".join([*recording.argv[2::2]] or ["1"])]
    if recording.note == "all":
        # the recorder truncated it
        with pytest.raises(SubmitException, match="malformed"):
            hooks.parse_finished(run_query(tmp_path, queried, replay(tmp_path, result)), queried)
        return
    found = hooks.parse_finished(run_query(tmp_path, queried, replay(tmp_path, result)), queried)

    assert not isinstance(found, NotOffered)
    assert {name: it.exit_code for name, it in found.items()} == last


def test_every_kind_of_end_is_distinguished(tmp_path: Path) -> None:
    """The jobs of the scenario qstat-qacct."""
    ends = {}
    for step in recordings("qstat-qacct"):
        if step.argv[:2] == ("qacct", "-j") and step.argv[-1].isdecimal():
            number = step.argv[-1]
            found = hooks.parse_finished(
                run_query(tmp_path, [number], replay(tmp_path, step.result)), [number]
            )
            assert not isinstance(found, NotOffered)
            end = found.get(number)
            ends[step.note] = end and (end.state, end.reason, end.exit_code)

    failed = JobState.FAILED
    assert ends == {
        "running": None,
        "ok": (JobState.COMPLETED, None, 0),
        "exit 7": (failed, None, 7),
        "exit 100 (error state Eqw)": (failed, None, 100),
        "exit 99 (rescheduled)": (JobState.COMPLETED, None, 0),
        "kill -9 itself": (failed, Reason.SIGNAL, 137),
        "exit 137": (failed, None, 137),
        "held": None,
        "start time": None,
        "waits for running": None,
        "h_rt 3": (failed, Reason.TIMEOUT, 137),
        "s_rt 3": (failed, Reason.TIMEOUT, 138),
        "too many slots": None,
        # a parallel job
        "env": None,
        # its tasks have accounts of their own
        "array": None,
        "qdel running": (failed, Reason.SIGNAL, 137),
        "qdel pending": None,
        "bad output dir": (failed, Reason.LAUNCH, None),
        "h_vmem": (failed, None, 2),
        "unknown": None,
    }


@pytest.mark.parametrize("recording", _of("qdel"), ids=str)
def test_qdel(recording: Recording) -> None:
    """Only jobs of another user could not be deleted; an ended or unknown job is no failure."""
    ids = _named(word for word in recording.argv[1:] if word[0].isdigit())
    is_refused = any(words in recording.result.stdout for words in ("privileges", "unable to send"))

    refused = hooks.parse_cancel(recording.result, ids)

    assert set(refused) == (set(ids) if is_refused else set())


@pytest.mark.parametrize("recording", [*_of("qhold"), *_of("qrls")], ids=str)
def test_qhold_and_qrls(recording: Recording) -> None:
    ids = _named(recording.argv[1:])

    refused = hooks.parse_hold(recording.result, ids)

    assert set(refused) == (set(ids) if recording.result.returncode else set())


@pytest.mark.parametrize("recording", _of("qconf"), ids=str)
def test_qconf(recording: Recording) -> None:
    assert hooks.parse_probe(recording.result) == {"largest_array": 75000}
