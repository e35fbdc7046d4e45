"""Submission of several jobs by `flux bulksubmit`, and the jobs that the printed ids belong to."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import attrs
import pytest

from flux_support import CONTEXT, listed, recordings
from jpsi.plugin import (
    NOT_OFFERED,
    Command,
    CommandResult,
    FailureKind,
    JobAttributes,
    JobSpec,
    NotOffered,
    ResourceSpecV1,
    ShellLine,
)
from jpsi_flux import fake, hooks
from jpsi_testing import command_result
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeState, Invocation, answer, on_path

CONTEXTS = [attrs.evolve(CONTEXT, tag=f"jpsi-{name}-1") for name in "abc"]


def command(spec: JobSpec) -> Command | NotOffered:
    scripts = [
        attrs.evolve(
            hooks.render_script(spec, context), run=ShellLine(f"{{ test -s {context.tag}; }}; exit 7")
        )
        for context in CONTEXTS
    ]
    return hooks.submit_several(scripts, spec, CONTEXTS)


def words(spec: JobSpec) -> Sequence[str]:
    found = command(spec)
    assert isinstance(found, Command)
    return found.argv


def test_differences_between_jobs_are_inputs() -> None:
    spec = JobSpec("/bin/true", name="a {b}", attributes=JobAttributes(queue_name="debug"))

    found = words(spec)

    start = found.index("--job-name={0}")
    assert list(found[start:]) == [
        "--job-name={0}",
        *("--cwd=/", "--output=/dev/null", "--queue=debug", "--time-limit=600s", "--ntasks=1"),
        *("--input=/dev/null", "/bin/sh", "-c", "{1}"),
        *(":::", "a {b} jpsi-a-1", "a {b} jpsi-b-1", "a {b} jpsi-c-1"),
        *(":::+", *(f"{{ test -s jpsi-{name}-1; }}; exit 7" for name in "abc")),
    ]


@pytest.mark.parametrize(
    "spec",
    [
        JobSpec("/bin/true", resources=ResourceSpecV1(process_count=2)),
        JobSpec("/bin/true", launcher="flux"),
        JobSpec("/bin/true", attributes=JobAttributes(queue_name="{0}")),
        JobSpec("/bin/true", name=":::"),
    ],
    ids=["two processes", "an instance of its own", "braces", "what begins inputs"],
)
def test_jobs_that_bulksubmit_cannot_express_are_submitted_one_by_one(spec: JobSpec) -> None:
    assert command(spec) is NOT_OFFERED


def test_ids_are_matched_to_jobs_by_name() -> None:
    """Flux prints ids in the order in which it validated the jobs."""
    names = {7290690207744: "jpsi-b-1", 7290690207745: "jpsi-a-1", 7290690207746: "another"}
    jobs = [json.loads(listed(id=number, name=name).stdout) for number, name in names.items()]
    result = command_result(f"ƒ4JWpL1vw\nƒ4JWpL1vx\n{json.dumps({'jobs': jobs})}\n")

    assert hooks.parse_submit_several(result, CONTEXTS) == {
        "jpsi-a-1": "7290690207745",
        "jpsi-b-1": "7290690207744",
    }


def test_recorded_ids_are_matched_by_their_recorded_names() -> None:
    submitted, listing = recordings("bulk-names")[:2]
    contexts = [attrs.evolve(CONTEXT, tag=f"jpsi-n{number:03}-1") for number in range(100)]
    printed = [hooks.canonical_id(line) for line in submitted.result.stdout.split()]

    found = hooks.parse_submit_several(
        command_result(submitted.result.stdout + listing.result.stdout), contexts
    )

    assert list(found) != [context.tag for context in contexts]
    assert found.keys() == {context.tag for context in contexts}
    assert sorted(found.values()) == sorted(printed)
    in_order = [found[context.tag] for context in contexts]
    assert sum(first != other for first, other in zip(printed, in_order, strict=True)) == 69


def test_recorded_refusals_are_understood() -> None:
    queue, braces, option = recordings("bulk-names")[2:]

    assert [hooks.classify_failure(it.result).kind for it in (queue, option)] == [FailureKind.INVALID_JOB] * 2
    assert "Replacement key" in braces.result.stderr


@pytest.mark.parametrize(
    ("stdout", "stderr", "kind"),
    [
        ("", "[Errno 22] 'x' is not a valid queue\n" * 3, FailureKind.INVALID_JOB),
        ("ƒ4JWpL1vw\n", "[Errno 22] 'x' is not a valid queue\n" * 2, FailureKind.AMBIGUOUS),
        ("ƒ4JWpL1vw\n", "Unable to connect to Flux: broker socket was not found\n", FailureKind.AMBIGUOUS),
    ],
    ids=["all", "some", "ids without names"],
)
def test_after_a_partial_failure_submitted_jobs_are_found(
    stdout: str, stderr: str, kind: FailureKind
) -> None:
    failure = hooks.classify_failure(command_result(stdout, stderr, 1))

    assert failure.kind is kind
    assert failure.message.count("valid queue") <= 1


def bulksubmit(scheduler: FakeScheduler, *argv: str) -> CommandResult:
    return answer(scheduler, fake, Invocation(argv=["flux", "bulksubmit", *argv]))


def test_the_fake_replaces_inputs_as_flux_does() -> None:
    """As recorded: `--output={0}.{1} echo {0} {1} ::: a b :::+ 1 2` is `a.1 echo a 1` and `b.2 echo b 2`."""
    with FakeScheduler(FakeClock(), slots=0) as scheduler:
        inputs = (":::", "a", "b{x}", ":::+", "1", "2")
        result = bulksubmit(scheduler, "--job-name={0}.{1}", "echo", "{1}", *inputs)
        names = {job.name: job.script.splitlines()[-1].split()[1:3] for job in scheduler.jobs}

    assert (result.returncode, result.stdout.count("\n")) == (0, 2)
    assert names == {"a.1": ["echo", "1"], "b{x}.2": ["echo", "2"]}


def test_the_fake_refuses_what_flux_refuses() -> None:
    with FakeScheduler(FakeClock(), slots=0) as scheduler:
        refused = bulksubmit(scheduler, "--queue=nosuch", "--job-name={0}", "true", ":::", "a", "b")
        unknown = bulksubmit(scheduler, "--bogus", "true", ":::", "a", "b")
        braces = bulksubmit(scheduler, "--setattr=a={x}", "true", ":::", "a")

    assert (refused.returncode, refused.stderr.count("[Errno ")) == (1, 2)
    assert (unknown.returncode, unknown.stderr.count("flux bulksubmit: error: unrecognized")) == (2, 1)
    assert (braces.returncode, "Replacement key" in braces.stderr) == (1, True)
    assert scheduler.jobs == []


def test_the_command_prints_ids_and_names_of_ended_jobs() -> None:
    found = command(JobSpec("/bin/true"))
    assert isinstance(found, Command)
    with FakeScheduler(slots=8) as scheduler, on_path("flux", scheduler):
        output = subprocess.run(
            found.argv, capture_output=True, text=True, check=True, encoding="utf-8"
        ).stdout
        scheduler.wait_for(lambda: all(job.state.final for job in scheduler.jobs), 30)
        codes = {job.tag: job.exit_code for job in scheduler.jobs if job.state is FakeState.FAILED}
        ids = hooks.parse_submit_several(command_result(output), CONTEXTS)

    assert ids == {job.tag: job.native_id for job in scheduler.jobs}
    assert codes == {context.tag: 7 for context in CONTEXTS}
