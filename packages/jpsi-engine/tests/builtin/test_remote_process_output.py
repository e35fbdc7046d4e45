"""The parsers of `local` for the output of its programs on remote hosts."""

from __future__ import annotations

import pytest

from jpsi.plugin import CommandResult, FailureKind, JobState, Reason, SubmitException
from jpsi_engine.builtin import remote_process_output as output

TAG = "jpsi-0b9e6f0e-0000-4000-a000-000000000000-1"
LINUX = "here vm 8d1cf98f\nprocess 28246 S 6050030\nprocess 77 Z 12\nended cancel 5.9.8d1cf98f.vm\nend\n"
# macOS 14, ps(1): a session leader
MAC = f"here mac.local 0\nprocess 501 Ss Nov1-09:00:42-2026 /bin/sh -s {TAG}\nend\n"


def command_result(stdout: str, returncode: int = 0, stderr: str = "") -> CommandResult:
    return CommandResult(returncode=returncode, stdout=stdout, stderr=stderr)


def test_the_native_id_is_on_its_own_line() -> None:
    printed = "Welcome 12345!\nstarted 28246.6050030.8d1cf98f.vm\nstarted to think\n"

    assert output.parse_started(command_result(printed)) == "28246.6050030.8d1cf98f.vm"


@pytest.mark.parametrize(
    "text", ["1", "28246", "28246.6050030", "0.1.0.vm", "-1.1.0.vm", "1.1.0.vm x", "1.1.x.vm", "1.1.0."]
)
def test_text_that_could_select_other_processes_is_no_native_id(text: str) -> None:
    with pytest.raises(ValueError, match="no job id of the executor local"):
        output.IDS.canonical(text)


def test_a_process_with_the_start_of_the_job_is_running() -> None:
    ids = ["28246.6050030.8d1cf98f.vm", "28246.6050031.8d1cf98f.vm", "28246.6050030.00000000.vm"]

    observed = output.parse_observations(command_result(LINUX), ids)

    assert {native_id: it.state for native_id, it in observed.items()} == {ids[0]: JobState.ACTIVE}


def test_a_zombie_is_gone() -> None:
    assert output.parse_observations(command_result(LINUX), ["77.12.8d1cf98f.vm"]) == {}


@pytest.mark.parametrize(
    ("word", "state", "reason"),
    [
        ("cancel", JobState.CANCELED, Reason.CANCELLED),
        ("timeout", JobState.FAILED, Reason.TIMEOUT),
    ],
)
def test_the_reason_of_an_end_is_reported_once_the_job_is_gone(
    word: str, state: JobState, reason: Reason
) -> None:
    running, ended = "28246.6050030.8d1cf98f.vm", "5.9.8d1cf98f.vm"
    text = LINUX.replace("ended cancel", f"ended {word} {running}\nended {word}")

    observed = output.parse_observations(command_result(text), [running, ended])

    assert observed[running].state is JobState.ACTIVE
    assert (observed[ended].state, observed[ended].reason) == (state, reason)


def test_the_state_of_a_job_on_another_host_is_unknown() -> None:
    native_id = "28246.6050030.8d1cf98f.vm2"

    assert output.parse_observations(command_result(LINUX), [native_id])[native_id].state is None


def test_leaders_are_found_by_their_tags() -> None:
    native_id = "501.Nov1-09:00:42-2026.0.mac.local"

    assert output.parse_found(command_result(MAC), [TAG, "jpsi-none-1"]) == {TAG: native_id}
    assert list(output.parse_observations(command_result(MAC), None)) == [native_id]
    assert output.parse_found(command_result(MAC.replace("sh -s", "vi")), [TAG]) == {}


@pytest.mark.parametrize(
    "answer", [command_result(LINUX.removesuffix("end\n")), command_result("end\n"), command_result(LINUX, 1)]
)
def test_incomplete_output_is_an_error(answer: CommandResult) -> None:
    with pytest.raises(SubmitException):
        output.parse_observations(answer, ["28246.6050030.8d1cf98f.vm"])


def test_a_failed_cancellation_is_reported_with_its_reason() -> None:
    why = "it runs on vm2, and what was reached is vm"
    text = f"refused 1.1.0.vm2 {why}\nend\n"

    assert output.parse_refused(command_result(text), ["1.1.0.vm2", "1.1.0.vm"]) == {"1.1.0.vm2": why}
    assert output.parse_refused(command_result("", 2, "cut"), ["1.1.0.vm"]) == {"1.1.0.vm": "cut"}


def test_a_start_may_have_taken_effect_unless_its_output_excludes_it() -> None:
    assert output.parse_failure(command_result("", 1)) is None
    failure = output.parse_failure(command_result("", 3, "there is neither"))
    assert failure is not None
    assert (failure.kind, failure.message) == (FailureKind.PERMANENT, "there is neither")
