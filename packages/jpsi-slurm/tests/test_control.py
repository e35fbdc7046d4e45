"""Cancelling, holding, releasing: the refused jobs, and the reasons."""

from __future__ import annotations

from jpsi.plugin import CommandResult
from jpsi_slurm import hooks
from jpsi_testing import command_result
from slurm_support import SITE, site


def test_the_commands() -> None:
    assert hooks.cancel(["7", "8_1"], site(cluster="c")).argv == ("scancel", "--clusters=c", "7", "8_1")
    assert hooks.hold(["7"], SITE).argv == ("scontrol", "hold", "7")
    assert hooks.release(["7"], SITE).argv == ("scontrol", "release", "7")
    assert {"SCANCEL_*", "SCONTROL_*"} <= set(hooks.cancel(["7"], SITE).unset)


def test_only_the_job_of_another_user_was_not_cancelled() -> None:
    denied = "scancel: error: Kill job error on job id 80: Access/permission denied\n"

    assert hooks.parse_cancel(command_result(stderr=denied, returncode=210), ["79", "80"]) == {
        "80": "Access/permission denied"
    }


def test_a_job_that_has_ended_counts_as_cancelled() -> None:
    over = (
        "scancel: Terminating job 78\n"
        "scancel: error: Kill job error on job id 78: Job/step already completing or completed\n"
        "scancel: error: Kill job error on job id 99: Invalid job id specified\n"
    )

    assert hooks.parse_cancel(command_result(stderr=over, returncode=1), ["78", "99"]) == {}


def test_a_request_that_reached_no_daemon_failed_for_every_job() -> None:
    lost = command_result(stderr="scancel: error: slurm_load_jobs error\n", returncode=1)

    assert set(hooks.parse_cancel(lost, ["7", "8"])) == {"7", "8"}
    assert set(hooks.parse_cancel(CommandResult(returncode=0, timed_out=True), ["7"])) == {"7"}


def test_jobs_that_could_not_be_held_are_reported() -> None:
    finished = (
        "Job has already finished for job 78\nslurm_suspend error: Job has already finished\n"
        "Access/permission denied for job 80\n"
    )

    assert hooks.parse_hold(command_result(stderr=finished, returncode=1), ["77", "78", "80"]) == {
        "78": "Job has already finished",
        "80": "Access/permission denied",
    }
