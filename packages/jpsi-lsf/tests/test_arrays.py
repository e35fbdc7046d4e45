"""Submission, queries and control of arrays, with recorded output of volclava 2.2."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import Arrays, CommandResult, JobSpec, JobState, Site, SubmitContext, SubmitException
from jpsi_lsf import hooks
from jpsi_lsf.config import LsfConfig
from jpsi_lsf.fake import lsf, volclava
from jpsi_lsf.native_ids import compress_ids, expand_ids
from jpsi_lsf.queue.json_listing import FIELDS
from jpsi_testing import Recording, command_result
from jpsi_testing.fake import FakeClock, FakeScheduler, Invocation, Outcome, answer
from lsf_support import MODERN, OLD, SITE, bjobs_l, directives, recordings

IDS = st.one_of(
    st.integers(1, 30).map(str),
    st.tuples(st.integers(1, 5), st.integers(1, 300)).map(lambda pair: f"{pair[0]}[{pair[1]}]"),
)


def _array(elements: int | None, at_a_time: int | None = None) -> SubmitContext:
    return SubmitContext(site=SITE, job_id="1", tag="jpsi-1-1", elements=elements, at_a_time=at_a_time)


def _name(spec: JobSpec, elements: int | None, at_a_time: int | None = None) -> str:
    lines = [it.text for it in hooks.render_script(spec, _array(elements, at_a_time)).directives]
    return next(line.removeprefix("#BSUB -J ") for line in lines if line.startswith("#BSUB -J "))


def _arrays(offers: Mapping[str, Any]) -> Arrays:
    arrays = hooks.capabilities(Site(config=LsfConfig(), offers=offers)).arrays
    assert arrays is not None
    return arrays


def _step(*argv: str) -> Recording:
    return next(step for step in recordings("array-elements") if step.argv == argv)


def test_an_array_is_requested_by_its_name() -> None:
    assert _name(JobSpec("/bin/true", name="my job"), 500) == "'my job[1-500]'"
    assert _name(JobSpec("/bin/true"), 2) == "jpsi[1-2]"
    assert _name(JobSpec("/bin/true"), None) == "jpsi"
    assert directives(JobSpec("/bin/true"), _array(2)) == directives(JobSpec("/bin/true"), _array(None))


def test_a_long_name_leaves_room_for_the_indices() -> None:
    """The limit of volclava is 254 bytes, list included."""
    name = _name(JobSpec("/bin/true", name="n" * 254), 1000)
    limited = _name(JobSpec("/bin/true", name="n" * 254), 1000, 20)

    assert len(name) == len(limited) == 254
    assert name.endswith("n[1-1000]")
    assert limited.endswith("n[1-1000]%20")


def test_the_limit_of_running_elements_is_rendered() -> None:
    assert _arrays({}).limits
    assert _name(JobSpec("/bin/true"), 500, 7) == "jpsi[1-500]%7"


def test_element_ids_contain_the_id_of_their_array() -> None:
    ids = hooks.element_ids("17", [1, 3])

    assert ids == ["17[1]", "17[3]"]
    assert [hooks.canonical_id(native_id) for native_id in ids] == ids
    assert hooks.arrays_of([*ids, "18"]) == {"17[1]": "17", "17[3]": "17"}


@given(native_ids=st.lists(IDS, unique=True, min_size=1))
def test_compressed_ids_expand_to_the_same_ids(native_ids: list[str]) -> None:
    words = compress_ids(native_ids)

    assert sorted(it for word in words for it in expand_ids(word)) == sorted(native_ids)


def test_no_range_list_is_longer_than_the_limit_of_bkill() -> None:
    refused = next(step for step in recordings("array-elements") if "Bad job array" in step.result.stderr)
    words = hooks.cancel([f"65432[{index}]" for index in range(10001, 12000, 2)]).argv[1:]

    assert refused.argv[1].count(",") == 124
    assert max(word.count(",") for word in words) < 50
    assert max(map(len, words)) < 512
    assert len(words) == 25


def test_elements_are_named_by_few_arguments() -> None:
    ids = ["17[1]", "17[2]", "18", "17[4]", "19[3]"]

    for hook in (hooks.cancel, hooks.hold, hooks.release):
        assert hook(ids).argv[1:] == ("18", "17[1-2,4]", "19[3]")


def _listed(site: Site, *states: tuple[int, str]) -> str:
    """Return the output of bjobs about elements of the array 17."""
    if site is OLD:
        heads = (f"Job <17[{it}]>, User <u>, Status <{word}>, Queue <q>, Command <x>" for it, word in states)
        return bjobs_l(*heads)
    usual = dict.fromkeys(FIELDS.upper().split(), "")
    records = [usual | {"JOBID": "17", "JOBINDEX": str(index), "STAT": word} for index, word in states]
    return json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records})


@pytest.mark.parametrize("site", [MODERN, OLD], ids=["json", "paragraphs"])
def test_unlisted_elements_are_left_out(site: Site) -> None:
    """For example if LSF forgot only some: complete output about an array is about all known elements."""
    text = _listed(site, (2, "RUN"))

    found = hooks.parse_status(command_result(text), ["17[1]", "17[2]"], site)

    assert {name: seen.state for name, seen in found.items()} == {"17[2]": JobState.ACTIVE}


def test_truncated_output_denies_no_element() -> None:
    """Truncated output says nothing about elements that it does not list."""
    whole = _listed(OLD, (1, "RUN"), (2, "PEND"), (3, "PEND"))
    until_second = whole[: whole.index("\n" + "-" * 78, whole.index("17[2]"))]
    elements = ["17[1]", "17[2]", "17[3]"]

    assert hooks.parse_status(command_result(whole), elements, OLD).keys() == {*elements}
    for cut in (until_second, f"{until_second}\n", f"{until_second}\n{'-' * 78}\n"):
        with pytest.raises(SubmitException):
            hooks.parse_status(command_result(cut), elements, OLD)


def test_output_without_a_queried_array_is_incomplete_unless_it_is_unknown() -> None:
    unknown = command_result(_listed(OLD, (2, "RUN")), "Job <18> is not found\n", 255)

    observations = hooks.parse_status(unknown, ["17[2]", "18[1]"], OLD)
    assert {name: seen.exists for name, seen in observations.items()} == {"17[2]": True, "18[1]": False}
    with pytest.raises(SubmitException):
        hooks.parse_status(unknown, ["17[2]", "19[1]"], OLD)


def test_an_unknown_element_is_denied_by_its_own_id() -> None:
    step = _step("bjobs", "-l", "2[9]", "2")

    observations = hooks.parse_status(step.result, ["2[9]", "2[5]"], OLD)

    assert observations["2[9]"].native_state == "Job <2[9]> is not found"
    assert (observations["2[9]"].exists, observations["2[5]"].exists) == (False, True)


def test_equal_records_share_one_observation() -> None:
    for site in (MODERN, OLD):
        text = _listed(site, (1, "PEND"), (2, "PEND"))
        found = hooks.parse_status(command_result(text), ["17[1]", "17[2]"], site)
        assert found["17[1]"] is found["17[2]"]


def test_an_array_is_found_by_the_tag_of_its_elements() -> None:
    listed = _step("bjobs", "-l", "-a").result

    assert hooks.parse_find(listed, ["jpsi-abc-1"], OLD) == {"jpsi-abc-1": "1"}


def test_each_element_of_the_recorded_array_is_reported() -> None:
    running = hooks.parse_status(_step("bjobs", "-l", "2").result, [f"2[{it}]" for it in range(1, 7)], OLD)
    ended = hooks.parse_finished(_step("bhist", "-n", "0", "-l", "1").result, [], OLD)

    assert {name: seen.state for name, seen in running.items()} == {
        f"2[{index}]": JobState.ACTIVE for index in range(1, 7)
    }
    assert {name: seen.exit_code for name, seen in ended.items()} == {f"1[{it}]": it for it in range(1, 5)}


def test_jobs_that_were_not_cancelled_or_held_are_reported() -> None:
    over, gone = _step("bkill", "2[1-3]").result, _step("bkill", "2[5-8]").result
    held = _step("bstop", "3[1,4]").result

    assert hooks.parse_cancel(over, ["2[1]", "2[2]", "2[3]"]) == {}
    assert hooks.parse_cancel(gone, ["2[5]", "2[6]", "2[7]", "2[8]"]) == {}
    assert hooks.parse_hold(held, ["3[1]", "3[4]"]) == {"3[1]": "Job has already finished"}


@pytest.mark.parametrize("named_by", ["17[1-2]", "17"])
def test_a_message_about_an_array_counts_for_each_element(named_by: str) -> None:
    """LSF 10.1 may name only the array; volclava names each element."""
    refused = command_result(stderr=f"Job <{named_by}>: User permission denied\n", returncode=255)
    done = command_result(
        f"Job <{named_by}> is being terminated\n", "Job <18>: User permission denied\n", 255
    )

    assert hooks.parse_cancel(refused, ["17[1]", "17[2]"]) == dict.fromkeys(
        ["17[1]", "17[2]"], "User permission denied"
    )
    assert hooks.parse_cancel(done, ["17[1]", "17[2]", "18"]) == {"18": "User permission denied"}


@pytest.mark.parametrize(("limit_line", "largest"), [("MAX_JOB_ARRAY_SIZE = 7", 7), ("", 1000)])
def test_the_array_size_is_that_of_the_site(limit_line: str, largest: int) -> None:
    usual = _step("bparams", "-l").result.stdout.replace("MAX_JOB_ARRAY_SIZE = 1000", limit_line)
    text = f'{{"COMMAND":"bjobs","JOBS":0,"RECORDS":[]}}\n{usual}\nQUEUE: normal\n'

    arrays = _arrays(hooks.parse_probe(command_result(text)))

    assert arrays.largest == largest
    assert (arrays.id_variable, arrays.index_variable) == ("LSB_JOBID", "LSB_JOBINDEX")


def test_no_array_is_larger_than_an_index_can_be() -> None:
    """From 65535 on, volclava takes the array for a single job of that name."""
    assert _arrays({"max_job_array_size": 2147483646}).largest == 65534


class TestFake:
    """Arrays of the fake, compared with the recorded ones."""

    @staticmethod
    def submitted(scheduler: FakeScheduler, name: str) -> None:
        script = f"#!/bin/sh\n#BSUB -J '{name}'\nexit 0\n"
        result = answer(scheduler, volclava, Invocation(argv=["bsub"], stdin=script))
        assert result.stdout == "Job <1> is submitted to default queue <normal>.\n"

    @staticmethod
    def run(scheduler: FakeScheduler, *argv: str) -> CommandResult:
        return answer(scheduler, volclava, Invocation(argv=argv))

    def test_elements_of_the_fake_are_named_as_recorded(self) -> None:
        with FakeScheduler(FakeClock(), slots=0) as scheduler:
            self.submitted(scheduler, "arr[1-4]")

            listing = self.run(scheduler, "bjobs", "-o", "jobid job_name", "-json", "1[2]", "1[9]").stdout

            assert json.loads(listing)["RECORDS"] == [
                {"JOBID": "1", "JOB_NAME": "arr[2]"},
                {"JOBID": "1", "ERROR": "Job <1[9]> is not found"},
            ]

    def test_the_fake_cancels_lists_as_recorded(self) -> None:
        with FakeScheduler(FakeClock(), slots=0) as scheduler:
            self.submitted(scheduler, "arr[1-6]")

            some = self.run(scheduler, "bkill", "1[1-2,4]")
            others = self.run(scheduler, "bkill", "1[5-8]")
            every = self.run(scheduler, "bkill", "1")

        assert some.stdout.replace("<1[", "<2[") == _step("bkill", "2[1-2,4]").result.stdout
        recorded = _step("bkill", "2[5-8]").result
        assert others.returncode == recorded.returncode
        assert others.stdout.replace("<1[", "<2[") == recorded.stdout
        assert others.stderr.replace("<1[", "<2[") == recorded.stderr
        assert (every.returncode, every.stderr) == (255, "Job <1>: Operation is in progress\n")

    def test_the_limit_of_running_elements_is_kept(self) -> None:
        with FakeScheduler(FakeClock(), slots=5, outcome=Outcome(60)) as scheduler:
            self.submitted(scheduler, "arr[1-3]%2")

            seen = hooks.parse_status(self.run(scheduler, "bjobs", "-l", "1"), ["1[1]", "1[2]", "1[3]"], OLD)

            assert [it.state for it in seen.values()] == [JobState.ACTIVE, JobState.ACTIVE, JobState.QUEUED]
            assert seen["1[3]"].message == "The job array has reached its running element limit"

    @pytest.mark.parametrize(
        "name", ["bad[0-3]", "bad[3-1]", "bad[", "bad[]", "bad[a]", "bad[1-3]x", "big[1-1001]"]
    )
    def test_a_malformed_array_is_a_name(self, name: str) -> None:
        with FakeScheduler(FakeClock(), slots=0) as scheduler:
            self.submitted(scheduler, name)

            assert [(job.native_id, job.name) for job in scheduler.jobs] == [("1", name)]

    def test_lsf_10_refuses_arrays_that_are_too_large(self) -> None:
        script = "#!/bin/sh\n#BSUB -J big[1-1001]\nexit 0\n"
        with FakeScheduler(FakeClock()) as scheduler:
            result = answer(scheduler, lsf, Invocation(argv=["bsub"], stdin=script))

        assert result.stderr == "Job array index too large. Job not submitted.\n"
