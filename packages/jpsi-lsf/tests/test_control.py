"""The messages of bkill, bstop and bresume, and the jobs that they are about."""

from __future__ import annotations

from jpsi_lsf import hooks
from jpsi_testing import command_result


def test_jobs_that_bkill_did_not_cancel_are_reported() -> None:
    stderr = (
        "Job <7>: Job has already finished\nJob <8>: No matching job found\n"
        "Job <9>: User permission denied\nJob <10>: Operation is in progress\n"
    )
    result = command_result("Job <11> is being terminated\n", stderr, 255)

    assert hooks.parse_cancel(result, ["7", "8", "9", "10", "11"]) == {"9": "User permission denied"}


def test_a_job_without_a_message_was_not_changed() -> None:
    result = command_result(stderr="Job <7>: Operation is in progress\n", returncode=255)

    assert list(hooks.parse_hold(result, ["7", "8"])) == ["8"]


def test_a_request_that_reached_no_daemon_failed_for_every_job() -> None:
    result = command_result(stderr="Connection refused by server\n", returncode=255)

    assert hooks.parse_cancel(result, ["7"]) == {"7": "Connection refused by server"}
