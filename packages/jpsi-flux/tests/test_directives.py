"""The directives for a spec, and the specs that are refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from flux_support import CONTEXT, SITE
from jpsi.plugin import (
    Dependency,
    DependencyKind,
    JobAttributes,
    JobSpec,
    ResourceSpecV1,
    ShellLine,
    Site,
)
from jpsi_flux import hooks
from jpsi_flux.config import FluxConfig

ALWAYS = ["--job-name=jpsi-abc-1", "--cwd=/", "--output=/dev/null"]


def job(
    attributes: dict[str, Any] | None = None, resources: dict[str, Any] | None = None, **spec: Any
) -> JobSpec:
    return JobSpec(
        "/bin/true",
        attributes=None if attributes is None else JobAttributes(**attributes),
        resources=None if resources is None else ResourceSpecV1.uneven(**resources),
        **spec,
    )


def options(spec: JobSpec, *, after: tuple[Dependency, ...] = ()) -> list[str]:
    """Return the options in a job's directives, without those that every job has."""
    directives = hooks.render_script(spec, attrs.evolve(CONTEXT, after=after)).directives
    texts = [directive.text for directive in directives]
    assert all(text.startswith("#flux: ") for text in texts)
    return [text.removeprefix("#flux: ") for text in texts]


def added_options(spec: JobSpec) -> list[str]:
    return [it for it in options(spec) if it not in {*ALWAYS, "--time-limit=600s"}]


def problems(spec: JobSpec) -> list[str]:
    return hooks.check_spec(spec, SITE)


def argv(spec: JobSpec) -> tuple[str, ...]:
    script = attrs.evolve(hooks.render_script(spec, CONTEXT), run=ShellLine("exec /bin/sh /x/run.1"))
    return hooks.submit(script, spec, CONTEXT).argv


@pytest.mark.clause("attributes-duration", "attributes-queue", "attributes-project")
def test_options_of_every_job() -> None:
    assert options(JobSpec("/bin/true")) == [*ALWAYS, "--time-limit=600s", "--ntasks=1"]


def test_the_name_comes_before_the_tag() -> None:
    assert options(job(name="my job"))[0] == "--job-name='my job jpsi-abc-1'"


@pytest.mark.clause("attributes-duration-seconds")
@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(seconds=61), ["--time-limit=61s"]),
        (timedelta(milliseconds=1), ["--time-limit=1s"]),
        (timedelta(days=2, microseconds=1), ["--time-limit=172801s"]),
        (timedelta(0), []),
    ],
    ids=str,
)
def test_durations_are_rounded_up_to_seconds(duration: timedelta, expected: list[str]) -> None:
    """A number without a unit would be minutes."""
    assert [it for it in options(job({"duration": duration})) if "time" in it] == expected


def test_the_default_duration_is_the_configured_one() -> None:
    site = Site(config=FluxConfig(default_duration=timedelta(hours=1)))
    context = attrs.evolve(CONTEXT, site=site)

    assert "#flux: --time-limit=3600s" in hooks.render_script(JobSpec("/bin/true"), context).text


@pytest.mark.clause("attributes-queue", "attributes-project")
def test_queue_and_bank() -> None:
    assert added_options(job({"queue_name": "debug", "project_name": "proj 1"})) == [
        "--queue=debug",
        "--setattr='bank=proj 1'",
        "--ntasks=1",
    ]


@pytest.mark.clause(
    "spec-resources",
    "resources-nodes",
    "resources-processes",
    "resources-exclusive-node",
    "resources-cores",
    "resources-gpus",
)
@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, ["--ntasks=1"]),
        ({"cpu_cores_per_process": 4}, ["--ntasks=1", "--cores-per-task=4"]),
        ({"gpu_cores_per_process": 2}, ["--ntasks=1", "--gpus-per-task=2"]),
        ({"gpu_cores_per_process": 0}, ["--ntasks=1"]),
        ({"node_count": 1}, ["--nodes=1", "--ntasks=1"]),
        ({"exclusive_node_use": True}, ["--nodes=1", "--ntasks=1", "--exclusive"]),
        ({"process_count": 4}, ["--nslots=4"]),
        ({"process_count": 4, "cpu_cores_per_process": 2}, ["--nslots=4", "--cores-per-slot=2"]),
        ({"node_count": 2}, ["--nodes=2", "--nslots=2"]),
        ({"node_count": 2, "processes_per_node": 3}, ["--nodes=2", "--nslots=6"]),
        ({"process_count": 10, "processes_per_node": 4}, ["--nodes=3", "--nslots=12"]),
        ({"node_count": 3, "process_count": 7}, ["--nodes=3", "--nslots=9"]),
        (
            {
                "node_count": 2,
                "processes_per_node": 4,
                "gpu_cores_per_process": 1,
                "exclusive_node_use": True,
            },
            ["--nodes=2", "--nslots=8", "--gpus-per-slot=1", "--exclusive"],
        ),
        (
            {"node_count": 2, "memory": 1 << 40, "exclusive_node_use": True},
            ["--nodes=2", "--nslots=2", "--exclusive"],
        ),
    ],
    ids=str,
)
def test_resources(resources: dict[str, Any], expected: list[str]) -> None:
    """Flux gives every node the same number of slots, so the last node may have one too many."""
    spec = job(resources=resources)

    assert added_options(spec) == expected
    assert problems(spec) == []


@pytest.mark.parametrize(
    ("spec", "command"),
    [
        (JobSpec("/bin/true"), "submit"),
        (job(launcher="single"), "submit"),
        (job(launcher="multiple"), "submit"),
        (job(launcher="flux"), "batch"),
        (job(launcher="mpirun"), "batch"),
        (job(resources={"node_count": 1, "cpu_cores_per_process": 64}), "submit"),
        (job(resources={"process_count": 2}), "batch"),
        (job(launcher="multiple", resources={"process_count": 2}), "batch"),
        (job(resources={"node_count": 2}), "batch"),
    ],
    ids=str,
)
def test_jobs_that_need_an_instance_get_one(spec: JobSpec, command: str) -> None:
    """An instance takes more than a second to start, and `flux run` needs one; one process does not."""
    assert argv(spec)[:2] == ("flux", command)
    assert any(it.startswith("--nslots" if command == "batch" else "--ntasks") for it in argv(spec))


def test_dependencies() -> None:
    after = tuple(Dependency(str(number), kind) for number, kind in enumerate(DependencyKind, start=1))

    assert [it for it in options(JobSpec("/bin/true"), after=after) if "dependency" in it] == [
        "--dependency=afterok:1",
        "--dependency=afterany:2",
        "--dependency=afternotok:3",
    ]


def test_an_invalid_id_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'olga-almond' is not a Flux job id such as .* emoji"):
        hooks.canonical_id("olga-almond")


def test_custom_attributes() -> None:
    custom = {
        "flux.requires": "host:node1",
        "Flux.urgency": 20,
        "flux.unbuffered": True,
        "flux.setopt": None,
        "slurm.qos": "x",
    }

    assert added_options(job({"custom_attributes": custom})) == [
        "--ntasks=1",
        "--requires=host:node1",
        "--urgency=20",
        "--unbuffered",
    ]


@pytest.mark.clause("attributes-reservation")
@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"reservation_id": "r1"}, "Flux has no reservations"),
        ({"queue_name": ""}, "queue_name is empty"),
        ({"project_name": "42"}, "would read '42' as a JSON value"),
        ({"project_name": "true"}, "would read 'true' as a JSON value"),
        ({"project_name": 'a"b'}, "--setattr cannot be"),
        ({"custom_attributes": {"flux.cwd": "/x"}}, "flux.cwd cannot be set: set JobSpec.directory"),
        (
            {"custom_attributes": {"flux.out": "x"}},
            "flux.out cannot be set: the command may read it as output",
        ),
        ({"custom_attributes": {"flux.N": 2}}, "an option's whole name is needed, such as flux.requires"),
        ({"custom_attributes": {"flux.urgency": []}}, "must be text, a number"),
        ({"custom_attributes": {"flux.requires": "a\nb"}}, "--requires cannot be"),
    ],
    ids=str,
)
def test_values_that_flux_cannot_express_are_refused(attributes: dict[str, Any], message: str) -> None:
    found = problems(job(attributes))

    assert [it for it in found if message in it], found


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"memory": 1}, "Flux has no option for memory"),
        ({"process_count": 2, "exclusive_node_use": True}, "node_count is needed"),
    ],
)
def test_resources_that_flux_does_not_have(resources: dict[str, Any], message: str) -> None:
    (problem,) = problems(job(resources=resources))

    assert message in problem


def test_a_name_that_is_no_line_is_refused() -> None:
    (problem,) = problems(job(name="a\nb"))

    assert "--job-name cannot be" in problem


@pytest.mark.parametrize("uri", ["", "/run/flux/local", "nosuch://x", "local:// x"])
def test_a_uri_is_one(uri: str) -> None:
    with pytest.raises(ValueError, match="uri must be like"):
        FluxConfig(uri=uri)
