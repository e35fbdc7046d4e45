"""The toy backend, as an author of a backend would test theirs: with strings."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from jpsi import JobAttributes, JobSpec, JobState, Reason, ResourceSpecV1
from jpsi.plugin import BatchConfig, CommandResult, FailureKind, Site, SubmitContext, SubmitException
from jpsi_testing import toy, toy_fake
from jpsi_testing.fake import FakeScheduler, Invocation, answer

SITE = Site(config=BatchConfig())
CONTEXT = SubmitContext(site=SITE, job_id="1", tag="jpsi-1-1")


def test_a_script_has_the_resources_of_the_spec() -> None:
    spec = JobSpec(
        "/bin/true",
        name="a name",
        attributes=JobAttributes(
            duration=timedelta(seconds=1.5), queue_name="debug", project_name="chemistry"
        ),
        resources=ResourceSpecV1(process_count=3),
    )

    assert [it.text for it in toy.render_script(spec, CONTEXT).directives] == [
        "#TOY tag=jpsi-1-1",
        "#TOY name='a name'",
        "#TOY queue=debug",
        "#TOY project=chemistry",
        "#TOY seconds=2",
        "#TOY slots=3",
    ]


@pytest.mark.clause("attributes-duration")
@pytest.mark.parametrize(("duration", "directives"), [(None, ["#TOY seconds=600"]), (timedelta(0), [])])
def test_no_duration_is_the_default_and_zero_is_none(
    duration: timedelta | None, directives: list[str]
) -> None:
    spec = JobSpec("/bin/true", attributes=JobAttributes(duration=duration))

    assert [it.text for it in toy.render_script(spec, CONTEXT).directives][1:] == directives


def test_several_nodes_are_refused() -> None:
    spec = JobSpec("/bin/true", resources=ResourceSpecV1(node_count=2))

    assert toy.check_spec(spec) == ["a toy has one node"]
    assert toy.check_spec(JobSpec("/bin/true")) == []


def test_the_native_id_is_found_among_chatter() -> None:
    assert toy.parse_submit(CommandResult(returncode=0, stdout="Hello 7!\naccepted as job 12\n\n")) == "12"
    with pytest.raises(ValueError, match="printed no job id"):
        toy.parse_submit(CommandResult(returncode=0, stdout="accepted as job 1\naccepted as job 2\n"))


def _listed(*rows: str) -> CommandResult:
    """Return the output of tstat for these rows."""
    lines = ["ID STATE CODE RESTARTS SUBMITTED TAG", *rows, f"{len(rows)} lines", ""]
    return CommandResult(returncode=0, stdout="\n".join(lines))


def test_rows_are_read_between_the_first_line_and_the_last() -> None:
    result = _listed("7 DONE 3 1 0 jpsi-x-1", "8 STRANGE - 0 0 ")
    result = attrs.evolve(result, stdout=f"Welcome 12 DONE!\n{result.stdout}")

    observed = toy.parse_status(result)

    assert (observed["7"].state, observed["7"].exit_code, observed["7"].restarts) == (
        JobState.COMPLETED,
        3,
        1,
    )
    assert (observed["8"].state, observed["8"].native_state) == (None, "STRANGE")
    assert toy.parse_find(result, ["jpsi-x-1", "jpsi-y-1"]) == {"jpsi-x-1": "7"}
    assert (observed["7"].tag, observed["8"].tag) == ("jpsi-x-1", "")
    assert toy.parse_finished(_listed("7 TIMEUP 143 0 0 "))["7"].reason is Reason.TIMEOUT


@pytest.mark.parametrize("result", [CommandResult(returncode=3), CommandResult(returncode=0, timed_out=True)])
def test_incomplete_output_is_an_error(result: CommandResult) -> None:
    with pytest.raises(SubmitException):
        toy.parse_status(result)


@pytest.mark.parametrize(
    ("code", "kind"), [(2, FailureKind.INVALID_JOB), (3, FailureKind.TRANSIENT), (1, None)]
)
def test_failures_are_classified(code: int, kind: FailureKind | None) -> None:
    failure = toy.classify_failure(CommandResult(returncode=code, stderr="why\n"))

    assert (failure and failure.kind) is kind


@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ("color=red", "unknown option color"),
        ("queue=night", "no queue 'night'"),
        (f"name={'x' * 201}", "too long"),
    ],
)
def test_the_fake_refuses_unknown_options(fake_scheduler: FakeScheduler, directive: str, why: str) -> None:
    call = Invocation(argv=["tsubmit"], stdin=f"#!/bin/sh\n#TOY {directive}\n")

    result = answer(fake_scheduler, toy_fake, call)

    assert result.returncode == 2
    assert why in result.stderr
    assert fake_scheduler.jobs == []


@pytest.mark.parametrize(("command", "word"), [("thold", "HELD"), ("tdel", "DELETED")])
def test_the_fake_reports_outcomes(fake_scheduler: FakeScheduler, command: str, word: str) -> None:
    fake_scheduler.slots = 0
    for argv, stdin in ((["tsubmit"], "#TOY tag=t"), ([command, "1", "9"], "")):
        assert answer(fake_scheduler, toy_fake, Invocation(argv=argv, stdin=stdin)).returncode == 0

    listed = answer(fake_scheduler, toy_fake, Invocation(argv=["tstat", "--all"])).stdout

    assert listed.splitlines()[1].split()[:2] == ["1", word]
