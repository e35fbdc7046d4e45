"""The directives of a job, and the arguments that oarsub gets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from jpsi import Dependency, JobAttributes, JobSpec, ResourceSpecV1
from jpsi.plugin import ShellLine
from jpsi_oar import hooks
from oar_support import CONTEXT, site

RUN = 'answer=$("$@"); code=$?; printf "%s\\n" "$answer"; exit "$code"'


def _directives(spec: JobSpec, **config: Any) -> list[str]:
    context = attrs.evolve(CONTEXT, site=site(**config))
    assert hooks.check_spec(spec, context.site) == []
    script = hooks.render_script(spec, context)
    return [it.text.removeprefix("#OAR ") for it in script.directives]


def _problem(spec: JobSpec, **config: Any) -> str:
    (problem,) = hooks.check_spec(spec, site(**config))
    return problem


def _argv(spec: JobSpec, **context: Any) -> tuple[str, ...]:
    script = hooks.render_script(spec, attrs.evolve(CONTEXT, **context))
    return hooks.submit(attrs.evolve(script, run=ShellLine("exec run")), spec).argv


def _custom(**options: object) -> JobSpec:
    return JobSpec(attributes=JobAttributes(custom_attributes={f"oar.{k}": v for k, v in options.items()}))


def test_every_attribute_is_rendered() -> None:
    attributes = JobAttributes(
        duration=timedelta(seconds=3661), queue_name="long", project_name="my project", reservation_id="17"
    )

    assert _directives(JobSpec(name="heat flow", attributes=attributes)) == [
        "--name 'heat flow jpsi-abc-1'",
        "--directory /",
        "--stdout /dev/null",
        "--stderr /dev/null",
        "--resource walltime=1:1:1",
        "--queue long",
        "--project 'my project'",
        "--type inner=17",
    ]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (ResourceSpecV1(), "/core=1"),
        (ResourceSpecV1(process_count=8), "/core=8"),
        (ResourceSpecV1(cpu_cores_per_process=4), "/nodes=1/core=4"),
        (ResourceSpecV1(process_count=2, cpu_cores_per_process=4), "/nodes=1/core=4+/nodes=1/core=4"),
        (ResourceSpecV1(node_count=2), "/nodes=2/core=1"),
        (ResourceSpecV1(node_count=2, processes_per_node=4), "/nodes=2/core=4"),
        (ResourceSpecV1(node_count=2, processes_per_node=4, cpu_cores_per_process=2), "/nodes=2/core=8"),
        (ResourceSpecV1.uneven(process_count=7, processes_per_node=4), "/nodes=2/core=4"),
        (ResourceSpecV1(exclusive_node_use=True), "/nodes=1"),
        (ResourceSpecV1(node_count=2, exclusive_node_use=True, memory=1 << 40), "/nodes=2"),
    ],
    ids=str,
)
def test_resources(resources: ResourceSpecV1, expected: str) -> None:
    assert f"--resource {expected},walltime=0:10:0" in _directives(JobSpec(resources=resources))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (ResourceSpecV1(gpu_cores_per_process=1), "/gpu=1"),
        (ResourceSpecV1(process_count=4, gpu_cores_per_process=1), "/gpu=4"),
        (ResourceSpecV1(process_count=2, gpu_cores_per_process=2), "/nodes=1/gpu=2+/nodes=1/gpu=2"),
        (ResourceSpecV1(node_count=2, processes_per_node=2, gpu_cores_per_process=1), "/nodes=2/gpu=2"),
        (
            ResourceSpecV1(node_count=2, gpu_cores_per_process=2, cpu_cores_per_process=5),
            "/nodes=2/gpu=2/core=3",
        ),
    ],
    ids=str,
)
def test_gpus_are_a_resource_of_the_site(resources: ResourceSpecV1, expected: str) -> None:
    assert f"--resource {expected},walltime=0:10:0" in _directives(
        JobSpec(resources=resources), gpu_resource="gpu"
    )


def test_a_site_names_its_resources() -> None:
    spec = JobSpec(resources=ResourceSpecV1(node_count=2, processes_per_node=3))

    directives = _directives(spec, node_resource="host", core_resource="thread")

    assert "--resource /host=2/thread=3,walltime=0:10:0" in directives
    with pytest.raises(ValueError, match="core_resource"):
        site(core_resource="core=1,walltime")


def test_without_a_limit_no_walltime_is_requested() -> None:
    spec = JobSpec(attributes=JobAttributes(duration=timedelta(0)))

    assert not any("walltime" in it for it in _directives(spec))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (JobSpec(resources=ResourceSpecV1(memory=1)), "limits no memory"),
        (JobSpec(resources=ResourceSpecV1(process_count=2, exclusive_node_use=True)), "node_count is needed"),
        (JobSpec(resources=ResourceSpecV1(gpu_cores_per_process=1)), "`gpu_resource`"),
        (JobSpec(name="n" * 50), "50 characters, more than the 49"),
        (JobSpec(name="it's"), "no quotes"),
        (JobSpec(attributes=JobAttributes(project_name="p" * 61)), "61 characters, more than the 60"),
        (JobSpec(attributes=JobAttributes(reservation_id="week7")), "the number of a container job"),
        (_custom(array=3), "use submit_many"),
        (_custom(typ="besteffort"), "is ambiguous, the command may read it as type"),
    ],
)
def test_what_oar_cannot_express_is_refused(spec: JobSpec, words: str) -> None:
    assert words in _problem(spec)


def test_a_user_sets_types_and_options() -> None:
    attributes = JobAttributes(
        reservation_id="9",
        custom_attributes={
            "oar.type": "besteffort idempotent deadline=2030-01-01 10:00:00",
            "oar.checkpoint": 60,
            "oar.signal": 10,
            "oar.hold": True,
            "oar.reservation": "2030-01-01 09:00:00",
            "oar.property": "cluster = 'a' AND \"mem\" > 5",
        },
    )

    assert _argv(JobSpec(attributes=attributes))[4:] == (
        "oarsub",
        "--name=jpsi-abc-1",
        "--directory=/",
        "--stdout=/dev/null",
        "--stderr=/dev/null",
        "--resource=walltime=0:10:0",
        "--type=inner=9",
        "--type=besteffort",
        "--type=idempotent",
        "--type=deadline=2030-01-01 10:00:00",
        "--checkpoint=60",
        "--signal=10",
        "--hold",
        "--reservation=2030-01-01 09:00:00",
        "--property=cluster = 'a' AND \"mem\" > 5",
        "exec run",
    )


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("/cluster=1/nodes=2", "/cluster=1/nodes=2 ,walltime=0:10:0"),
        ("/nodes=2,walltime=2", "/nodes=2,walltime=2"),
    ],
)
def test_a_users_own_tree_replaces_that_of_jpsi_and_keeps_its_walltime(own: str, expected: str) -> None:
    spec = _custom(resource=own)
    spec.resources = ResourceSpecV1(node_count=3)

    assert f"--resource={expected}" in _argv(spec)


def test_arrays_and_dependencies() -> None:
    after = (Dependency("17", "any"), Dependency("18", "any"))

    argv = _argv(JobSpec(), elements=4, after=after)

    assert argv[-4:] == ("--anterior=17", "--anterior=18", "--array=4", "exec run")
    with pytest.raises(ValueError, match=r"another number for 34\.2"):
        _argv(JobSpec(), after=(Dependency("34.2", "any"),))


def test_the_environment_of_the_submission_reaches_the_job_through_a_file() -> None:
    script = hooks.render_script(JobSpec(), CONTEXT)
    script = attrs.evolve(script, run=ShellLine("exec /bin/sh '/a b/run'"), file="/a b/run")

    command = hooks.submit(script, JobSpec())

    assert command.argv[:5] == (
        "/bin/sh",
        "-c",
        f'(umask 077 && export -p >"$0") || exit; {RUN}',
        "/a b/run.environment",
        "oarsub",
    )
    assert command.argv[-1].startswith(
        "exec /bin/sh -c 'command . '\\''/a b/run.environment'\\'' || exit 125; "
    )
    assert "OAR_*" in command.unset


def test_the_shell_reads_what_oarsub_prints() -> None:
    """Oarsub deletes the jobs that it has made if its output is a pipe that nobody reads any more."""
    assert _argv(JobSpec())[:4] == ("/bin/sh", "-c", RUN, "sh")


@pytest.mark.parametrize("value", [True, "", " "])
def test_a_type_has_a_name(value: object) -> None:
    """Oarsub would take the next word for it."""
    spec = JobSpec("a", attributes=JobAttributes(custom_attributes={"oar.type": value}))

    assert "oar.type needs a type, such as besteffort" in hooks.check_spec(spec, site())
