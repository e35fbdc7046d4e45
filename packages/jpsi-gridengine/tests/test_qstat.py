"""The output of qstat in cases without a recording."""

from __future__ import annotations

import pytest

from gridengine_support import listing, row
from jpsi.plugin import JobState, Reason, SubmitException
from jpsi_gridengine import hooks
from jpsi_testing import command_result

_QUEUED, _ACTIVE = JobState.QUEUED, JobState.ACTIVE


def test_a_job_in_an_error_state_has_that_message() -> None:
    found = hooks.parse_status(listing(row(17, "Eqw")), None)["17"]

    assert (found.state, found.reason) == (_QUEUED, Reason.LAUNCH)
    assert "qmod -cj" in str(found.message)


def test_an_unknown_state_does_not_hide_other_jobs() -> None:
    found = hooks.parse_status(listing(row(17, "Xr"), row(18, "r")), None)

    assert (found["17"].state, found["17"].native_state) == (None, "Xr")
    assert found["18"].state is _ACTIVE


def test_a_name_that_is_no_xml_does_not_hide_other_jobs() -> None:
    """Grid Engine 8.1.9 escapes `<`; another release may not."""
    rows = [row(17, name="a%lt;b&amp;c"), row(18, name="a < b & c"), row(19)]

    assert set(hooks.parse_status(listing(*rows), None)) == {"17", "18", "19"}


def test_ended_jobs_are_not_in_the_queue() -> None:
    assert hooks.parse_status(listing(row(17, "z")), None) == {}


def test_incomplete_output_is_refused() -> None:
    whole = listing(row(17)).stdout

    with pytest.raises(SubmitException, match="is incomplete"):
        hooks.parse_status(command_result(whole[: len(whole) // 2]), None)


def test_a_tag_is_found_only_at_the_end_of_a_name() -> None:
    rows = [row(17, name="a.b.jpsi-1-1"), row(18, name="jpsi-2-1"), row(19, name="jpsi-3-1.x")]

    assert hooks.parse_find(listing(*rows), ["jpsi-1-1", "jpsi-2-1", "jpsi-3-1"]) == {
        "jpsi-1-1": "17",
        "jpsi-2-1": "18",
    }
