"""Coverage of the recordings: each step is read correctly, or a table gives the reason why it is not."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from jpsi.plugin import FailureKind, JobState, Observation, Reason, SubmitException
from jpsi_pbs.hooks import Hooks
from jpsi_pbs.native_ids import IDS
from jpsi_testing import Recording, read_recordings
from pbs_support import (
    OPENPBS_RECORDINGS,
    PBS,
    TORQUE,
    TORQUE_RECORDINGS,
    observed,
    recordings,
    torque_recordings,
)

OPENPBS, OLD = read_recordings(OPENPBS_RECORDINGS), read_recordings(TORQUE_RECORDINGS)

# Scenarios of transcripts/openpbs-23.06.06 that are not among the recordings.
UNUSED = {
    "odd_working_directories": "jpsi's jobs have no output files of PBS's, and change directory themselves",
    "qalter_qmove": "jobs are not changed once they are submitted",
    "qsub_daemon_pipes": "qsub is called with -f, which leaves nothing behind",
    "substitution_in_paths": "output goes to /dev/null",
    "timings": "only durations, which decided that qstat is called with -E",
}
# Commands that this package never calls.
NEVER_CALLED = {
    "cat": "shows what a job has printed",
    "ls": "shows the recorder's directory",
    "pbsnodes": "nodes are not listed",
    "qalter": "jobs are not changed once they are submitted",
    "qmgr": "for managers",
    "qmove": "as qalter",
    "qrerun": "for managers",
    "qselect": "qstat lists jobs with their tags",
    "qsig": "jobs are ended by qdel",
    "sh": "shows the recorder's directory",
    "tracejob": "for managers",
}
# Messages about an invalid request.
_REFUSED = (
    *("Array job exceeds", "Bad GID", "Cannot be used with select", "Cannot have", "Command syntax invalid"),
    *("Error (15002)", "Illegal attribute", "Invalid Job Dependency", "Job exceeds", "Job name is too long"),
    *("Job violates", "Resource invalid", "Unauthorized Request", "Unknown queue", "Unknown resource"),
    *("cannot be used with", "cannot send environment", "cr, lf", "directive error", "duplicated resource"),
    "unmatched",
)
# Refusals of options and files that jpsi never passes to qsub.
_NEVER_PASSED = {
    "script file": "never called with a file",
    "script not a file": "never called with a file",
    "usage: qsub": "an option that jpsi does not take, or one with a wrong value",
}


# Options of qstat that this package never passes. Without them, output that is neither JSON nor XML has jobs
# in columns, or as text in which a value can look like the next line.
_UNREAD = {
    "--version": "prints its version",
    "-1": "refused together with JSON; else columns",
    "-B": "not about jobs; the probe reads it with -f",
    "-Bf": "not about jobs; the probe's output",
    "-H": "columns",
    "-Q": "test_queue_list reads its output",
    "-Qf": "test_queue_list reads its output",
    "-a": "columns",
    "-n": "columns",
    "-q": "test_queue_list reads its output",
    "-s": "columns",
    "-u": "jobs are queried by their ids; refused together with JSON",
    "-w": "wide columns",
}


def _why_unread(recording: Recording) -> str | None:
    options = {word for word in recording.argv if word.startswith("-")}
    if reasons := [why for option, why in _UNREAD.items() if option in options]:
        return reasons[0]
    is_torque = recording.source.startswith("Torque")
    if not options >= {"-f", "-x"} if is_torque else "json" not in recording.argv:
        return "columns, or text"
    return None


def _is_listing(recording: Recording) -> bool:
    """Return True if this package would run this command to list jobs."""
    return recording.argv[0] == "qstat" and _why_unread(recording) is None


def _ids(recording: Recording) -> list[str]:
    return [word for word in recording.argv[1:] if not word.startswith("-") and word != "json"]


def _of(steps: list[Recording], command: str) -> list[Recording]:
    return [step for step in steps if step.argv[0] == command]


def test_every_recorded_command_is_covered() -> None:
    called = {"qsub", "qstat", "qdel", "qhold", "qrls"}

    assert {step.argv[0] for step in [*OPENPBS, *OLD]} <= called | NEVER_CALLED.keys()


def test_every_qstat_option_is_covered_or_explained() -> None:
    passed = {"-f", "-F", "-x", "-E", "-t"}
    steps = [step for step in [*OPENPBS, *OLD] if step.argv[0] == "qstat"]

    for step in steps:
        options = {word for word in step.argv[1:] if word.startswith("-")}
        assert options <= passed | _UNREAD.keys(), step
        assert not _is_listing(step) or options <= passed, step


def test_every_recording_is_used() -> None:
    assert not UNUSED.keys() & {path.stem for path in OPENPBS_RECORDINGS.glob("*.json")}


@pytest.mark.parametrize("recording", _of([*OPENPBS, *OLD], "qsub"), ids=str)
def test_qsub(recording: Recording) -> None:
    result, argv = recording.result, recording.argv
    if "--version" in argv or "-z" in argv:
        with pytest.raises(ValueError, match="no job id"):
            PBS.parse_submit(result)
    elif result.returncode == 0:
        assert PBS.parse_submit(result) == result.stdout.strip()
    elif "block=true" in argv:
        assert PBS.parse_submit(result), "such a job is refused: qsub returns what the job does"
    else:
        assert PBS.classify_failure(result).kind is _expected_kind(recording)


def _expected_kind(recording: Recording) -> FailureKind:
    """Return the kind of failure by the error message; an unknown message fails the test."""
    stderr = recording.result.stderr
    for words, kind in {
        "Unknown Host": FailureKind.PERMANENT,
        "Cannot resolve": FailureKind.PERMANENT,
        "cannot connect to server": FailureKind.TRANSIENT,
        "Queue is not enabled": FailureKind.TRANSIENT,
        "would exceed": FailureKind.TRANSIENT,
        "Bad UID": FailureKind.PERMANENT,
        "script file": FailureKind.AMBIGUOUS,
        "script not a file": FailureKind.AMBIGUOUS,
        "illegal": FailureKind.INVALID_JOB,
        "invalid": FailureKind.INVALID_JOB,
        "usage: qsub": FailureKind.AMBIGUOUS,
        **dict.fromkeys(_REFUSED, FailureKind.INVALID_JOB),
    }.items():
        if words in stderr:
            return kind
    raise AssertionError(stderr)


@pytest.mark.parametrize("recording", [it for it in OPENPBS if _is_listing(it)], ids=str)
def test_qstat(recording: Recording) -> None:
    """Each job in the output is read as printed, even if the output is not valid JSON."""
    _read(PBS, recording, _states_in_json)


@pytest.mark.parametrize("recording", [it for it in OLD if _is_listing(it)], ids=str)
def test_qstat_of_torque(recording: Recording) -> None:
    _read(TORQUE, recording, _states_in_xml)


def _read(hooks: Hooks, recording: Recording, read: Callable[[str], dict[str, dict[str, str]]]) -> None:
    result, ids = recording.result, _ids(recording)
    if any(lost in result.stderr for lost in ("cannot connect", "Unable to communicate", "not configured")):
        with pytest.raises(SubmitException, match=r"connect|communicate|not configured"):
            hooks.parse_status(result, ids)
        return
    if "Unknown queue" in result.stderr or "Express option" in result.stderr:
        assert not all(map(IDS.is_id, ids)), "such an id is never queried"
        return

    found = observed(hooks, result)

    expected = read(result.stdout)
    assert found.keys() == expected.keys()
    for name, seen in found.items():
        assert seen.native_state == expected[name]["job_state"]
        assert seen.state is not None
        assert seen.details.get(f"{hooks.name}.exit_status") == expected[name].get("exit_status")
    if ids and result.returncode == 0 and not expected and not result.stderr:
        with pytest.raises(SubmitException, match="no answer"):
            hooks.parse_status(result, ids)
    elif ids and result.returncode == 0 and all(map(IDS.is_id, ids)):
        # a whole array is listed by its elements too
        listed = {name.removesuffix(".node01") for name in expected}
        own = {it for it in ids if it.removesuffix(".node01") in listed}
        assert hooks.parse_status(result, ids).keys() == own


def _states_in_json(output: str) -> dict[str, dict[str, str]]:
    try:
        jobs: Mapping[str, Mapping[str, Any]] = json.loads(output).get("Jobs", {})
    except ValueError:
        # only these lines can have these words at this indentation
        ids = re.findall(r'^ {8}"(\d[^"]*)":\{$', output, re.MULTILINE)
        states = re.findall(r'^ {12}"job_state":"(.)",$', output, re.MULTILINE)
        codes = dict.fromkeys(ids, None)
        for name, text in zip(
            ids, re.split(r'^ {8}"\d[^"]*":\{$', output, flags=re.MULTILINE)[1:], strict=True
        ):
            codes[name] = next(iter(re.findall(r'^ {12}"Exit_status":(-?\d+),?$', text, re.MULTILINE)), None)
        jobs = {
            name: {"job_state": state, **({} if codes[name] is None else {"Exit_status": codes[name]})}
            for name, state in zip(ids, states, strict=True)
        }
    return {
        name: {
            "job_state": job["job_state"],
            **({"exit_status": str(job["Exit_status"])} if "Exit_status" in job else {}),
        }
        for name, job in jobs.items()
    }


def _states_in_xml(output: str) -> dict[str, dict[str, str]]:
    jobs = [
        dict(re.findall(r"<(Job_Id|job_state|exit_status)>(.*?)</", job)) for job in output.split("</Job>")
    ]
    return {html.unescape(job["Job_Id"]): job for job in jobs if job}


@pytest.mark.parametrize("recording", _of([*OPENPBS, *OLD], "qdel"), ids=str)
def test_qdel(recording: Recording) -> None:
    result, ids = recording.result, list(filter(IDS.is_id, _ids(recording)))
    if not ids:
        return  # `qdel --version` and the like

    wrong = PBS.parse_cancel(result, ids)

    stderr = result.stderr
    about = [line for line in stderr.splitlines() if "Unauthorized" in line or "MOM" in line]
    theirs = [it for it in ids if any(line.endswith(f" {it}") for line in about)]
    unclear = ids if "connect" in stderr.lower() and not theirs else []
    malformed = ids if "illegally formed" in stderr else []
    assert set(wrong) == {*theirs, *unclear, *malformed}


@pytest.mark.parametrize("recording", _of([*OPENPBS, *OLD], "qhold") + _of([*OPENPBS, *OLD], "qrls"), ids=str)
def test_qhold_and_qrls(recording: Recording) -> None:
    ids = list(filter(IDS.is_id, _ids(recording)))

    wrong = PBS.parse_hold(recording.result, ids)

    assert set(wrong) == (set(ids) if recording.result.returncode else set())


def _last_observation(steps: list[Recording], hooks: Hooks) -> Observation:
    """Return the last Observation of a scenario's job."""
    listings = [step for step in steps if _is_listing(step) and len(_ids(step)) == 1]
    (seen,) = observed(hooks, listings[-1].result).values()
    return seen


_ENDS = {
    "status_completed_ok": (JobState.COMPLETED, 0, None),
    "status_failed_exit_7": (JobState.FAILED, 7, None),
    "status_exit_7_exec": (JobState.FAILED, 7, None),
    "status_failed_exit_137": (JobState.FAILED, 137, None),
    "status_failed_exit_255": (JobState.FAILED, 255, None),
    "status_failed_exit_271": (JobState.FAILED, 15, None),
    "status_killed_by_signal": (JobState.FAILED, 137, None),
    "status_killed_by_signal_exec": (JobState.FAILED, 137, Reason.SIGNAL),
    "status_killed_by_signal_segv": (JobState.FAILED, 139, None),
    "status_killed_by_signal_term": (JobState.FAILED, 143, None),
    "status_child_killed_by_signal": (JobState.FAILED, 137, None),
    "status_killed_top_shell": (JobState.FAILED, 137, Reason.SIGNAL),
    "status_killed_by_qsig": (JobState.FAILED, 137, Reason.SIGNAL),
    "status_cancelled_queued": (JobState.CANCELED, None, Reason.CANCELLED),
    "status_cancelled_running": (JobState.CANCELED, 143, Reason.CANCELLED),
    "status_cancelled_running_trap": (JobState.CANCELED, 143, Reason.CANCELLED),
    "status_cancelled_running_stubborn": (JobState.CANCELED, 143, Reason.CANCELLED),
    "status_deleted_while_starting": (JobState.FAILED, 143, Reason.SIGNAL),
    "status_cancelled_forced": (JobState.CANCELED, 137, Reason.CANCELLED),
    "status_walltime_exceeded": (JobState.FAILED, None, Reason.TIMEOUT),
    "status_walltime_exceeded_trap": (JobState.FAILED, None, Reason.TIMEOUT),
    "status_cput_exceeded": (JobState.FAILED, 137, None),
    "status_mem_limit": (JobState.COMPLETED, 0, None),
    # resources_used.diag_messages says that the limit was reached, which ends no job; the runner knows more
    "status_mem_cgroup": (JobState.FAILED, 137, None),
    # the exit code of a job whose processes the mom did not find; the engine sees that it left no trace
    "status_never_ran": (JobState.COMPLETED, 0, None),
    "status_mem_enforced": (JobState.FAILED, None, Reason.OUT_OF_MEMORY),
    "status_preempted_deleted": (JobState.FAILED, 143, Reason.PREEMPTED),
    "status_bad_shell": (JobState.FAILED, 254, None),
    "status_bad_interpreter": (JobState.FAILED, 127, None),
    "status_exec_missing": (JobState.FAILED, 254, None),
    "status_exiting": (JobState.COMPLETED, 0, None),
    "status_waiting": (JobState.COMPLETED, 0, None),
    # deleted during its second start; the engine remembers that the client cancelled it
    "status_rerun": (JobState.FAILED, 137, Reason.SIGNAL),
}


def _used(observation: Observation) -> dict[str, float]:
    return {name: it for name, it in observation.details.items() if name.startswith("used.")}


def test_a_job_that_has_ended_tells_what_it_used() -> None:
    """PBS measures now and then: it lists zeros of a job that burnt three seconds."""
    slept, burnt = (
        _last_observation(recordings(f"status_{it}_exceeded"), PBS) for it in ("walltime", "cput")
    )

    assert _used(slept) == {"used.memory": 6776 << 10}
    assert _used(burnt) == {}


@pytest.mark.parametrize("scenario", _ENDS)
def test_every_kind_of_end_is_distinguished(scenario: str) -> None:
    seen = _last_observation(recordings(scenario), PBS)

    assert (seen.state, seen.exit_code, seen.reason) == _ENDS[scenario]
    assert seen.time is not None
    assert seen.ran is (scenario != "status_cancelled_queued")


@pytest.mark.parametrize(
    ("scenario", "states"),
    [
        ("requeued", [(JobState.QUEUED, Reason.REQUEUED), (JobState.ACTIVE, None)]),
        ("suspended", [(JobState.ACTIVE, None), (JobState.ACTIVE, None)]),
        ("deleted", [(JobState.FAILED, Reason.PREEMPTED), (JobState.FAILED, Reason.PREEMPTED)]),
    ],
)
def test_a_preempted_job_waits_again_or_is_suspended_or_fails(
    scenario: str, states: list[tuple[JobState, Reason | None]]
) -> None:
    """While the other job runs, and after its end."""
    listings = [step for step in recordings(f"status_preempted_{scenario}") if _is_listing(step)]
    seen = [it for step in listings for it in observed(PBS, step.result).values()]

    assert [(it.state, it.reason) for it in seen] == states


_TORQUE_ENDS = {
    "status_completed_ok": (JobState.COMPLETED, 0, None),
    "status_failed_exit_7": (JobState.FAILED, 7, None),
    "status_killed_by_signal": (JobState.FAILED, 137, None),
    "status_cancelled_queued": (JobState.CANCELED, None, Reason.CANCELLED),
    "status_cancelled_running": (JobState.CANCELED, 143, Reason.CANCELLED),
    "status_walltime_exceeded": (JobState.FAILED, None, Reason.TIMEOUT),
}


@pytest.mark.parametrize("scenario", _TORQUE_ENDS)
def test_every_kind_of_end_in_torque_is_distinguished(scenario: str) -> None:
    seen = _last_observation(torque_recordings(scenario), TORQUE)

    assert (seen.state, seen.exit_code, seen.reason) == _TORQUE_ENDS[scenario]
    assert seen.time is not None
    assert seen.ran is (scenario != "status_cancelled_queued")


def _observations(scenario: str) -> dict[str, list[Observation]]:
    """Return all Observations of each job in a scenario, in order."""
    observations: dict[str, list[Observation]] = {}
    for step in recordings(scenario):
        if _is_listing(step):
            for name, seen in observed(PBS, step.result).items():
                observations.setdefault(name, []).append(seen)
    return observations


def test_dependencies() -> None:
    observations = _observations("status_dependency")

    waiting, vain = observations["138.node01"]
    assert (waiting.state, waiting.message) == (
        JobState.QUEUED,
        "the job waits for a job that it depends on",
    )
    assert (vain.state, vain.reason, vain.ran) == (JobState.CANCELED, Reason.DEPENDENCY, False)
    assert observations["139.node01"][-1].state is JobState.COMPLETED
    assert observations["141.node01"][-1].reason is Reason.DEPENDENCY, "the other had failed before"
    assert observations["143.node01"][-1].state is JobState.COMPLETED, "the other had ended well before"
    assert observations["145.node01"][-1].reason is Reason.DEPENDENCY, "there never was such a job"
    assert observations["147.node01"][-1].state is JobState.QUEUED, "dependents outlive a deleted job"


def test_the_reason_why_a_job_is_pending() -> None:
    observations = _observations("status_queued")

    assert observations["105.node01"][0].message == "Not Running: Not enough free nodes available"
    assert (observations["106.node01"][0].message or "").startswith("Can Never Run: ")


def test_a_held_job() -> None:
    observations = _observations("status_held")

    assert (observations["108.node01"][0].state, observations["108.node01"][0].message) == (
        JobState.QUEUED,
        "the job is held",
    )
    assert observations["108.node01"][-1].state is JobState.COMPLETED
    assert observations["110.node01"][0].state is JobState.ACTIVE, "to hold a job that runs changes nothing"


def test_a_job_that_could_not_be_started_and_is_held() -> None:
    seen = _observations("keep_direct")["1490.node01"][-1]

    assert (seen.state, seen.reason, seen.exit_code) == (JobState.QUEUED, Reason.LAUNCH, None)
    assert seen.message == "job held, too many failed attempts to run"


def test_a_job_that_runs_again_after_its_node_was_lost() -> None:
    observations = _observations("node_down")["1497.node01"]

    assert {seen.state for seen in observations} == {JobState.ACTIVE}
    assert [seen.restarts for seen in observations][::3] == [0, 1]


def test_a_suspended_job_is_active() -> None:
    assert [(it.state, it.message) for it in _observations("status_suspended")["107.node01"]] == [
        (JobState.ACTIVE, "the job is suspended"),
        (JobState.ACTIVE, None),
    ]


def test_an_array_and_its_elements() -> None:
    observations = _observations("array")

    assert [seen.state for seen in observations["197[].node01"]][-1] is JobState.FAILED
    assert {(seen.native_state, seen.state, seen.exit_code) for seen in observations["197[1].node01"]} == {
        ("Q", JobState.QUEUED, None),
        ("X", JobState.COMPLETED, 0),
        ("F", JobState.COMPLETED, 0),
    }


def test_many_jobs_in_one_query() -> None:
    """With -E, qstat reports nothing about jobs that it does not list, unless it lists none."""
    first, unknown, *_ = [step for step in recordings("express") if _is_listing(step)]
    ids = _ids(first)

    assert list(PBS.parse_status(first.result, ids)) == [ids[0], ids[2]], "the second has finished"
    assert PBS.parse_status(unknown.result, _ids(unknown)) == {
        "9999999": Observation.denied("Unknown Job Id 9999999.node01")
    }


def test_without_history_a_running_job_is_not_lost() -> None:
    """`qstat -x` then lists nothing and returns 0."""
    steps = [step for step in recordings("history_off") if _is_listing(step) and "2997.node01" in step.argv]
    with_x = [step for step in steps if "-x" in step.argv]
    without = [step for step in steps if "-x" not in step.argv]

    assert with_x
    for step in with_x:
        with pytest.raises(SubmitException, match="not configured to maintain job history"):
            PBS.parse_status(step.result, ["2997.node01"])
    assert PBS.parse_status(without[0].result, ["2997.node01"])["2997.node01"].state is JobState.ACTIVE


def test_the_offers_of_a_site() -> None:
    server_query = next(step for step in recordings("queues_server_nodes") if step.argv == ("qstat", "-Bf"))

    assert PBS.parse_probe(server_query.result) == {
        "array_limits": True,
        "history": True,
        "server": "node01",
        "largest_array": 10000,
    }


def test_jobs_outlive_ports_that_are_used_up() -> None:
    """The command waits for a minute, prints an error, and succeeds: the error is no failure."""
    steps = [step for step in recordings("privileged_ports_exhausted") if step.argv[0] == "qstat"]

    assert any("pbs_iff: " in step.result.stderr for step in steps)
    for step in steps:
        found = PBS.parse_probe(step.result)
        assert found == {"array_limits": False, "history": False}, "`qstat -B` alone does not tell"


def test_an_unlisted_job_is_not_lost() -> None:
    """If users may list only their own jobs, OpenPBS silently omits others, and Torque reports an error."""
    silent = next(step for step in recordings("query_other_jobs_false") if _is_listing(step))
    steps = [step for step in torque_recordings("unknown_job") if _is_listing(step)]
    refused = next(step for step in steps if "Unauthorized" in step.result.stderr)

    with pytest.raises(SubmitException, match="no answer"):
        PBS.parse_status(silent.result, ["196.node01"])
    seen = TORQUE.parse_status(refused.result, ["31.node01"])["31.node01"]
    assert (seen.state, seen.exists, seen.tag) == (None, True, None)
