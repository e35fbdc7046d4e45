"""Submission, queries and control of arrays, with recorded output of OpenPBS and Torque."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import Dependency, DependencyKind, JobState, Observation, Site, SubmitContext
from jpsi_pbs import PbsConfig
from jpsi_pbs.fake.arrays import expand_ids
from jpsi_pbs.hooks import Hooks
from jpsi_pbs.native_ids import compress_ids, group_by_array
from jpsi_testing import command_result
from pbs_support import (
    CONTEXT,
    PBS,
    SITE,
    TORQUE,
    in_frame,
    in_json,
    recordings,
    site,
    spec,
    torque_recordings,
)

ARRAY = attrs.evolve(CONTEXT, elements=500)
IDS = st.one_of(
    st.integers(1, 30).map(lambda number: f"{number}.a"),
    st.tuples(st.integers(1, 5), st.integers(0, 30)).map(lambda pair: f"{pair[0]}[{pair[1]}].a"),
)


@pytest.mark.parametrize(("hooks", "directive"), [(PBS, "#PBS -J 1-500"), (TORQUE, "#PBS -t 1-500")])
def test_an_array_is_requested_by_one_directive(hooks: Hooks, directive: str) -> None:
    def lines(context: SubmitContext) -> set[str]:
        return set(hooks.render_script(spec(), context).text.splitlines())

    assert lines(ARRAY) - lines(CONTEXT) == {directive}


@pytest.mark.parametrize(("hooks", "directive"), [(PBS, "#PBS -J 1-500%7"), (TORQUE, "#PBS -t 1-500%7")])
def test_the_limit_of_running_elements_is_rendered(hooks: Hooks, directive: str) -> None:
    script = hooks.render_script(spec(), attrs.evolve(ARRAY, at_a_time=7))

    assert directive in script.text.splitlines()


@pytest.mark.parametrize(
    ("hooks", "line", "limits"),
    [
        (PBS, "", False),
        (PBS, "    pbs_version = 20.0.1\n", False),
        (PBS, "    pbs_version = 22.05.11\n", True),
        (PBS, "    pbs_version = 2020.1.1.20201222\n", False),
        (PBS, "    pbs_version = 2022.1.1.20221222\n", True),
        (TORQUE, "    pbs_version = 6.1.3.h5\n", True),
    ],
)
def test_the_version_decides_whether_arrays_have_a_limit(hooks: Hooks, line: str, limits: bool) -> None:
    """OpenPBS 22.05 is the first whose qsub takes `-J 1-9%2`."""
    offers = hooks.parse_probe(command_result(f"Server: node01\n    server_state = Active\n{line}\n"))

    arrays = hooks.capabilities(Site(config=PbsConfig(), offers=offers)).arrays

    assert arrays is not None
    assert arrays.limits is limits


@pytest.mark.parametrize("hooks", [PBS, TORQUE])
def test_element_ids_contain_the_id_of_their_array(hooks: Hooks) -> None:
    array = hooks.parse_submit(command_result("17[].node01\n"))

    ids = hooks.element_ids(array, [1, 3])

    assert ids == ["17[1].node01", "17[3].node01"]
    assert [hooks.canonical_id(native_id, SITE) for native_id in ids] == ids
    assert hooks.element_ids("17[]", [2]) == ["17[2]"]
    assert group_by_array([*ids, "17[].node01", "18.node01"]) == {"17[].node01": [1, 3]}


@given(native_ids=st.lists(IDS, unique=True, min_size=1))
def test_compressed_ids_expand_to_the_same_ids(native_ids: list[str]) -> None:
    words = compress_ids(native_ids)

    assert sorted(it for word in words for it in expand_ids(word)) == sorted(native_ids)
    assert not any("," in word for word in words), "a server has no room for long ones"


def test_the_elements_of_an_array_are_queried_together() -> None:
    """With -t all elements are listed. Torque is queried by id for few jobs, else for all jobs."""
    elements = [f"17[{index}].node01" for index in range(1, 100)]

    assert PBS.arrays_of([*elements, "18.node01"]) == dict.fromkeys(elements, "17[].node01")
    assert PBS.query(["17[].node01"], SITE).argv[-3:] == ("-t", "-E", "17[].node01")
    assert "-t" not in PBS.query(["18.node01"], SITE).argv
    assert TORQUE.query(elements, SITE).argv[-4:] == ("qstat", "-f", "-x", "-t")
    assert TORQUE.query(elements[:2], SITE).argv == ("qstat", "-f", "-x", *elements[:2])


def test_an_array_of_openpbs_is_read() -> None:
    """OpenPBS lists pending and deleted elements with the attributes of the array."""
    waiting, begun, ended = (
        next(step for step in recordings("array")[start:] if {"-t", "-f", "json"} <= {*step.argv})
        for start in (0, 7, 25)
    )
    ids = [f"197[{index}].node01" for index in (1, 2, 3)]

    assert [it.state for it in PBS.parse_status(waiting.result, ids).values()] == [JobState.QUEUED] * 3
    found = PBS.parse_status(begun.result, [*ids, "197[].node01"])
    assert {name: (it.state, it.exit_code) for name, it in found.items()} == {
        ids[0]: (JobState.COMPLETED, 0),
        ids[1]: (JobState.FAILED, 5),
        ids[2]: (JobState.ACTIVE, None),
        "197[].node01": (JobState.ACTIVE, None),
    }
    assert [it.state for it in PBS.parse_finished(ended.result, ids).values()] == [
        JobState.COMPLETED,
        JobState.FAILED,
        JobState.CANCELED,
    ]


def test_pending_elements_share_one_observation() -> None:
    (step,) = (it for it in recordings("array")[:7] if {"-t", "-f", "json"} <= {*it.argv})

    found = PBS.parse_status(step.result, ["197[1].node01", "197[2].node01"])

    assert found["197[1].node01"] is found["197[2].node01"]


@pytest.mark.parametrize("word", ["X", "F"])
def test_the_end_of_an_element_is_not_that_of_its_array(word: str) -> None:
    """PBS shows the array's end for elements that were deleted before they began or that it has forgotten."""
    listed = in_json(
        "17[2].node01", job_state=word, substate=70, Exit_status=1, run_count=1, comment="Subjob finished"
    )

    assert PBS.parse_status(command_result(listed), ["17[2].node01"]) == {}


def test_a_pending_element_does_not_have_the_comment_of_its_array() -> None:
    comment = "Job Array Began at Sat Nov 21 at 09:03"
    listed = in_json("17[2].node01", job_state="Q", Exit_status=1, comment=comment)

    seen = PBS.parse_status(command_result(listed), ["17[2].node01"])["17[2].node01"]

    assert (seen.state, seen.message, seen.exit_code) == (JobState.QUEUED, None, None)


def test_an_array_of_torque_is_read() -> None:
    steps = [step for step in torque_recordings("array") if {"-t", "-x"} <= {*step.argv}]
    ids = [f"32[{index}].node01" for index in (1, 2, 3)]

    begun, ended = (TORQUE.parse_status(step.result, ids) for step in steps)

    assert [it.state for it in begun.values()] == [JobState.ACTIVE, JobState.QUEUED, JobState.QUEUED]
    assert [it.exit_code for it in ended.values()] == [0, 5, 0]


def test_elements_of_an_unknown_array_do_not_exist() -> None:
    stderr = "qstat: Unknown Job Id 17[].node01\n"

    result = command_result(in_frame({}), stderr, returncode=153)

    native_ids = ["17[1].node01", "17[2].node01"]
    denied = Observation.denied("Unknown Job Id 17[].node01")
    assert PBS.parse_status(result, native_ids) == dict.fromkeys(native_ids, denied)


def test_elements_are_deleted_by_ranges() -> None:
    native_ids = ["17[1].a", "18.a", "17[2].a", "17[4].a"]

    several, one, none = (
        PBS.cancel(it).argv for it in (native_ids, ["17[1].a", "17[2].a"], ["18.a", "19.a"])
    )

    # one at a time
    assert several[3:] == ("qdel", "", "18.a", "", "17[1-2].a", "", "17[4].a")
    assert one == ("qdel", "17[1-2].a")
    assert none == ("qdel", "18.a", "19.a")


def test_torque_ends_a_single_element_by_its_own_id() -> None:
    assert TORQUE.cancel(["17[4].a"]).argv == ("qdel", "17[4].a")


@pytest.mark.parametrize("program", ["qdel", "qhold", "qrls"])
def test_torque_takes_ranges_of_one_array_at_a_time(program: str, tmp_path: Path) -> None:
    fake = tmp_path / program
    fake.write_text('#!/bin/sh\nprintf "%s " "$@"; echo; [ "$*" != 18.a ]\n')
    fake.chmod(0o755)
    change = {"qdel": TORQUE.cancel, "qhold": TORQUE.hold, "qrls": TORQUE.release}[program]
    native_ids = ["17[1].a", "18.a", "17[2].a", "17[4].a", "19[7].a"]

    argv = change(native_ids).argv
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    ran = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)

    assert ran.stdout == "18.a \n-t 1-2,4 17[].a \n-t 7 19[].a \n"
    assert ran.returncode == 1
    assert change(["18.a", "19.a"]).argv == (program, "18.a", "19.a")


def test_torque_gets_no_range_that_it_would_cut_off() -> None:
    words = TORQUE.cancel([f"17[{index}].a" for index in range(1, 5000, 2)]).argv[4:]

    ranges = words[::2]

    assert set(words[1::2]) == {"17[].a"}
    assert max(map(len, ranges)) <= 1000
    assert ",".join(ranges) == ",".join(str(index) for index in range(1, 5000, 2))


@pytest.mark.parametrize(
    "stderr",
    [
        "qdel: Request invalid for finished array subjob 17[4].a\n",
        "qdel: Unknown Job Id 17[1-2].a\nqdel: Unknown Job Id 17[4].a\n",
        "qdel: nonexistent job id: 17[].a\n",
    ],
)
def test_an_element_that_has_ended_counts_as_cancelled(stderr: str) -> None:
    native_ids = ["17[1].a", "17[2].a", "17[4].a"]

    assert PBS.parse_cancel(command_result(stderr=stderr, returncode=55), native_ids) == {}


def test_jobs_that_qdel_did_not_delete_are_reported() -> None:
    error = "qdel: Unauthorized Request  17[1-2].a\n"

    refused = PBS.parse_cancel(
        command_result(stderr=error, returncode=159), ["17[1].a", "17[2].a", "17[4].a"]
    )

    assert set(refused) == {"17[1].a", "17[2].a"}


def test_holding_a_single_element_of_pbs_is_refused() -> None:
    stderr = "qhold: Invalid request 17[1].a\n"

    refused = PBS.parse_hold(command_result(stderr=stderr, returncode=156), ["17[1].a", "18.a"])

    assert list(refused) == ["17[1].a"]
    assert "the array as a whole" in refused["17[1].a"]


@pytest.mark.parametrize("hooks", [PBS, TORQUE])
def test_a_dependency_on_an_element_is_refused(hooks: Hooks) -> None:
    after = (Dependency("17[1].a", DependencyKind.OK),)

    with pytest.raises(ValueError, match="element of an array"):
        hooks.render_script(spec(), attrs.evolve(CONTEXT, after=after))
    whole = attrs.evolve(CONTEXT, after=(Dependency("17[].a", DependencyKind.ANY),))
    assert "#PBS -W depend=afterany:17[].a" in hooks.render_script(spec(), whole).text


@pytest.mark.parametrize(
    ("hooks", "line", "largest"),
    [
        (PBS, "", 10_000),
        (PBS, "    max_array_size = 500\n", 500),
        (TORQUE, "", 99_999),
        (TORQUE, "    max_job_array_size = 500\n", 500),
    ],
)
def test_the_array_size_is_that_of_the_server(hooks: Hooks, line: str, largest: int) -> None:
    offers = hooks.parse_probe(command_result(f"Server: node01\n    server_state = Active\n{line}\n"))

    arrays = hooks.capabilities(Site(config=PbsConfig(), offers=offers)).arrays

    assert arrays is not None
    assert arrays.largest == largest


def test_jobs_that_must_not_be_requeued_are_no_array() -> None:
    assert PBS.capabilities(site(rerun=False)).arrays is None
    assert PBS.capabilities(site(rerun=True)).arrays is not None
    assert TORQUE.capabilities(site(rerun=False)).arrays is not None
