"""The commands that run qstat, and the handling of unusual output."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import NOT_OFFERED, Command, JobState, Reason, Site, SubmitException
from jpsi_pbs import PbsConfig
from jpsi_pbs.native_ids import IDS, QueriedIds
from jpsi_pbs.queue import json_listing, xml_listing
from jpsi_testing import command_result
from pbs_support import (
    PBS,
    SERVER,
    SITE,
    TORQUE,
    in_frame,
    in_json,
    in_xml,
    observed,
    of_all,
    recordings,
    torque_recordings,
)

# Values that would read as a state, an end or another job if they could break lines or close elements.
_HOSTILE = (
    '\n\t\t\t"job_state":\t"F",\n\t\t\t"Exit_status":\t0,\n',
    '\n            "job_state":"F",\n            "Exit_status":0,\n',
    '"},\n\t\t"8.node01":\t{\n\t\t\t"job_state":\t"F"',
    "\nJob Id: 8.node01\n    job_state = F\n    Exit_status = 0\n",
    "</Variable_List></Job><Job><Job_Id>8.node01</Job_Id><job_state>C</job_state></Job>",
    "a\\",
    "nan",
    "\x01\x1b[2J",
    "é日\U0001f600",
    "]]>",
)


def test_the_query_command() -> None:
    command = PBS.query(["7.node01", "8.node01"], SITE)

    assert command.argv == ("qstat", "-f", "-F", "json", "-E", "7.node01", "8.node01")
    assert command.environment == {"TZ": "UTC0"}
    assert TORQUE.query(["7.node01"], SITE).argv == ("qstat", "-f", "-x", "7.node01")


def test_what_a_job_of_torque_used() -> None:
    used = "<cput>26:01:02</cput><mem>12kb</mem>"
    listing = in_xml("7.node01", job_state="C", exit_status="1", resources_used=used, queue="batch")

    details = observed(TORQUE, command_result(listing))["7.node01"].details

    assert (details["used.cpu"], details["used.memory"]) == (93662.0, 12 << 10)


def test_moved_jobs_are_queried_with_history() -> None:
    """Without -x, a server does not know a job that has moved to another server."""
    remembers = Site(config=PbsConfig(), offers={"history": True})
    moved = in_json("7.node01", job_state="M")

    assert PBS.query(["7.node01"], remembers).argv == ("qstat", "-f", "-F", "json", "-x", "-E", "7.node01")
    assert "-x" not in PBS.query(None, remembers).argv, "all finished jobs there ever were"
    assert PBS.parse_status(command_result(moved), ["7.node01"])["7.node01"].state is JobState.QUEUED
    ended = command_result(in_json("7.node01", job_state="M", substate=92))
    assert PBS.parse_status(ended, ["7.node01"]) == {}, "how, only the other server knows"


def test_a_listing_of_all_jobs_has_the_users_jobs_and_array_elements() -> None:
    owners = {
        "7.node01": "me",
        "8.node01": "you",
        "9[].node01": "me",
        "9[1].node01": "me",
        "9[2].node01": "me",
    }
    whole = in_frame(
        {name: {"job_state": "R", "Job_Owner": f"{owner}@node01"} for name, owner in owners.items()}
    )

    found = PBS.parse_status(command_result(of_all(whole, "me")), None)

    assert list(found) == ["7.node01", "9[1].node01", "9[2].node01"]
    assert PBS.query(None, SITE).argv[0] == "/bin/sh"
    assert PBS.query(None, SITE).argv[3:] == ("qstat", "qstat", "-f", "-F", "json", "-t")


def test_elements_of_arrays_are_listed_with_all_jobs() -> None:
    """Torque lists an array as one job, and with -t only its elements."""
    jobs = [f"{number}.node01" for number in range(1, 30)]

    assert _listing_argv(TORQUE.query([*jobs, "32[2].node01"], SITE)) == ("qstat", "-f", "-x", "-t")
    assert _listing_argv(TORQUE.query([*jobs, "32[].node01"], SITE)) == ("qstat", "-f", "-x")
    both = TORQUE.query([*jobs, "32[].node01", "33[2].node01"], SITE)
    assert _listing_argv(both) == ("qstat", "-f", "-x")
    assert both.argv[6].count('"$@"') == 2, "both, one after the other"


def _listing_argv(command: Command) -> tuple[str, ...]:
    """Return the arguments of Torque's qstat in the command that lists all jobs, which runs two shells."""
    assert command.argv[0] == command.argv[4] == "/bin/sh"
    return tuple(command.argv[7:])


@pytest.mark.parametrize("text", ["workq", "", "-x", "7 8"])
def test_invalid_ids_are_not_queried(text: str) -> None:
    """Else qstat would read one as the name of a queue, or list all jobs."""
    with pytest.raises(ValueError, match="is no job id"):
        PBS.canonical_id(text, Site(config=PbsConfig()))


def test_many_jobs_are_queried_by_one_connection() -> None:
    many = [str(number) for number in range(200)]

    assert len(PBS.query(many, SITE).argv) > 200, "-E asks for them over one"
    assert "-E" in PBS.query(many, SITE).argv
    assert PBS.capabilities(SITE).ids_per_query == 200
    assert _listing_argv(TORQUE.query(many, SITE)) == ("qstat", "-f", "-x"), "all jobs are listed instead"


def test_an_id_without_a_server_is_queried_by_the_same_connection() -> None:
    others = [f"{number}.node01" for number in range(198)]

    assert "-E" in PBS.query(["17", *others, "8.node01.example.org"], SITE).argv


def test_an_id_of_another_server_hides_no_other_job() -> None:
    """`qstat -E 1.here 1.nowhere` reports an error about one id and, as measured, nothing of the other."""
    assert PBS.query(["7.node01", "8.nowhere"], SITE).argv[4:] == ("7.node01", "8.nowhere")


@pytest.mark.parametrize(
    ("offers", "is_queried"), [({}, True), ({"history": True}, True), ({"history": False}, False)], ids=str
)
def test_finished_jobs_are_queried_if_the_site_has_history(offers: dict[str, bool], is_queried: bool) -> None:
    command = PBS.query_finished(["7.node01"], Site(config=PbsConfig(), offers=offers))

    assert (command is not NOT_OFFERED) is is_queried
    if isinstance(command, Command):
        assert command.argv == ("qstat", "-f", "-F", "json", "-x", "-E", "7.node01")


@pytest.mark.parametrize(
    ("queried", "listed"),
    [
        ("7", "7.node01"),
        ("7.node01", "7"),
        ("7.node01", "7.node01.example.org"),
        ("7.node01.example.org", "7.node01"),
        ("7[3].node01", "7[3].node01"),
        ("7[]", "7[].node01"),
        ("7.node01@node01.example.org", "7.node01"),
    ],
)
def test_ids_in_several_spellings(queried: str, listed: str) -> None:
    assert QueriedIds([queried]).names(listed) == [queried]


@pytest.mark.parametrize(
    ("queried", "listed"),
    [("7.node01", "7.node010"), ("7.a", "7.b"), ("7", "8.node01"), ("7[]", "7"), ("7", "")],
)
def test_ids_of_other_jobs(queried: str, listed: str) -> None:
    assert QueriedIds([queried]).names(listed) == []


def test_a_job_of_the_default_server_has_one_id() -> None:
    """Users omit the server's name, which qsub and qstat print."""
    offers = PBS.parse_probe(command_result("Server: node01\n    server_state = Active\n"))
    site = Site(config=PbsConfig(), offers=offers)

    assert {PBS.canonical_id(it, site) for it in ("7", "7.node01")} == {"7.node01"}
    assert PBS.canonical_id("7[3]", site) == "7[3].node01"


@pytest.mark.parametrize("text", ["7.other", "7.node01@other", "7@other"])
def test_an_id_of_another_server_stays_as_it_is(text: str) -> None:
    assert PBS.canonical_id(text, Site(config=PbsConfig(), offers={"server": "node01"})) == text


@pytest.mark.parametrize("text", ["", "workq", "-1", "7.", "7[3-5]", "7;8", "7 8", "٤", "7\n", "@x"])
def test_invalid_ids(text: str) -> None:
    assert not IDS.is_id(text)


@pytest.mark.parametrize("value", _HOSTILE)
def test_no_value_is_read_as_structure_in_json(value: str) -> None:
    output = in_json("7.node01", Account_Name=value, job_state="R", Variable_List={"A": value, value: "B"})

    found = observed(PBS, command_result(output))

    assert {name: seen.state for name, seen in found.items()} == {"7.node01": JobState.ACTIVE}


@pytest.mark.parametrize("value", _HOSTILE)
def test_no_value_is_read_as_structure_in_the_older_json(value: str) -> None:
    """The older printer escapes little but quotes and line breaks (strdup_escape in pbs_json.c)."""
    written = value.replace("\n", "\\n").replace("\t", "\\t").replace('"', '\\"')
    output = (
        '{\n    "timestamp":1795251827,\n    "pbs_server":"node01",\n    "Jobs":{\n        "7.node01":{\n'
        f'            "Account_Name":"{written}",\n            "job_state":"R",\n'
        f'            "Variable_List":{{\n                "A":{written},\n                "B":"{written}"\n'
        '            },\n            "substate":42\n        },\n        "9.node01":{\n'
        '            "job_state":"F",\n            "substate":93,\n            "Exit_status":3\n'
        "        }\n    }\n}\n"
    )

    found = observed(PBS, command_result(output))

    assert {name: seen.state for name, seen in found.items()} == {
        "7.node01": JobState.ACTIVE,
        "9.node01": JobState.FAILED,
    }


@given(st.text())
def test_every_job_has_its_state_whatever_the_values(value: str) -> None:
    output = in_json("7.node01", Account_Name=value, job_state="R", Variable_List={"A": value})

    assert PBS.parse_status(command_result(output), ["7"])["7"].state is JobState.ACTIVE


@given(st.text(alphabet='{}"\\\n\t :,0aJobs', max_size=80))
def test_the_json_parser_raises_no_exception(text: str) -> None:
    json_listing.parse_json_jobs(text)
    xml_listing.parse_xml_jobs(text)


@pytest.mark.parametrize("value", ["<a>", "</Job>", "&amp;", "a\x01b", "l1\nl2", "'\""])
def test_no_value_is_read_as_structure_in_xml(value: str) -> None:
    escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    output = in_xml("7.node01", Account_Name=escaped, job_state="R", Variable_List=f"A={escaped}")

    (job,) = xml_listing.parse_xml_jobs(output) or []

    assert job.text("Account_Name") == value
    assert TORQUE.parse_status(command_result(output), ["7"])["7"].state is JobState.ACTIVE


def test_the_recorded_values_that_break_json() -> None:
    """Because of one such job, of any user, a JSON parser would lose the whole listing."""
    (step,) = [step for step in recordings("json_of_release_23.06.06_client") if step.argv[-1] == "-x"]
    with pytest.raises(ValueError, match=r"line \d+ column"):
        json.loads(step.result.stdout)

    found = observed(PBS, step.result)

    assert len(found) > 50
    assert all(seen.state is not None for seen in found.values())


def test_the_recorded_values_that_break_xml() -> None:
    steps = [step for step in torque_recordings("variables_and_xml") if "-x" in step.argv]

    for step in steps:
        ((name, seen),) = observed(TORQUE, step.result).items()
        assert (name, seen.state) == (step.argv[-1], JobState.QUEUED)


@pytest.mark.parametrize("hooks", [PBS, TORQUE], ids=["pbs", "torque"])
def test_incomplete_output_is_refused(hooks: object) -> None:
    output = in_json("7.node01", job_state="R") if hooks is PBS else in_xml("7.node01", job_state="R")

    with pytest.raises(SubmitException, match="no answer"):
        hooks.parse_status(command_result(output[: len(output) // 2]), ["7"])  # type: ignore[attr-defined]  # one of both modules


def test_empty_output_is_refused() -> None:
    """OpenPBS prints a frame even if there is no job at all."""
    with pytest.raises(SubmitException, match="no answer"):
        PBS.parse_status(command_result(), ["7"])
    (empty,) = [step for step in recordings("no_jobs") if "json" in step.argv]
    assert PBS.parse_status(command_result(of_all(empty.result.stdout)), None) == {}


def test_a_banner_around_the_listing_is_skipped() -> None:
    output = f"Welcome! {{\n*** 12345 ***\n{in_json('7.node01', job_state='R')}Bye.\n"

    assert PBS.parse_status(command_result(output, "maintenance on Monday\n"), ["7"]).keys() == {"7"}


_LOST = "qstat: cannot connect to server nowhere (errno=15010)\n"


def test_an_error_that_names_no_queried_job_is_refused() -> None:
    with pytest.raises(SubmitException, match="cannot connect"):
        PBS.parse_status(command_result(in_json("9", job_state="R"), _LOST, 255), None)
    with pytest.raises(SubmitException, match="cannot connect"):
        PBS.parse_status(command_result(in_frame({}), _LOST, 255), ["7", "8"])
    with pytest.raises(SubmitException, match="exit code 3"):
        PBS.parse_status(command_result(returncode=3), ["7"])
    with pytest.raises(SubmitException, match="no answer in time"):
        PBS.parse_status(type(command_result())(returncode=-9, timed_out=True), ["7"])


def test_jobs_of_other_servers_are_reported_while_one_is_down() -> None:
    """Listed jobs are reported, jobs in an error message do not exist, the others are unknown."""
    stderr = f"qstat: Unknown Job Id 9.node01\n{_LOST}"

    for others in (["8.nowhere"], ["8.nowhere", "9.node01"]):
        listed = command_result(in_json("7.node01", job_state="R"), stderr if len(others) > 1 else _LOST, 255)
        found = PBS.parse_status(listed, ["7.node01", *others])
        assert {it: seen.state for it, seen in found.items() if seen.exists} == {
            "7.node01": JobState.ACTIVE,
            "8.nowhere": None,
        }
        assert [it for it, seen in found.items() if not seen.exists] == others[1:]
    with pytest.raises(SubmitException, match="cannot connect"):
        PBS.parse_find(command_result(in_json("7.node01", job_state="R"), stderr, 255), ["tag"])


def test_after_an_invalid_id_the_other_jobs_are_unknown() -> None:
    """With -E, qstat was recorded to report the invalid id and to look up no other."""
    steps = [step for step in recordings("express") if "1.nosuch" in step.argv]

    assert steps
    for step in steps:
        found = PBS.parse_status(step.result, ["672", "1.nosuch"])
        assert {name: (seen.state, seen.exists) for name, seen in found.items()} == {
            "672": (None, True),
            "1.nosuch": (None, False),
        }


def test_an_empty_listing_of_all_jobs_is_valid() -> None:
    for native_ids in (None, [str(number) for number in range(26)]):
        assert TORQUE.parse_status(command_result(of_all(SERVER)), native_ids) == {}
        for output in ("", of_all(""), of_all(SERVER)[:-2], f"jobs for tester\n{SERVER}"):
            with pytest.raises(SubmitException, match="no answer"):
                TORQUE.parse_status(command_result(output), native_ids)


@pytest.mark.parametrize("output", ["", "garbage\n", "<Data>", "Welcome to cluster c.\n"])
def test_output_other_than_xml_is_invalid(output: str) -> None:
    with pytest.raises(SubmitException, match="no answer"):
        TORQUE.parse_status(command_result(output), ["7"])


def test_the_qstat_of_pbs_is_distinguished_from_that_of_torque() -> None:
    """For the options that make Torque print XML, it prints finished jobs too, as text."""
    with pytest.raises(SubmitException, match="use the executor pbs"):
        TORQUE.parse_status(command_result("Job Id: 7.node01\n    job_state = R\n"), ["7"])


def test_variables_that_have_torque_leave_out_jobs_are_not_passed_on() -> None:
    assert TORQUE.query(["7"], SITE).unset == ("PBS_QSTAT_*",)


def test_times_are_in_utc() -> None:
    running = in_json("7", job_state="R", qtime="Sat Nov 21 08:57:58 2026", stime="Sat Nov  1 09:00:42 2026")

    assert PBS.parse_status(command_result(running), ["7"])["7"].time == datetime(
        2026, 11, 1, 9, 0, 42, tzinfo=UTC
    )
    done = in_xml("7", job_state="C", exit_status="0", comp_time="1795252475")
    assert TORQUE.parse_status(command_result(done), ["7"])["7"].time == datetime.fromtimestamp(
        1795252475, UTC
    )


@pytest.mark.parametrize("text", ["", "x", "Sat Xyz 21 08:57:58 2026", "Sat Nov 99 08:57:58 2026", "9" * 30])
def test_a_malformed_time_is_unknown(text: str) -> None:
    output = in_json("7", job_state="Q", qtime=text)

    assert PBS.parse_status(command_result(output), ["7"])["7"].time is None


def test_nodes() -> None:
    output = in_json("7", job_state="R", exec_host="node1/0*2+node2/0+node2/1")

    assert PBS.parse_status(command_result(output), ["7"])["7"].nodes == ("node1", "node2")


def test_a_requeued_job() -> None:
    waiting = in_json("7", job_state="Q", run_count=1)
    again = in_json("7", job_state="R", run_count=2)

    seen = PBS.parse_status(command_result(waiting), ["7"])["7"]
    assert (seen.state, seen.reason, seen.restarts) == (JobState.QUEUED, Reason.REQUEUED, 1)
    assert PBS.parse_status(command_result(again), ["7"])["7"].restarts == 1


def test_an_unknown_state_is_passed_on_and_the_other_jobs_are_read() -> None:
    output = in_json("7", job_state="L")

    assert (PBS.parse_status(command_result(output), ["7"])["7"].state, "L") == (None, "L")


@pytest.mark.clause("state-mapping")
@pytest.mark.parametrize(
    ("states", "meant"),
    {
        "wait": ("HMQTW", JobState.QUEUED),
        "run": ("BERSU", JobState.ACTIVE),
        "were ended before they ran": ("FXC", JobState.CANCELED),
    }.values(),
    ids=str,
)
def test_every_state_of_the_manual_is_known(states: str, meant: JobState) -> None:
    outputs = {state: in_json("7", job_state=state, substate=91) for state in states}

    found = {state: PBS.parse_status(command_result(it), ["7"])["7"].state for state, it in outputs.items()}

    assert found == dict.fromkeys(states, meant)


def test_a_job_is_found_by_its_tag_in_every_form_of_its_variables() -> None:
    """A value that ends with a backslash swallows the next variable in the listing."""
    plain = in_json("7.node01", job_state="R", Variable_List={"JPSI_TAG": "jpsi-a-1"})
    swallowed = in_json("7.node01", job_state="R", Variable_List={"A": "b\\,JPSI_TAG=jpsi-a-1"})
    xml = in_xml("7.node01", job_state="R", Variable_List="A=b,JPSI_TAG=jpsi-a-1,C=d")

    for hooks, output in ((PBS, plain), (PBS, swallowed), (TORQUE, of_all(xml + SERVER))):
        assert hooks.parse_find(command_result(output), ["jpsi-a-1", "jpsi-a-2"]) == {"jpsi-a-1": "7.node01"}
        assert hooks.parse_find(command_result(output), ["jpsi-a-11", "jpsi-a"]) == {}


def test_a_tag_whose_line_is_cut_in_two_is_uncertain_but_found() -> None:
    whole = in_json("7.node01", job_state="R", Variable_List={"A": "b", "JPSI_TAG": "jpsi-a-1", "C": "d"})
    for noise in ('"\n', '",\n'):
        cut = command_result(whole.replace("jpsi-a-1", f"jpsi-{noise}a-1"))

        assert observed(PBS, cut)["7.node01"].tag is None
        assert PBS.parse_find(cut, ["jpsi-"]) == {"jpsi-": "7.node01"}


def test_a_value_that_looks_like_a_tag_hides_no_tag() -> None:
    variables = {"NOTE": "was JPSI_TAG=jpsi-old-1", "JPSI_TAG": "jpsi-a-1"}
    inside = in_xml("7.node01", job_state="R", Variable_List="NOTE=was JPSI_TAG=jpsi-old-1,JPSI_TAG=jpsi-a-1")

    for hooks, output in (
        (PBS, in_json("7.node01", job_state="R", Variable_List=variables)),
        (TORQUE, of_all(inside + SERVER)),
    ):
        assert hooks.parse_find(command_result(output), ["jpsi-a-1"]) == {"jpsi-a-1": "7.node01"}


def test_a_job_that_inherited_the_tag_is_not_the_tagged_job() -> None:
    tagged = {"job_state": "R", "Variable_List": {"JPSI_TAG": "jpsi-a-1"}}
    output = in_frame({"10.node01": tagged, "9.node01": tagged, "11.node01": tagged})

    assert PBS.parse_find(command_result(output), ["jpsi-a-1"]) == {"jpsi-a-1": "9.node01"}


def test_a_search_that_failed_proves_nothing() -> None:
    with pytest.raises(SubmitException, match="cannot connect"):
        PBS.parse_find(
            command_result(stderr="qstat: cannot connect to server x (errno=15010)", returncode=255), ["t"]
        )


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, (None, None, None, None)),
        ({"substate": 92}, (None, None, None, None)),
        ({"substate": 92, "Exit_status": "~"}, (None, None, None, None)),
        ({"substate": 93}, (JobState.FAILED, Reason.LAUNCH, None, False)),
        ({"substate": 91}, (JobState.CANCELED, Reason.CANCELLED, None, False)),
        ({"substate": 91, "run_count": 1}, (JobState.CANCELED, Reason.CANCELLED, None, None)),
        ({"depend": "afterok:7@x", "substate": 92}, (JobState.CANCELED, Reason.DEPENDENCY, None, False)),
        ({"depend": "afterok:7@x", "substate": 91}, (JobState.CANCELED, Reason.CANCELLED, None, False)),
        ({"depend": "beforeok:7@x", "substate": 93}, (JobState.FAILED, Reason.LAUNCH, None, False)),
        ({"substate": 93, "Exit_status": -27}, (JobState.FAILED, Reason.OUT_OF_MEMORY, None, True)),
        ({"substate": 93, "Exit_status": -28}, (JobState.FAILED, Reason.TIMEOUT, None, True)),
        ({"substate": 93, "Exit_status": -24}, (JobState.FAILED, None, None, True)),
        ({"substate": 93, "Exit_status": -20}, (JobState.FAILED, Reason.NODE_FAIL, None, True)),
        ({"substate": 93, "Exit_status": -1}, (JobState.FAILED, Reason.LAUNCH, None, None)),
        ({"substate": 93, "Exit_status": 256 + 11}, (JobState.FAILED, Reason.SIGNAL, 139, True)),
        ({"substate": 93, "Exit_status": 600}, (JobState.FAILED, Reason.SIGNAL, None, True)),
    ],
    ids=str,
)
def test_the_end_of_a_job(
    attributes: dict[str, object], expected: tuple[JobState | None, Reason | None, int | None, bool | None]
) -> None:
    seen = PBS.parse_status(command_result(in_json("7", job_state="F", **attributes)), ["7"])["7"]

    assert (seen.state, seen.reason, seen.exit_code, seen.ran) == expected


def test_an_unsatisfiable_dependency_of_torque() -> None:
    """It has a comment and the exit status of a job that qdel ended (job_func.c, handle_aborted_job)."""
    comment = "Job deleted as result of dependency on job 6.node01"
    output = in_xml("7.node01", job_state="C", exit_status="271", comment=comment)

    seen = TORQUE.parse_status(command_result(output), ["7"])["7"]

    assert (seen.state, seen.reason, seen.exit_code) == (JobState.CANCELED, Reason.DEPENDENCY, None)
