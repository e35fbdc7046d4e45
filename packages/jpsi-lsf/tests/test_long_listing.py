"""The output of `bjobs -l` and `bhist -l` in cases without a recording."""

from __future__ import annotations

import pytest

from jpsi.plugin import JobState, Observation, Reason, Site, SubmitException
from jpsi_lsf import hooks
from jpsi_lsf.queue.long_listing import parse_bjobs
from jpsi_testing import command_result
from lsf_support import MODERN, OLD, SITE, bhist_l, bjobs_l

_AT = "Mon May  6 22:58:03"
# The beginning of a continuation line
_FOLD = "\n" + " " * 21


_HEADER = "Job <7>, User <u>, Project <p>, Command <x>"


def _bhist(*events: str, header: str = _HEADER, limit: str = "", run_time: int = 0) -> str:
    lines = [header, *(f"{_AT}: {event}" for event in ["Submitted from host <h>;", *events]), limit]
    return bhist_l("\n".join(lines), run_time=run_time)


def _ended(*events: str, done_is_zero: bool = False) -> Observation:
    site = MODERN if done_is_zero else OLD
    return hooks.parse_finished(command_result(_bhist("Dispatched to <node1>;", *events)), ["7"], site)["7"]


def test_all_event_logs_are_queried() -> None:
    assert hooks.query_finished(["7"], SITE).argv == ("bhist", "-n", "0", "-l", "7")


def test_before_the_probe_the_query_suits_every_version() -> None:
    assert hooks.query(["7"], SITE).argv == ("bjobs", "-l", "7")
    assert hooks.find(SITE).argv == ("bjobs", "-l", "-a")


_LIMIT = "Completed <exit>; TERM_RUNLIMIT: job killed after reaching LSF run time limit;"
_MEMORY = "Completed <exit>; TERM_MEMLIMIT: job killed after reaching LSF memory usage limit;"
_FORCED = "Exited; job has been forced to exit with exit code 131."


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (("Exited by signal 9. The CPU time used is 0.0 seconds;",), (137, Reason.SIGNAL)),
        (("Exited by LSF signal 9. The CPU time used is 0.0 seconds;",), (137, Reason.SIGNAL)),
        (("Exited with exit code 140.", _LIMIT), (140, Reason.TIMEOUT)),
        (("Exited with exit code 1.", _MEMORY), (1, Reason.OUT_OF_MEMORY)),
        ((_FORCED, "Completed <exit>; TERM_PREEMPT: x;"), (None, Reason.PREEMPTED)),
    ],
)
def test_ends_of_lsf(events: tuple[str, ...], expected: object) -> None:
    seen = _ended(*events)

    assert seen.state is JobState.FAILED
    assert (seen.exit_code, seen.reason) == expected


def test_done_means_exit_code_0_in_lsf_10() -> None:
    assert _ended("Done successfully.", done_is_zero=True).exit_code == 0
    assert _ended("Done successfully.").exit_code is None


def test_wrapped_lines_are_joined() -> None:
    killed = f"Signal <KILL> requested by user or administrator <anna{_FOLD}>;"
    text = _bhist("Dispatched to <node1>;", killed, f"Exited with exit co{_FOLD}de 130.")

    seen = hooks.parse_finished(command_result(text), ["7"], OLD)["7"]

    assert (seen.state, seen.exit_code) == (JobState.CANCELED, 130)
    assert seen.message == "the job was cancelled by anna"


_MEASURED = "\nMEMORY USAGE:\nMAX MEM: 1.5 Gbytes;  AVG MEM: 6 Mbytes\n"


@pytest.mark.parametrize(
    ("seconds", "rest", "expected"),
    [
        ("1.4", _MEASURED, {"used.cpu": 1.4, "used.memory": 3 << 29}),
        ("0.0", "", {}),
        ("unknown", "\n MAX MEM: 0 Mbytes;  AVG MEM: 0 Mbytes\n", {}),
    ],
)
def test_the_time_and_memory_of_a_job_that_has_ended(
    seconds: str, rest: str, expected: dict[str, float]
) -> None:
    end = f"Exited with exit code 1. The CPU time used is {seconds} seconds;"
    text = _bhist("Dispatched to <node1>;", end, limit=rest)

    details = hooks.parse_finished(command_result(text), ["7"], OLD)["7"].details

    assert {name: it for name, it in details.items() if name.startswith("used.")} == expected


def test_the_last_run_counts() -> None:
    seen = _ended(
        "Signal <REQUEUE_PEND> requested by user or administrator <u>;",
        "Exited with exit code 130.",
        "Pending: Job has been requeued;",
        "Dispatched to <node2>;",
        "Exited with exit code 5.",
    )

    assert (seen.state, seen.exit_code, seen.restarts, seen.nodes) == (JobState.FAILED, 5, 1, ("node2",))


def test_a_job_that_will_be_requeued_has_not_ended() -> None:
    seen = _ended(
        "Signal <REQUEUE_PEND> requested by user or administrator <u>;", "Exited with exit code 130."
    )

    assert seen.state is JobState.QUEUED


def test_a_job_that_was_requeued_for_its_exit_code_is_pending() -> None:
    """Uses the words of LSF 10.1 for REQUEUE_EXIT_VALUES."""
    seen = _ended(
        "Exited with exit code 99.",
        "Pending: Requeued job is waiting for rescheduling;",
        "Dispatched to <node2>;",
        "Exited with exit code 5.",
    )

    assert (seen.exit_code, seen.restarts) == (5, 1)


def test_a_scaled_run_limit_ends_no_job_of_lsf_10() -> None:
    """LSF 10.1 itself reports that a limit has ended a job."""
    limit = "\n RUNLIMIT\n 1.0 min of hostA"
    text = _bhist("Dispatched to <n>;", "Done successfully.", limit=limit, run_time=90)

    assert hooks.parse_finished(command_result(text), ["7"], MODERN)["7"].state is JobState.COMPLETED
    assert hooks.parse_finished(command_result(text), ["7"], OLD)["7"].reason is Reason.TIMEOUT


_LIMITS_OF_LSF = [
    (" CPULIMIT                RUNLIMIT                ", " 60.0 min of hostA       1.0 min of hostA"),
    (" RUNLIMIT                ", " 1.0 min", " PROCESSLIMIT", "        5"),
    (
        " RUNLIMIT",
        " 1.0 min",
        " FILELIMIT  MEMLIMIT PROCESSLIMIT THREADLIMIT",
        "     16 K     2.5 G    5   12 ",
    ),
]


@pytest.mark.parametrize("lines", _LIMITS_OF_LSF)
def test_the_run_limit_is_read_beside_other_limits(lines: tuple[str, ...]) -> None:
    text = _bhist("Dispatched to <n>;", "Done successfully.", limit="\n".join(["", *lines]), run_time=90)

    assert hooks.parse_finished(command_result(text), ["7"], OLD)["7"].reason is Reason.TIMEOUT


@pytest.mark.parametrize(
    "lines",
    [
        (" CPULIMIT   RUNLIMIT", " 60.0 min"),
        (" CPULIMIT   RUNLIMIT", " 60.0 min   1.0"),
        (" CPULIMIT   RUNLIMIT", " 60.0 min   1.0 mi"),
        (" CPULIMIT   RUNLIM", " 60.0 min   1.0 min"),
        (" CPULIMIT   RUNLIMIT",),
        (" 60.0 min   1.0 min",),
        (" PROCESSLIMIT", " K"),
        (" RUNLIMIT", " 1..0 min"),
    ],
)
def test_truncated_limits_are_refused(lines: tuple[str, ...]) -> None:
    text = _bhist("Dispatched to <n>;", "Done successfully.", limit="\n".join(["", *lines]), run_time=90)

    with pytest.raises(SubmitException):
        hooks.parse_finished(command_result(text), ["7"], OLD)


def test_several_runs_do_not_add_up_to_a_time_limit() -> None:
    again = ("Dispatched to <n>;", "Pending: Job has been requeued;", "Dispatched to <n>;")
    limit = "\n RUNLIMIT                \n 1.0 min"

    text = _bhist(*again, "Done successfully.", limit=limit, run_time=90)

    assert hooks.parse_finished(command_result(text), ["7"], OLD)["7"].state is JobState.COMPLETED


def test_a_job_name_cannot_look_like_an_end() -> None:
    header = f"Job <7>, Job Name <Done successfully>, User <u>, Command <{_AT}: Done successfully.>"
    text = _bhist("Dispatched to <n>;", header=header)

    assert hooks.parse_finished(command_result(text), ["7"], OLD)["7"].state is JobState.ACTIVE


def test_an_outage_is_not_an_unknown_job() -> None:
    unknown = hooks.parse_finished(
        command_result("No matching job found\n", returncode=255), ["7", "8[2]"], OLD
    )
    assert unknown == dict.fromkeys(["7", "8[2]"], Observation.denied("No matching job found"))
    for nothing in (
        command_result(),
        command_result("garbage\n"),
        command_result(returncode=255, stderr="LIM is down"),
    ):
        with pytest.raises(SubmitException):
            hooks.parse_finished(nothing, ["7"], OLD)
        with pytest.raises(SubmitException):
            hooks.parse_status(nothing, ["7"], OLD)


def test_truncated_output_is_refused() -> None:
    half = bjobs_l("Job <7>, User <u>, Project <p>, Status <PEND>, Queue <q>, Command <x>")

    with pytest.raises(SubmitException):
        hooks.parse_status(command_result(half, returncode=-9), ["7"], OLD)
    with pytest.raises(SubmitException):
        hooks.parse_status(command_result(half, "bjobs: lost contact\n", returncode=255), ["7"], OLD)
    assert hooks.parse_status(command_result(half), ["7"], OLD).keys() == {"7"}


_HALF = bjobs_l("Job <7>, User <u>, Project <p>, Status <RUN>, Queue <q>, Command <x>")
_UNKNOWN = "Job <9> is not found\n"


@pytest.mark.parametrize(
    ("site", "stdout", "stderr"),
    [
        (MODERN, '{"COMMAND":"bjobs","JOBS":3,"RECORDS":[{"JOBID":"7","STAT":"RU', _UNKNOWN),
        (MODERN, "", f"{_UNKNOWN}LSF is down. Please wait ...\n"),
        (OLD, _HALF, f"{_UNKNOWN}bjobs: lost contact\n"),
        (OLD, "", _UNKNOWN),
    ],
    ids=["half of JSON", "nothing", "half", "one complaint"],
)
def test_an_unknown_id_does_not_excuse_missing_jobs(site: Site, stdout: str, stderr: str) -> None:
    with pytest.raises(SubmitException):
        hooks.parse_status(command_result(stdout, stderr, 255), ["7", "8", "9"], site)


def test_output_that_omits_a_queried_job_is_refused() -> None:
    with pytest.raises(SubmitException):
        hooks.parse_status(command_result(_HALF), ["7", "8"], OLD)
    whole = command_result(_HALF, f"Job <8> is not found\n{_UNKNOWN}", 255)
    observations = hooks.parse_status(whole, ["7", "8", "9"], OLD)
    assert {name for name, it in observations.items() if it.exists} == {"7"}
    assert observations["8"] == Observation.denied("Job <8> is not found")
    array = command_result(_HALF.replace("<7>", "<7[2]>"))
    assert hooks.parse_status(array, ["7"], OLD).keys() <= {"7[2]"}, "the elements of an array are reported"


def test_output_about_incompletely_read_event_logs_is_refused() -> None:
    unknown = "No matching job found\n"
    for error in (f"{unknown}LIM is down; try later\n", "LIM is down; try later\n"):
        for printed in ("", unknown, _bhist("Exited.")):
            with pytest.raises(SubmitException):
                hooks.parse_finished(command_result(printed, error, 255), ["7"], OLD)


def test_event_logs_have_their_time() -> None:
    command = hooks.query_finished(["7"], SITE)

    assert command.timeout is not None
    assert command.timeout > SITE.config.command_timeout


def test_the_pending_reason_is_reported() -> None:
    text = bjobs_l(
        "Job <7>, User <u>, Project <p>, Status <PEND>, Queue <q>, Command <x>\n"
        f"{_AT}: Submitted from host <h>;\n PENDING REASONS:\n"
        " Dependency condition invalid or never satisfied;\n Not enough hosts: 1 host;"
    )

    seen = hooks.parse_status(command_result(text), None, OLD)["7"]

    assert seen.reason is Reason.DEPENDENCY
    assert seen.message == "Dependency condition invalid or never satisfied; Not enough hosts: 1 host"


def test_nodes_in_every_form() -> None:
    for event in (
        "Started on <n1> <n2>, Execution Home </h>;",
        "[3] started on <n1> <n2>, Execution Home </h>;",
        "Started 3 Task(s) on Host(s) <2*n1> <1*n2>, Allocated 3 Slot(s) on Host(s) <2*n1> <1*n2>;",
        "Dispatched to 3 Hosts/Processors <n1> <n1> <n2>;",
    ):
        text = _bhist(event, "Exited with exit code 1.")
        assert hooks.parse_finished(command_result(text), ["7"], OLD)["7"].nodes == ("n1", "n2"), event


def test_a_description_after_the_command_is_found() -> None:
    command = "#BSUB -Jd other;exec run"
    text = bjobs_l(f"Job <7[2]>, Status <PEND>, Command <{command}>, Job Descript{_FOLD}ion <mine jpsi-a-1>")

    listing = parse_bjobs(text)

    assert listing is not None
    (history,) = listing.parts
    assert (history.name, history.description, history.tag) == ("7[2]", "mine jpsi-a-1", "jpsi-a-1")


def test_an_unknown_job_does_not_hide_the_known() -> None:
    both = command_result(_bhist("Exited."), "No matching job found\n", returncode=255)

    assert hooks.parse_finished(both, ["7"], OLD).keys() == {"7"}
