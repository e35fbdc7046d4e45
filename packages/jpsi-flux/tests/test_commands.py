"""The commands that submit, hold, release and cancel jobs."""

from __future__ import annotations

import shlex

import attrs
import pytest

from flux_support import CONTEXT, HOOKED, SITE
from jpsi.plugin import (
    CommandResult,
    Directive,
    FailureKind,
    JobSpec,
    ResourceSpecV1,
    Script,
    ShellLine,
    Site,
)
from jpsi_flux import hooks
from jpsi_flux.config import FluxConfig
from jpsi_testing import command_result

RUN = ShellLine("exec /bin/sh /spool/run.1")
ONE = JobSpec("/bin/true", name="a&b;c (d)")
MANY = JobSpec("/bin/true", name="a&b;c (d)", resources=ResourceSpecV1(node_count=2, processes_per_node=2))
IDS = ["7290690207744", "1234"]


def script(spec: JobSpec) -> Script:
    return attrs.evolve(hooks.render_script(spec, CONTEXT), run=RUN)


def test_one_process_is_a_plain_job() -> None:
    command = hooks.submit(script(ONE), ONE, CONTEXT)

    assert command.argv == (
        "flux",
        "submit",
        "--job-name=a&b;c (d) jpsi-abc-1",
        "--cwd=/",
        "--output=/dev/null",
        "--time-limit=600s",
        "--ntasks=1",
        "--input=/dev/null",
        "/bin/sh",
        "-c",
        RUN,
    )
    assert command.stdin is None


def test_several_processes_are_an_instance_that_reads_no_directives() -> None:
    """Flux splits directives at unquoted characters such as &, but no arguments."""
    command = hooks.submit(script(MANY), MANY, CONTEXT)

    assert command.argv == (
        "flux",
        "batch",
        "--job-name=a&b;c (d) jpsi-abc-1",
        "--cwd=/",
        "--output=/dev/null",
        "--time-limit=600s",
        "--nodes=2",
        "--nslots=4",
    )
    assert command.stdin == f"#!/bin/sh\n{RUN}\n"


@pytest.mark.parametrize("spec", [ONE, MANY], ids=["submit", "batch"])
def test_directives_that_an_override_adds_count(spec: JobSpec) -> None:
    """In any spelling that Flux reads as a directive; other lines are comments."""
    added = [Directive("# flux: --bank='b 1' # why"), Directive("#FLUX: no"), Directive("# see flux: -x")]

    argv = hooks.submit(Script([*script(spec).directives, *added], RUN), spec, CONTEXT).argv

    assert "--bank=b 1" in argv
    assert not {"why", "-x", "no"} & set(argv)


def test_the_instance_can_be_configured() -> None:
    site = Site(config=FluxConfig(uri="ssh://login1/run/flux/local"))
    environment = {"FLUX_URI": "ssh://login1/run/flux/local"}

    assert hooks.submit(script(ONE), ONE, attrs.evolve(CONTEXT, site=site)).environment == environment
    for command in (
        hooks.query(IDS, site),
        hooks.find(site),
        hooks.hold(IDS, site),
        hooks.cancel(IDS, site),
    ):
        assert command.environment == environment
    assert hooks.find(SITE).environment == {}


@pytest.mark.parametrize(
    "printed",
    [
        "f4JWpL1vw\n",
        f"{HOOKED}4JWpL1vw\n",
        f"Welcome 12345!\nfriday\n  {HOOKED}4JWpL1vw\n",
        "f4JWpL1vw\nf4JWpL1vw\n",
    ],
)
def test_the_id_is_a_number_whatever_the_locale(printed: str) -> None:
    assert hooks.parse_submit(command_result(printed)) == "7290690207744"


@pytest.mark.parametrize("printed", ["", "f\n", "fO0IlO0\n", "7290690207744\n", "f4JWpL1vw\nf5QL9JyV1\n"])
def test_output_without_exactly_one_id_is_an_error(printed: str) -> None:
    with pytest.raises(ValueError, match="job id"):
        hooks.parse_submit(command_result(printed))


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (
            command_result(stderr="flux-submit: ERROR: [Errno 104] Connection reset by peer\n", returncode=1),
            "ambiguous",
        ),
        (command_result(stderr="[Errno 113] No route to host\n", returncode=1), "ambiguous"),
        (command_result(returncode=1), "ambiguous"),
        (command_result(stderr="[Errno 38] Function not implemented\n", returncode=1), "transient"),
        (command_result(stderr="sh: flux: not found\n", returncode=127), "permanent"),
        (
            command_result(stderr="[Errno 22] Invalid queue: 'x' is disabled here\n", returncode=1),
            "invalid_job",
        ),
        (command_result(stderr="[Errno 22] job submission is disabled: closed\n", returncode=1), "transient"),
    ],
    ids=str,
)
def test_failures_that_were_not_recorded(result: CommandResult, kind: str) -> None:
    assert hooks.classify_failure(result).kind is FailureKind(kind)


def test_jobs_are_queried_by_id_or_all_together() -> None:
    assert hooks.query(["17"], SITE).argv == ("flux", "jobs", "--json", "17")
    assert hooks.cancel(["17"], SITE).argv == ("flux", "cancel", "17")
    assert hooks.query(None, SITE).argv == ("flux", "jobs", "--json", "-a", "-c0")


def test_find_searches_unfinished_and_recent_jobs() -> None:
    """A user may have hundreds of thousands of other jobs."""
    assert hooks.find(SITE).argv == ("flux", "jobs", "--json", "--since=-1d", "-c0")


def test_refusals_name_their_jobs_in_any_spelling() -> None:
    refusal = f"flux-cancel: ERROR: {HOOKED}4JWpL1vw: guests can only raise exceptions on their own jobs\n"
    result = command_result(
        stderr=refusal + f"flux-cancel: ERROR: {HOOKED}4JJKN58K: job is inactive\n", returncode=1
    )

    assert hooks.parse_cancel(result, ["7290690207744", "7282486149120", "17"]) == {
        "7290690207744": "guests can only raise exceptions on their own jobs"
    }


def test_a_request_that_failed_as_a_whole_failed_for_each() -> None:
    down = command_result(
        stderr="flux-cancel: ERROR: Unable to connect to Flux: Connection refused\n", returncode=1
    )

    assert hooks.parse_cancel(down, IDS).keys() == {*IDS}


def test_each_job_is_held_by_a_command_of_its_own() -> None:
    command = hooks.hold(IDS, SITE)

    assert command.argv[:2] == ("/bin/sh", "-c")
    assert command.argv[3:] == ("hold", *IDS)
    assert 'flux job urgency "$id" "$0"' in command.argv[2]


def test_flux_prints_the_nodes_of_the_processes() -> None:
    assert hooks.nodes(ONE) == ["hostname"]
    (line,) = hooks.nodes(MANY)
    assert shlex.split(line)[:6] == [
        "flux",
        "run",
        "--ntasks=4",
        "--label-io",
        "--input=/dev/null",
        "--nodes=2",
    ]


def test_processes_are_placed_with_the_cores_and_gpus_of_the_launcher() -> None:
    """Otherwise jpsi would expect processes on the wrong nodes."""
    resources = ResourceSpecV1(process_count=4, cpu_cores_per_process=3, gpu_cores_per_process=1)

    (line,) = hooks.nodes(JobSpec("/bin/true", resources=resources))

    assert {"--cores-per-task=3", "--gpus-per-task=1"} < set(shlex.split(line))
