"""Submission, queries and control of arrays, with recorded output of Grid Engine 8.1.9."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridengine_support import CONTEXT, SITE, listing, recordings, replay, row, run_query
from jpsi.plugin import JobSpec, JobState, NotOffered, SubmitException
from jpsi_gridengine import hooks
from jpsi_gridengine.native_ids import compress_ids
from jpsi_testing import command_result

ARRAY = attrs.evolve(CONTEXT, elements=500)
IDS = st.one_of(
    st.integers(1, 30).map(str),
    st.tuples(st.integers(1, 5), st.integers(1, 30)).map(lambda pair: f"{pair[0]}.{pair[1]}"),
)
_QUEUED, _ACTIVE = JobState.QUEUED, JobState.ACTIVE


def test_an_array_is_requested_by_one_directive() -> None:
    lines = {
        context.elements: hooks.render_script(JobSpec("/bin/true"), context).text.splitlines()
        for context in (CONTEXT, ARRAY)
    }

    assert "#$ -t 1-500" in lines[500]
    assert not any(line.startswith("#$ -t ") for line in lines[None])


def test_the_limit_of_running_tasks_is_rendered() -> None:
    arrays = hooks.capabilities(SITE).arrays
    script = hooks.render_script(JobSpec("/bin/true"), attrs.evolve(ARRAY, at_a_time=7)).text

    assert arrays is not None
    assert arrays.limits
    assert "#$ -tc 7" in script.splitlines()
    assert "-tc" not in hooks.render_script(JobSpec("/bin/true"), ARRAY).text


@pytest.mark.parametrize(
    "printed",
    ["17.1-500:1\n", "Hello 1\n17.1-500:1\n", 'Your job-array 17.1-500:1 ("a.b") has been submitted\n'],
)
def test_the_id_of_an_array_is_found(printed: str) -> None:
    assert hooks.parse_submit(command_result(printed), ARRAY) == "17"


@pytest.mark.parametrize("printed", ["17\n", 'Your job 17 ("a") has been submitted\n', ""])
def test_an_id_of_a_single_job_is_no_array(printed: str) -> None:
    with pytest.raises(ValueError, match="job id"):
        hooks.parse_submit(command_result(printed), ARRAY)


def test_an_array_that_was_recorded_is_found() -> None:
    (step,) = (it for it in recordings("qstat-qacct") if it.note == "array" and it.argv[0] == "qsub")

    assert step.result.stdout == "284.1-3:1\n"
    assert hooks.parse_submit(step.result, ARRAY) == "284"


def test_task_ids_contain_the_id_of_their_array() -> None:
    ids = hooks.element_ids("17", [1, 3])

    assert ids == ["17.1", "17.3"]
    assert [hooks.canonical_id(native_id) for native_id in ids] == ids
    assert hooks.arrays_of([*ids, "18"]) == {"17.1": "17", "17.3": "17"}


@given(native_ids=st.lists(IDS, unique=True, min_size=1))
def test_compressed_ids_expand_to_the_same_ids(native_ids: list[str]) -> None:
    """No argument has a comma: the text after it would be another job."""
    found = []
    for word in compress_ids(native_ids):
        number, is_task, tasks = word.partition(".")
        first, _, last = tasks.partition("-")
        indices = range(int(first), int(last or first) + 1) if is_task else []
        found += [f"{number}.{index}" for index in indices] or [number]

    assert sorted(found) == sorted(native_ids)


def test_tasks_are_changed_by_ranges() -> None:
    native_ids = ["17.1", "17.2", "18", "17.4", "19.7"]

    assert hooks.cancel(native_ids, {}).argv == ("qdel", "18", "17.1-2", "17.4", "19.7")
    assert hooks.hold(native_ids).argv[1:] == hooks.cancel(native_ids, {}).argv[1:]
    assert hooks.release(native_ids).argv[1:] == hooks.cancel(native_ids, {}).argv[1:]


def test_pending_tasks_are_one_line() -> None:
    rows = [row(17, "r", "a", "<tasks>2</tasks>"), row(17, "qw", "a", "<tasks>1,3-9:1</tasks>")]

    found = hooks.parse_status(listing(*rows), ["17.1", "17.2", "17.9"])

    assert {native_id for native_id, it in found.items() if it.state is _ACTIVE} == {"17.2"}
    assert {native_id for native_id, it in found.items() if it.state is _QUEUED} == {
        f"17.{task}" for task in (1, 3, 4, 5, 6, 7, 8, 9)
    }
    assert found["17.1"] is found["17.9"]


@pytest.mark.parametrize(
    ("text", "tasks"),
    [("4", [4]), ("1,3", [1, 3]), ("1-7:3,9", [1, 4, 7, 9]), ("2-4", [2, 3, 4])],
)
def test_ranges_of_tasks_are_read(text: str, tasks: list[int]) -> None:
    found = hooks.parse_status(listing(row(17, "qw", "a", f"<tasks>{text}</tasks>")), ["17.1"])

    assert set(found) == {f"17.{task}" for task in tasks}


@pytest.mark.parametrize("text", ["0", "0-3:1", "5-3:1", "1,0", "2,5-3", "1-3:0", "", "undefined"])
def test_a_listing_with_tasks_that_no_array_has_is_malformed(text: str) -> None:
    whole = listing(row(17, "qw", "a", f"<tasks>{text}</tasks>"), row(18))

    with pytest.raises(SubmitException, match="is incomplete or malformed"):
        hooks.parse_status(whole, ["17.1", "18"])


def test_an_array_that_is_queried_itself_runs_if_one_of_its_tasks_does() -> None:
    waits, runs = row(17, "qw", "a", "<tasks>3-9:1</tasks>"), row(17, "r", "a", "<tasks>2</tasks>")

    for rows in ([waits, runs], [runs, waits]):
        assert hooks.parse_status(listing(*rows), ["17"])["17"].state is _ACTIVE
    assert hooks.parse_status(listing(waits), ["17"])["17"].state is _QUEUED


def test_unqueried_arrays_get_no_observation() -> None:
    """They may have any number of tasks, and deleted tasks would be reported with their array's state."""
    rows = [row(17, "qw", "a", "<tasks>1-75000:1</tasks>"), row(18, "r", "a", "<tasks>1</tasks>"), row(19)]

    assert set(hooks.parse_status(listing(*rows), ["18.1", "19"])) == {"18.1", "19"}


def test_a_query_of_all_jobs_reports_each_task() -> None:
    rows = [row(17, "qw", "a", "<tasks>1-3:1</tasks>"), row(18, "r", "a", "<tasks>1</tasks>"), row(19)]

    found = hooks.parse_status(listing(*rows), None)

    assert set(found) == {"17.1", "17.2", "17.3", "18.1", "19"}


def test_an_array_is_found_by_the_tag_of_its_tasks() -> None:
    rows = [
        row(17, "r", "jpsi-1-1", "<tasks>2</tasks>"),
        row(17, "qw", "jpsi-1-1", "<tasks>3-9:1</tasks>"),
    ]

    assert hooks.parse_find(listing(*rows), ["jpsi-1-1"]) == {"jpsi-1-1": "17"}


def test_tasks_that_were_recorded_have_accounts_of_their_own(tmp_path: Path) -> None:
    (step,) = (it for it in recordings("qstat-qacct") if it.note == "array" and it.argv[0] == "qacct")

    result = run_query(tmp_path, ["284"], replay(tmp_path, step.result))
    found = hooks.parse_finished(result, ["284.1", "284.2", "284.3"])

    assert not isinstance(found, NotOffered)
    assert {native_id: it.exit_code for native_id, it in found.items()} == {
        "284.1": 1,
        "284.2": 2,
        "284.3": 3,
    }


# Messages of qdel 8.1.9 about tasks, each for one argument of its command line
_REGISTERED = "me has registered the job-array task 17.2 for deletion\n"
_SEVERAL = "me has deleted job-array tasks 10,11 of job 17\n"
_RANGE = "me has deleted job-array tasks 1-19:1,31-39:1 of job 17\n"
_ENDED = 'job "17" task "9" does not exist\n'
_ALL_ENDED = 'job "17" task id range "13-15:1" comprises no tasks\n'
_ENDING = "job 17 is already in deletion\n"
_FORGOTTEN = 'denied: job "18" does not exist\n'
_FOREIGN = 'me - you do not have the necessary privileges to delete the job "19"\n'


@pytest.mark.parametrize("stderr", [_REGISTERED, _SEVERAL, _RANGE, _ENDED, _ALL_ENDED, _ENDING])
def test_only_the_tasks_of_another_user_were_not_deleted(stderr: str) -> None:
    result = command_result(f"{stderr}{_FORGOTTEN}{_FOREIGN}", returncode=1)

    refused = hooks.parse_cancel(result, ["17.1", "17.2", "18.1", "19.1", "19.2"])

    assert refused == dict.fromkeys(["19.1", "19.2"], _FOREIGN.strip())


def test_tasks_without_a_message_were_not_deleted() -> None:
    assert set(hooks.parse_cancel(command_result(_REGISTERED, returncode=1), ["17.2", "20.1"])) == {"20.1"}


def test_tasks_that_cannot_be_held_are_reported() -> None:
    why = 'denied: "me" must be at least owner of job 18 to change job attributes'
    message = f"modified hold of job-array task 17.3\n{why}\n"

    assert hooks.parse_hold(command_result(message, returncode=18), ["17.3", "18.1"]) == {"18.1": why}


def test_the_probe_reports_the_root_and_the_array_limit() -> None:
    command = hooks.probe().argv[-1]
    cell = command.partition("SGE_CELL=")[2].split()[0]
    where = f'error: cell directory "/opt/sge 8/{cell}" doesn\'t exist\n'
    configuration = "#global:\nmax_aj_instances             2000\nmax_aj_tasks                 100\n"

    assert hooks.parse_probe(command_result(configuration, where)) == {
        "root": "/opt/sge 8",
        "largest_array": 100,
    }
    assert hooks.parse_probe(command_result("max_aj_tasks   0\n", "error: job id 0 not found\n")) == {}
    assert hooks.parse_probe(command_result(stderr="sh: qconf: not found\n", returncode=127)) == {}


@pytest.mark.parametrize(("offers", "largest"), [({}, 75000), ({"largest_array": 100}, 100)])
def test_arrays_are_as_large_as_the_site_allows(offers: dict[str, int], largest: int) -> None:
    arrays = hooks.capabilities(attrs.evolve(SITE, offers=offers)).arrays

    assert arrays is not None
    assert arrays.largest == largest
