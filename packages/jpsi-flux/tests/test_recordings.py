"""Coverage of the recordings: each step is read correctly, or a table gives the reason why it is not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

import pytest

from flux_support import HOOKED, RECORDINGS, VERSIONS, recordings
from jpsi.plugin import FailureKind, JobState, Observation, Reason, SubmitException
from jpsi.plugin.kit import extract_tag
from jpsi_flux import hooks, native_ids, submit
from jpsi_flux.states import STATES
from jpsi_testing import Recording, command_result

# Scenarios of the transcripts that are not among the recordings.
UNUSED = {
    "job-submit-raw": "`flux job submit` wants the whole environment in its jobspec, which hooks do not know",
    "python-api": "of the bindings, only the journal is used, which flux-python-helper shows",
    "stdin": "why `flux submit` is given --input; in the script of `flux batch` jpsi opens what is read",
    "version": "help texts, from which the tables of options were made",
}
# Commands that this package never calls.
NEVER_CALLED = {
    "alloc": "it waits for the job",
    "bulksubmit": "several jobs at once",
    "dmesg": "not for users",
    "env": "not needed",
    "event": "not for users",
    "getattr": "about the instance, not its jobs",
    "job attach": "the job's own files hold its output",
    "job cancel": "gone since 0.59; `flux cancel` is older than that",
    "job cancelall": "gone",
    "job eventlog": "`flux jobs` tells of all jobs at once",
    "job hostpids": "not needed",
    "job id": "translated here, see below",
    "job info": "`flux jobs` tells of all jobs at once",
    "job kill": "a job that was killed so is FAILED; `flux cancel` cancels",
    "job last": "the submission printed the id",
    "job memo": "not needed",
    "job purge": "not for users",
    "job raise": "`flux cancel` raises what is wanted",
    "job status": "it waits for the job",
    "job submit": "its jobspec needs the whole environment",
    "job taskmap": "not needed",
    "job timeleft": "not needed",
    "job wait": "for the instance's owner, once",
    "job wait-event": "a process for each job",
    "kvs": "not for users",
    "overlay": "about nodes",
    "pgrep": "`flux jobs` tells the names of all jobs",
    "ping": "about the broker",
    "pkill": "`flux cancel` takes ids",
    "proxy": "FLUX_URI does as well",
    "python": "its script is in events.py; test_events runs that script",
    "queue": "test_queue_list reads what it says",
    "resource": "about nodes",
    "run": "the launcher's",
    "shutdown": "not for users",
    "stats": "about the broker",
    "update": "not offered",
    "uptime": "about the broker",
    "uri": "about the instance",
    "version": "nothing depends on it",
    "--version": "nothing depends on it",
}
# Forms in which this package never calls the others.
_SUBMIT_DIFFERS = {
    "--dry-run": "submits nothing",
    "--quiet": "tells no id",
    "--log": "tells no id",
    "--wait": "waits for the job",
    "--watch": "waits for the job",
    "--cc": "several jobs",
    "--bcc": "several jobs",
}


def _name(recording: Recording) -> str:
    words = recording.argv[1:3] if recording.argv[1] == "job" else recording.argv[1:2]
    return " ".join(words)


def _flux() -> Iterator[Recording]:
    yield from (step for step in recordings() if step.argv[0] == "flux")


def _why_unused(recording: Recording) -> str | None:
    name, words = _name(recording), recording.argv[2:]
    if name in {"submit", "batch"} and (recording.result.timed_out or recording.result.returncode < 0):
        return "AMBIGUOUS, and no hook is called"
    if name in {"submit", "batch"}:
        return next((why for word in words if (why := _SUBMIT_DIFFERS.get(word.partition("=")[0]))), None)
    if name == "jobs":
        return _why_unlisted(recording)
    if name == "cancel" and ("-m" in words or not _ids(recording)):
        return "jobs are cancelled by their ids, without a reason"
    return NEVER_CALLED.get(name)


def _why_unlisted(recording: Recording) -> str | None:
    if "--json" not in recording.argv:
        return "jobs are listed as JSON"
    if {"-f", "-q", "-u"} & set(recording.argv):
        return "jobs are queried by their ids, or all together"
    return "the answer was cut by who recorded it" if "cut" in recording.note else None


def _of(name: str) -> list[Recording]:
    return [step for step in _flux() if _name(step) == name and _why_unused(step) is None]


def _ids(recording: Recording) -> list[str]:
    """Return the ids that a command was called with, in jpsi's spelling."""
    found = []
    for word in recording.argv[2:]:
        try:
            found.append(hooks.canonical_id(word))
        except ValueError:
            continue
    return found


def _has_malformed(recording: Recording) -> bool:
    words = [word for word in recording.argv[2:] if not word.startswith("--") and word not in {"-a", "-c0"}]
    return len(_ids(recording)) < len(words)


def test_every_recorded_command_is_covered() -> None:
    known = {"submit", "batch", "jobs", "cancel", "job urgency", *NEVER_CALLED}

    assert {_name(step) for step in _flux()} <= known


def test_every_recording_is_used_or_listed_as_unused() -> None:
    """A table lists the recordings; `x-*` are several, and `x(-y)` is x and x-y."""
    text = (RECORDINGS / "0.88.0" / "README.md").read_text()
    table = text.partition("| scenario |")[2].partition("\n## ")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| ")]
    alone = [re.sub(r"(\S+)\((\S+)\)", r"\1, \1\2", cell).strip() for cell in cells]
    named = {name for cell in alone for name in cell.split(", ")}
    kept = {path.stem for path in RECORDINGS.glob("*/*.json")}

    assert not UNUSED.keys() & kept
    assert {name for name in named if "*" not in name} <= kept | UNUSED.keys()
    assert [it for it in kept | UNUSED.keys() if not any(fnmatch(it, name) for name in named)] == []


# ------------------------------------------------------------------------------------------ submitting


@pytest.mark.parametrize("recording", [*_of("submit"), *_of("batch")], ids=str)
def test_submission(recording: Recording) -> None:
    result = recording.result
    if result.returncode == 0:
        printed = result.stdout.strip()
        assert hooks.parse_submit(result) == hooks.canonical_id(printed)
        assert hooks.parse_submit(
            command_result(f"Welcome!\n{result.stdout}good bye\n")
        ) == hooks.canonical_id(printed)
    else:
        assert hooks.classify_failure(result).kind is _expected_kind(recording)


def _expected_kind(recording: Recording) -> FailureKind:
    stderr = recording.result.stderr
    for words, kind in {
        "connector name": FailureKind.PERMANENT,
        "Flux: Permission denied": FailureKind.PERMANENT,
        "Flux: Invalid argument": FailureKind.PERMANENT,
        "Unable to connect": FailureKind.TRANSIENT,
        "is disabled": FailureKind.TRANSIENT,
        "signer=": FailureKind.PERMANENT,
        "sentinel": FailureKind.AMBIGUOUS,  # `flux batch` is given no directives
        "orphan": FailureKind.AMBIGUOUS,
        "No closing quotation": FailureKind.AMBIGUOUS,
    }.items():
        if words in stderr:
            return kind
    return FailureKind.INVALID_JOB


def test_a_refusal_has_the_message_of_flux() -> None:
    step = next(it for it in _of("submit") if "exceeds policy limit of 30m" in it.result.stderr)

    failure = hooks.classify_failure(step.result)

    assert failure.message == "flux: requested duration (2h) exceeds policy limit of 30m for queue debug"


def test_several_ids_are_refused() -> None:
    """`--cc` prints an id for each job; jpsi never uses it."""
    step = next(it for it in recordings("bulk-submit") if "--cc=0-3" in it.argv)

    with pytest.raises(ValueError, match="several job ids"):
        hooks.parse_submit(step.result)


@pytest.mark.parametrize("version", VERSIONS)
def test_ids_are_read_as_flux_reads_them(version: str) -> None:
    """All spellings but the words and emoji of its dictionary, which are refused like invalid ids."""
    conversions = [
        step for step in recordings("id-formats", version) if step.argv[:3] == ("flux", "job", "id")
    ]
    inputs = [step for step in conversions if len(step.argv) == 4 and not step.argv[3].startswith("--")]

    assert len(inputs) > 10
    for step in inputs:
        text, native_id = step.argv[3], step.result.stdout.strip()
        if step.result.returncode != 0 or "-" in text or not re.match(rf"[0-9a-zA-Z{HOOKED}]", text):
            with pytest.raises(ValueError, match="is not a Flux job id"):
                hooks.canonical_id(text)
        else:
            assert hooks.canonical_id(text) == native_id
    plain = {step.argv[3]: step.result.stdout.strip() for step in conversions if "--to=f58plain" in step.argv}
    assert native_ids.f58("7290690207744") in {"f4JWpL1vw", *plain.values()}


def test_nothing_of_a_surrounding_job_reaches_a_new_one() -> None:
    """Of the variables that Flux sets in jobs, only those that locate the instance are inherited."""
    unset = submit.INHERITED_VARIABLES
    pattern = re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in unset) + r"\Z")
    printed = [it for it in recordings("job-environment") if it.argv[0] == "cat"]
    names = {
        line.partition("=")[0] for step in printed for line in step.result.stdout.splitlines() if "=" in line
    }

    assert "FLUX_JOB_ID" in names
    assert {name for name in names if re.match("FLUX|PMI|OMPI", name) and not pattern.match(name)} == {
        "FLUX_CONNECTOR_PATH",
        "FLUX_EXEC_PATH",
        "FLUX_MODULE_PATH",
        "FLUX_TERMINUS_SESSION",
        "FLUX_URI",
    }


@pytest.mark.parametrize(
    ("version", "knowing"),
    [("0.58.0", ["submit"]), ("0.88.0", ["submit", "submit", "batch", "batch"])],
)
def test_the_variables_with_a_jobs_own_id_hold_its_id(version: str, knowing: list[str]) -> None:
    """In the instance of a `flux batch` job of 0.58 they do not; jpsi then uses the tag."""
    steps = recordings("job-environment", version)
    submitted = {
        hooks.parse_submit(step.result): step.argv[1] for step in steps if step.argv[1] in {"submit", "batch"}
    }
    own_ids = []
    for text in [step.result.stdout.partition("in-flux-run")[0] for step in steps if step.argv[0] == "cat"]:
        variables = dict(re.findall(r"^(FLUX_JOB_ID|FLUX_ENCLOSING_ID)=(.+)$", text, re.MULTILINE))
        own_ids += [variables.get("FLUX_JOB_ID") or variables["FLUX_ENCLOSING_ID"]] if variables else []

    # e1.1 of 0.58.0 is a file that the recording of 0.88.0 has left
    known = [submitted.get(hooks.canonical_id(text)) for text in own_ids]
    assert [it for it in known if it is not None] == knowing


# --------------------------------------------------------------------------------------------- listing


@pytest.mark.parametrize("recording", _of("jobs"), ids=str)
def test_jobs(recording: Recording) -> None:
    """Each listed job has the printed state, and no other job is reported."""
    result = recording.result
    unknown = "unknown" in result.stderr
    if result.timed_out or _has_malformed(recording) or (result.returncode != 0 and not unknown):
        with pytest.raises(SubmitException, match=r"\w"):
            hooks.parse_status(result, _ids(recording) or None)
        return
    queried = _ids(recording)

    found = hooks.parse_status(result, queried or None)

    about = list(_about(recording))
    known = {str(job["id"]) for job in about}
    assert {it for it, seen in found.items() if seen.exists} == known
    assert {it for it, seen in found.items() if not seen.exists} == {*queried} - known
    for job in about:
        seen = found[str(job["id"])]
        assert seen.native_state == job["status"]
        assert seen.tag == extract_tag(job.get("name", ""))
        assert seen.submitted is not None
        assert seen.state is not None
        is_final = job["state"] == "INACTIVE"
        assert seen.state.final == is_final
        assert is_final or seen.state is STATES[job["status"]]
        assert seen.exit_code is None or seen.exit_code == job["returncode"]


def _about(recording: Recording) -> Iterator[dict[str, Any]]:
    if recording.result.stdout:
        listing = json.loads(recording.result.stdout)
        yield from listing.get("jobs", [listing])


# The table in the README of 0.88.0, "Mapping"; by scenario: the last output about its job.
_F, _C = JobState.FAILED, JobState.CANCELED
ENDS: dict[str, tuple[JobState, Reason | None, int | None, bool | None]] = {
    "state-completed": (JobState.COMPLETED, None, 0, True),
    "state-failed-exit7": (_F, None, 7, True),
    "state-exit130": (_F, None, 130, True),
    "state-exit255": (_F, None, 255, True),
    "state-signal-kill": (_F, None, 137, True),
    "state-signal-segv": (_F, None, 139, True),
    "state-signal-term": (_F, None, 143, True),
    "state-two-tasks-one-fails": (_F, None, 3, True),
    "state-two-tasks-one-signalled": (_F, None, 137, True),
    "state-job-kill": (_F, None, 137, True),
    "state-shell-killed": (_F, None, None, True),
    "state-timeout": (_F, Reason.TIMEOUT, None, True),
    "state-timeout-exit0": (_F, Reason.TIMEOUT, None, True),
    "state-timeout-stubborn": (_F, Reason.TIMEOUT, None, True),
    "state-cancelled-running": (_C, Reason.CANCELLED, None, True),
    "state-cancel-stubborn": (_C, Reason.CANCELLED, None, True),
    "state-cancelled-pending": (_C, Reason.CANCELLED, None, False),
    "state-cancelled-held": (_C, Reason.CANCELLED, None, False),
    "state-cancelled-depend": (_C, Reason.CANCELLED, None, False),
    "state-dependency-failed": (_C, Reason.DEPENDENCY, None, False),
    "state-command-not-found": (_F, Reason.LAUNCH, None, True),
    "state-cwd-missing": (JobState.COMPLETED, None, 0, True),
    "state-user-exception": (_F, None, 143, True),
    "state-depend-afterok": (JobState.QUEUED, None, None, None),
    "state-depend-begin-time": (JobState.QUEUED, None, None, None),
    "state-pending": (JobState.QUEUED, None, None, None),
    "state-held": (JobState.QUEUED, None, None, None),
    "state-running": (JobState.ACTIVE, None, None, None),
}


def _last_observation(scenario: str, version: str) -> Observation:
    step = [it for it in recordings(scenario, version) if it.argv[:3] == ("flux", "jobs", "--json")][-1]
    (seen,) = hooks.parse_status(step.result, None).values()
    return seen


def test_every_end_is_covered() -> None:
    for version in VERSIONS:
        assert {path.stem for path in (RECORDINGS / version).glob("state-*.json")} == ENDS.keys()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("scenario", ENDS)
def test_every_kind_of_end_is_distinguished(scenario: str, version: str) -> None:
    seen = _last_observation(scenario, version)

    assert (seen.state, seen.reason, seen.exit_code, seen.ran) == ENDS[scenario]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_that_never_fits_failed_to_launch(version: str) -> None:
    step = next(it for it in recordings("submit-errors", version) if "--json" in it.argv)
    (seen,) = hooks.parse_status(step.result, None).values()

    assert (seen.state, seen.reason, seen.exit_code, seen.ran) == (
        JobState.FAILED,
        Reason.LAUNCH,
        None,
        False,
    )
    assert "unsatisfiable request" in (seen.message or "")


def test_a_lost_node_is_reported() -> None:
    steps = [step for step in recordings("site-node-trouble") if "--json" in step.argv]
    seen = [it for step in steps for it in hooks.parse_status(step.result, None).values()]

    lost = [it for it in seen if it.state is JobState.FAILED]
    assert [it.reason for it in lost] == [Reason.NODE_FAIL] * 2
    assert [it.nodes for it in lost] == [("node2",), ("node0", "node2")]


def test_large_ids_retain_every_digit() -> None:
    largest = max(int(native_id) for step in _of("jobs") for native_id in _ids(step))

    assert hooks.canonical_id(native_ids.f58(str(largest))) == str(largest)
    assert hooks.canonical_id(native_ids.f58(str(2**63 + 1))) == str(2**63 + 1)


def test_an_unreachable_broker_reports_no_job() -> None:
    queries = [step for step in _of("jobs") if "Unable to connect" in step.result.stderr]

    assert len(queries) > 10
    for step in queries:
        with pytest.raises(SubmitException, match="Unable to connect to Flux"):
            hooks.parse_status(step.result, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_found_by_a_tag_in_their_name(version: str) -> None:
    found = dict[str, str]()
    for step in [it for it in recordings("names", version) if "--json" in it.argv]:
        found |= hooks.parse_find(step.result, ["jpsi-0b7c1e52", "b", "jpsi"])

    assert found.keys() == {"jpsi-0b7c1e52", "b"}


# ------------------------------------------------------------------------------------------- changing


@pytest.mark.parametrize("recording", _of("cancel"), ids=str)
def test_cancel(recording: Recording) -> None:
    result, queried = recording.result, _ids(recording)

    refused = hooks.parse_cancel(result, queried)

    hopeless = result.timed_out or _has_malformed(recording) or "Unable to connect" in result.stderr
    guest = "guests can only" in result.stderr
    assert set(refused) == (set(queried) if hopeless or guest else set())


@pytest.mark.parametrize("recording", _of("job urgency"), ids=str)
def test_urgency(recording: Recording) -> None:
    queried = _ids(recording)[:1]

    refused = hooks.parse_hold(recording.result, queried)

    assert set(refused) == (set(queried) if recording.result.returncode else set())
