"""Submission, cancelling and holding: the commands, the id in the output, and the kinds of failures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import CommandResult, FailureKind, Script
from jpsi_testing import command_result
from pbs_support import PBS, TORQUE, recordings, torque_recordings


def _is_unset(name: str) -> bool:
    patterns = PBS.submit(Script([])).unset
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns
    )


def test_the_script_is_read_from_standard_input() -> None:
    script = Script([])

    assert (PBS.submit(script).argv, PBS.submit(script).stdin) == (("qsub", "-f"), script.text)
    assert TORQUE.submit(script).argv == ("qsub",), "-f means fault tolerant there"


def _recorded_variables() -> set[str]:
    """Return the variables that PBS and Torque were recorded to set in a job."""
    printed = [step.result.stdout for step in recordings("env_in_job") if step.argv[0] == "cat"]
    printed += [step.result.stdout for step in torque_recordings("submit_ok") if step.argv[0] == "cat"]
    return {line.partition("=")[0] for text in printed for line in text.splitlines() if "PBS_" in line[:4]}


@pytest.mark.parametrize("name", sorted(_recorded_variables()))
def test_no_variable_of_another_job_is_inherited(name: str) -> None:
    assert _is_unset(name)


@pytest.mark.parametrize("name", ["PBS_DPREFIX", "JPSI_TAG", "JPSI_NAME", "PMI_RANK", "OMPI_COMM_WORLD_SIZE"])
def test_variables_that_would_be_misread_are_not_inherited(name: str) -> None:
    assert _is_unset(name)


@pytest.mark.parametrize(
    "name", ["PBS_SERVER", "PBS_DEFAULT", "PBS_CONF_FILE", "PBS_EXEC", "PBS_AUTH_METHOD", "PATH", "HOME"]
)
def test_variables_that_locate_the_server_are_inherited(name: str) -> None:
    assert not _is_unset(name)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("4711.node01\n", "4711.node01"),
        ("4711\n", "4711"),
        ("0.node01\n", "0.node01"),
        ("4711[].pbs.example.org\n", "4711[].pbs.example.org"),
        ("*** Welcome 12345! ***\n\n  4711.node01  \nbye\n", "4711.node01"),
        ("4711.node01\n4711.node01\n", "4711.node01"),
    ],
)
def test_the_id_in_the_output_is_found(output: str, expected: str) -> None:
    assert PBS.parse_submit(command_result(output)) == expected


@pytest.mark.parametrize("output", ["", "\n", "ok\n", "job 4711\n", "4711.a 4712.a\n", "4711.a\n4712.a\n"])
def test_no_id_is_guessed(output: str) -> None:
    with pytest.raises(ValueError, match="in the answer"):
        PBS.parse_submit(command_result(output))


@given(st.text(max_size=40).filter(lambda text: not any(c.isdecimal() for c in text)))
def test_a_banner_without_digits_hides_no_id(banner: str) -> None:
    assert PBS.parse_submit(command_result(f"{banner}\n4711.node01\n{banner}")) == "4711.node01"


@pytest.mark.parametrize(
    ("returncode", "stderr", "kind"),
    [
        (162, "Connection refused\nqsub: cannot connect to server x (errno=15010)\n", FailureKind.TRANSIENT),
        (160, "Unknown Host.\nqsub: cannot connect to server x (errno=15008)\n", FailureKind.PERMANENT),
        (
            255,
            "pbs_iff: all reserved ports in use\nqsub: cannot connect to server x (errno=15007)\n",
            FailureKind.TRANSIENT,
        ),
        (38, "qsub: would exceed queue generic's per-user limit\n", FailureKind.TRANSIENT),
        (206, "qsub: Maximum number of jobs already in queue\n", FailureKind.TRANSIENT),
        (212, "qsub: Request not allowed: Server shutting down\n", FailureKind.TRANSIENT),
        (32, "qsub: your project has no hours left\n", FailureKind.INVALID_JOB),
        (32, "", FailureKind.AMBIGUOUS),
        (159, "qsub: Unauthorized Request \n", FailureKind.INVALID_JOB),
        (175, "qsub: Bad UID for job execution\n", FailureKind.PERMANENT),
        (175, "qsub: submit error (Bad UID for job execution MSG=root)\n", FailureKind.PERMANENT),
        (170, "qsub: Unknown queue\n", FailureKind.INVALID_JOB),
        (143, "qsub: Batch protocol error\n", FailureKind.AMBIGUOUS),
        (1, "qsub: End of File\n", FailureKind.AMBIGUOUS),
        (127, "sh: 1: qsub: not found\n", FailureKind.PERMANENT),
        (255, "ssh: connect to host login port 22: Connection refused\n", FailureKind.AMBIGUOUS),
        (1, "", FailureKind.AMBIGUOUS),
        (-9, "", FailureKind.AMBIGUOUS),
    ],
)
def test_failures_are_classified(returncode: int, stderr: str, kind: FailureKind) -> None:
    assert PBS.classify_failure(command_result(stderr=stderr, returncode=returncode)).kind is kind


@given(st.text(alphabet="abcdefgh xyz:/().\n", max_size=60), st.integers(1, 254).filter(lambda n: n != 32))
def test_an_unknown_message_is_ambiguous(stderr: str, returncode: int) -> None:
    assert (
        PBS.classify_failure(command_result(stderr=stderr, returncode=returncode)).kind
        is FailureKind.AMBIGUOUS
    )


@pytest.mark.parametrize(
    "stderr", ['qsub: invalid option argument "-f"\n', "qsub: error: commlib error: got select error\n"]
)
def test_the_qsub_of_grid_engine_is_named(stderr: str) -> None:
    failure = PBS.classify_failure(command_result(stderr=stderr, returncode=1))

    assert failure.message.endswith("; this qsub is that of Grid Engine, whose executor is gridengine")


def test_the_message_is_that_of_qsub() -> None:
    assert (
        PBS.classify_failure(command_result(stderr="qsub: Unknown queue\n", returncode=170)).message
        == "qsub: Unknown queue"
    )


def test_the_commands() -> None:
    assert PBS.cancel(["7.node01", "8.node01"]).argv == ("qdel", "7.node01", "8.node01")
    assert PBS.hold(["7"]).argv == ("qhold", "7")
    assert PBS.release(["7"]).argv == ("qrls", "7")


def test_only_the_job_of_another_user_was_not_cancelled() -> None:
    (mixture,) = [step for step in recordings("qdel") if "mixture" in step.note]

    assert PBS.parse_cancel(mixture.result, list(mixture.argv[1:])) == {"161.node01": "Unauthorized Request"}


def test_a_queried_id_is_matched_in_every_spelling() -> None:
    stderr = "qdel: Unauthorized Request  161.node01\nqdel: Job has finished 162.node01\n"

    assert PBS.parse_hold(
        command_result(stderr=stderr, returncode=159), ["161", "162.node01.example.org", "163"]
    ) == {
        "161": "Unauthorized Request",
        "162.node01.example.org": "Job has finished",
    }


def test_a_job_on_a_node_that_is_down_cannot_be_cancelled() -> None:
    lost = command_result(stderr="qdel: Server could not connect to MOM 1497.node01\n", returncode=222)

    assert PBS.parse_cancel(lost, ["1497.node01"]) == {"1497.node01": "Server could not connect to MOM"}


def test_a_request_that_reached_no_daemon_failed_for_every_job() -> None:
    lost = command_result(stderr="Connection refused\nCouldn't connect to cluster: node01\n", returncode=162)

    assert set(PBS.parse_cancel(lost, ["7", "8"])) == {"7", "8"}
    assert set(PBS.parse_cancel(CommandResult(returncode=0, timed_out=True), ["7"])) == {"7"}


@pytest.mark.parametrize("lost", ["cannot connect to server a (errno=15010)", "End of File"])
def test_a_message_about_no_job_may_mean_that_no_job_was_changed(lost: str) -> None:
    result = command_result(stderr=f"qdel: Job has finished 7.a\nqdel: {lost}\n", returncode=15)

    assert set(PBS.parse_cancel(result, ["7", "8"])) == {"8"}
    assert set(PBS.parse_hold(result, ["7", "8"])) == {"7", "8"}


def test_torque_does_not_name_the_job_that_it_could_not_hold() -> None:
    assert TORQUE.parse_hold(command_result(returncode=153), ["7", "8"]).keys() == {"7", "8"}
