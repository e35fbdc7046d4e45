"""The messages of qdel and qhold in cases without a recording."""

from __future__ import annotations

from jpsi.plugin import CommandResult
from jpsi_gridengine import hooks
from jpsi_testing import command_result


def test_the_commands() -> None:
    assert hooks.cancel(["7"], {}).argv == ("qdel", "7")
    assert hooks.hold(["7"]).argv == ("qhold", "7")
    assert hooks.release(["7"]).argv == ("qrls", "7")


def test_only_the_job_of_another_user_was_not_cancelled() -> None:
    output = (
        "me has registered the job 7 for deletion\njob 71 is already in deletion\n"
        'me - you do not have the necessary privileges to delete the job "8"\n'
        'denied: job "9" does not exist\n'
    )

    assert list(hooks.parse_cancel(command_result(output, returncode=1), ["7", "71", "8", "9"])) == ["8"]


def test_a_request_that_reached_no_daemon_failed_for_every_job() -> None:
    output = 'unable to send message to qmaster using port 6444 on host "x": got send error\n'

    assert set(hooks.parse_cancel(command_result(output, returncode=1), ["7", "6444"])) == {"7", "6444"}
    assert set(hooks.parse_hold(CommandResult(returncode=0, timed_out=True), ["7"])) == {"7"}


def test_an_unknown_job_cannot_be_held() -> None:
    output = 'modified hold of job 7\ndenied: job "8" does not exist\n'

    assert list(hooks.parse_hold(command_result(output, returncode=3), ["7", "8"])) == ["8"]
