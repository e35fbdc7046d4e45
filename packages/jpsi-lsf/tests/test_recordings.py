"""Coverage of the recordings: each step is read correctly, or a table gives the reason why it is not."""

from __future__ import annotations

import json
import re

import attrs
import pytest

from jpsi.plugin import CommandResult, FailureKind, JobState, Observation, Reason, SubmitException
from jpsi_lsf import hooks
from jpsi_lsf.native_ids import expand_ids
from jpsi_lsf.queue.json_listing import FIELDS, record_id
from jpsi_lsf.states import STATES
from jpsi_testing import Recording, command_result, read_recordings
from lsf_support import MODERN, OLD, RECORDINGS, bjobs_l, recordings

ALL = read_recordings(RECORDINGS)

# Scenarios of transcripts/volclava-2.2 that are not among the recordings.
UNUSED = {"latency": "measurements, and no answers"}
# Commands that this package never calls.
NEVER_CALLED = {
    "bacct": "volclava has none; bhist tells the same",
    "bhosts": "hosts are not listed",
    "bpeek": "the runner opens the streams",
    "bpost": "volclava has none",
    "bread": "volclava has none",
    "brequeue": "jobs are put back by others",
    "bswitch": "jobs stay in their queue",
    "bugroup": "groups are not listed",
    "busers": "users are not listed",
    "lshosts": "hosts are not listed",
    "lsid": "bjobs -V tells the version too",
    "lsinfo": "resources are not listed",
    "ls": "shows the recorder's directory",
    "lsload": "hosts are not listed",
    "sh": "changes the directory before a command",
}
_UNFINISHED = {word for word, meaning in STATES.items() if not meaning.state.final}


def _why_unused(recording: Recording) -> str | None:  # noqa: PLR0911  a list of reasons
    command, *arguments = recording.argv
    if command in NEVER_CALLED:
        return NEVER_CALLED[command]
    if {"-h", "-V"} & set(arguments):
        return "tells how it is used, or its version"
    if command == "bjobs" and "-l" not in arguments and "-json" not in arguments:
        return "columns, which are truncated or ambiguous"
    if command == "bhist" and "-l" not in arguments:
        return "a summary of seconds"
    if command in {"bparams", "bqueues"} and "-l" not in arguments:
        return "columns"
    if command in {"bkill", "bstop", "bresume"} and (not _ids(recording) or "-s" in arguments):
        return "jobs are named by their ids, and sent no other signals"
    return None


def _of(*commands: str) -> list[Recording]:
    return [step for step in ALL if step.argv[0] in commands and _why_unused(step) is None]


def _ids(recording: Recording) -> list[str]:
    return [native_id for word in recording.argv[1:] for native_id in expand_ids(word)]


def test_every_recorded_command_is_covered() -> None:
    assert {step.argv[0] for step in ALL} == {
        *("bsub", "bjobs", "bhist", "bparams", "bqueues", "bkill", "bstop", "bresume"),
        *NEVER_CALLED,
    }


def test_every_recording_is_used() -> None:
    assert not UNUSED.keys() & {path.stem for path in RECORDINGS.glob("*.json")}


@pytest.mark.parametrize("recording", _of("bsub"), ids=str)
def test_bsub(recording: Recording) -> None:
    result = recording.result
    if "BSUB_QUIET" in recording.environment:
        with pytest.raises(ValueError, match="no job id"):
            hooks.parse_submit(result)
    elif "is submitted to" in result.stdout:
        assert hooks.parse_submit(result) == re.findall(r"\d+", result.stdout)[0]
    elif result.returncode >= 0:
        # a killed bsub has no message to classify
        assert hooks.classify_failure(result).kind is _expected_kind(result.stderr)


def _expected_kind(stderr: str) -> FailureKind:
    for words, kind in {
        "Communication time out": FailureKind.AMBIGUOUS,
        "illegal option": FailureKind.INVALID_JOB,
        "Connection refused by server": FailureKind.TRANSIENT,
        "Queue has been closed": FailureKind.TRANSIENT,
        "Unable to open file lsf.conf": FailureKind.PERMANENT,
        "-s option is set": FailureKind.AMBIGUOUS,
    }.items():
        if words in stderr:
            return kind
    return FailureKind.INVALID_JOB if stderr.strip() else FailureKind.AMBIGUOUS


def _with_all_fields(recording: Recording) -> CommandResult:
    """Return volclava's output as if it knew all the fields that LSF 10.1 has."""
    listing = json.loads(recording.result.stdout)
    usual = dict.fromkeys(FIELDS.upper().split(), "") | {"STAT": "RUN", "JOBINDEX": "0"}
    for row in listing["RECORDS"]:
        if "ERROR" not in row:
            index = re.search(r"\[(\d+)\]\Z", row.get("JOB_NAME", ""))
            row.update(usual | {"JOBID": "1"} | row | ({"JOBINDEX": index[1]} if index else {}))
    return attrs.evolve(recording.result, stdout=json.dumps(listing))


@pytest.mark.parametrize("recording", [it for it in _of("bjobs") if "-json" in it.argv], ids=str)
def test_bjobs_with_json(recording: Recording) -> None:
    """Each listed job has the printed state, and each unknown job is denied."""
    result = recording.result
    if not result.stdout.startswith("{"):
        if "unfinished job found" in result.stderr:
            assert hooks.parse_status(result, None, MODERN) == {}
        else:
            with pytest.raises(SubmitException, match=r"\w"):
                hooks.parse_status(result, ["87"], MODERN)
        return
    result = _with_all_fields(recording)
    rows = json.loads(result.stdout)["RECORDS"]
    unknown = [it for row in rows for it in re.findall(r"^Job <(.+)> is not found", row.get("ERROR", ""))]

    found = hooks.parse_status(result, unknown or None, MODERN)

    assert {name: seen.native_state for name, seen in found.items() if not seen.exists} == {
        name: f"Job <{name}> is not found" for name in unknown
    }
    for row in rows:
        if "STAT" in row:
            assert found[record_id(row)].native_state == row["STAT"]


@pytest.mark.parametrize("recording", [it for it in _of("bjobs") if "-l" in it.argv], ids=str)
def test_bjobs_in_paragraphs(recording: Recording) -> None:
    """Jobs that have not ended have the printed state; bhist is queried for the others."""
    output = recording.result.stdout
    words = dict(re.findall(r"^Job <([^>]+)>.*?, Status <(\w+)>", output, re.MULTILINE))
    arrays = {it.partition("[")[0] for it in words if "[" in it}
    queried = [it for it in _ids(recording) if it not in arrays]

    found = hooks.parse_status(recording.result, queried or None, OLD)

    assert {name: seen.native_state for name, seen in found.items() if seen.exists} == {
        name: word for name, word in words.items() if word in _UNFINISHED
    }
    assert {name for name, seen in found.items() if not seen.exists} == {*queried} - words.keys()
    tags = dict(re.findall(r"^Job <([^>]+)>.*, Job Description <(\S+)>", output, re.MULTILINE))
    assert all(seen.tag == tags.get(name, "") for name, seen in found.items() if seen.exists)


@pytest.mark.parametrize("recording", _of("bhist"), ids=str)
def test_bhist(recording: Recording) -> None:
    result = recording.result
    if result.returncode < 0 or "LIM" in result.stderr:
        with pytest.raises(SubmitException):
            hooks.parse_finished(result, ["7"], OLD)
        return
    codes = dict(
        re.findall(
            r"^Job <([^>]+)>(?:(?!^Job <)[\s\S])*Exited with exit code (\d+)", result.stdout, re.MULTILINE
        )
    )

    found = hooks.parse_finished(result, _ids(recording), OLD)

    if "No matching job found" in result.stdout:
        assert found == {it: Observation.denied("No matching job found") for it in _ids(recording)}
    for name, code in codes.items():
        seen = found[name]
        assert seen.state is not None
        assert seen.exit_code == (int(code) if seen.state.final else None)
    tags = dict(re.findall(r"^Job <([^>]+)>.*, Job Description <(\S+)>", result.stdout, re.MULTILINE))
    assert all(seen.tag == tags.get(name, "") for name, seen in found.items() if seen.exists)


def test_the_ends_of_jobs_by_bhist() -> None:
    """The last output of bhist about the jobs of many scenarios."""
    ends = {
        name: (seen.state, seen.exit_code, seen.reason)
        for step in _of("bhist")
        if step.result.returncode >= 0 and "LIM" not in step.result.stderr
        for name, seen in hooks.parse_finished(step.result, _ids(step), OLD).items()
    }

    failed, cancelled = JobState.FAILED, JobState.CANCELED
    assert {name: ends[name] for name in EXPECTED} == EXPECTED
    assert {ends[name][0] for name in ("59", "88", "1248")} == {failed}
    assert ends["67"][0] is cancelled


_FAILED, _CANCELED, _ACTIVE = JobState.FAILED, JobState.CANCELED, JobState.ACTIVE
EXPECTED = {
    "56": (JobState.COMPLETED, None, None),  # DONE, which volclava prints for killed jobs too
    "59": (_FAILED, 7, None),
    "67": (_CANCELED, None, Reason.CANCELLED),  # killed while it was pending
    "68": (_CANCELED, 130, Reason.CANCELLED),
    "69": (_CANCELED, None, Reason.CANCELLED),  # caught the signal and exited with 0: DONE
    "70": (_CANCELED, 130, Reason.CANCELLED),
    "71": (JobState.QUEUED, None, None),  # submitted with hold
    "73": (_ACTIVE, None, None),  # requeued, and runs again
    "156": (_FAILED, 140, Reason.TIMEOUT),
    "157": (_FAILED, None, Reason.TIMEOUT),  # killed ten minutes later: DONE
    "158": (_FAILED, None, Reason.TIMEOUT),  # caught the signal and exited with 0: DONE
    "1231": (_CANCELED, 130, Reason.CANCELLED),  # by the administrator
    "1232": (_FAILED, 4, None),
    "1248": (_FAILED, 7, None),
    "1253": (_FAILED, None, None),  # exited with 0 while sbatchd was down
    "1254": (_CANCELED, None, Reason.CANCELLED),
    "1257": (_CANCELED, None, Reason.CANCELLED),
}


_DENIED = "User permission denied"
_NOT_HELD = dict.fromkeys(["72", "3[1]"], "Job has already finished") | {"1230": _DENIED}


@pytest.mark.parametrize("recording", _of("bkill", "bstop", "bresume"), ids=str)
def test_changes(recording: Recording) -> None:
    """The jobs with a message are those that were refused, unless they ended or the change is delayed."""
    result, ids = recording.result, _ids(recording)
    queried = [name for name in ids if int(name.partition("[")[0]) < 1 << 31]
    if result.returncode < 0:
        return  # killed by the recorder: never read
    if "Bad job array index list" in result.stderr:
        assert hooks.parse_cancel(result, queried).keys() == set(queried)
    elif recording.argv[0] == "bkill":
        assert hooks.parse_cancel(result, queried) == {it: _DENIED for it in queried if it == "1230"}
    else:
        assert hooks.parse_hold(result, queried) == {
            it: _NOT_HELD[it] for it in queried if it in _NOT_HELD and result.returncode != 0
        }


@pytest.mark.parametrize("recording", _of("bqueues"), ids=str)
def test_bqueues(recording: Recording) -> None:
    """The second half of the probe's output, after volclava's error about fields of LSF 10.1."""
    refusal = next(
        step for step in recordings("bjobs-forms") if step.argv[:3] == ("bjobs", "-o", "jobid stat exit_code")
    )
    combined = command_result(recording.result.stdout, refusal.result.stderr, recording.result.returncode)

    assert hooks.parse_probe(combined) == {
        "json": False,
        "requeue_exit_codes": [],
        "max_job_array_size": 1000,
    }


def test_an_unreachable_daemon_reports_no_job() -> None:
    queries = [step for step in recordings("mbatchd-down") if step.argv[0] in {"bjobs", "bhist"}]
    hung = [step for step in queries if step.result.returncode not in {0, 254}]

    assert hung
    for step in hung:
        with pytest.raises(SubmitException, match=r"\w"):
            hooks.parse_status(step.result, ["1232"], OLD)
        with pytest.raises(SubmitException, match=r"\w"):
            hooks.parse_status(step.result, ["1232"], MODERN)
        with pytest.raises(SubmitException, match=r"\w"):
            hooks.parse_finished(step.result, _ids(step), OLD)


def test_one_bsub_that_created_five_jobs() -> None:
    """The output is the last job; the tag finds the first, which is the one that will run."""
    step = recordings("bsub-duplicates")[0]
    heads = [
        f"Job <{number}>, User <u>, Status <PEND>, Queue <q>, Command <x>, Job Description <jpsi-a-1>"
        for number in (1245, 1243, 1241, 1242)
    ]

    assert hooks.parse_submit(command_result(step.result.stdout)) == "1245"
    assert hooks.parse_find(command_result(bjobs_l(*heads)), ["jpsi-a-1"], OLD) == {"jpsi-a-1": "1241"}
