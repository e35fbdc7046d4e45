"""The directives for a spec, and the specs that are refused."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import attrs
import pytest
from hypothesis import given

from jpsi.plugin import HeterogeneousResources, JobAttributes, JobSpec, ResourceSpecV1, SubmitContext
from jpsi_lsf import hooks
from jpsi_lsf.config import LsfConfig
from jpsi_testing import heterogeneous_resources
from lsf_support import CONTEXT, directives, problems, site

GIB = 1 << 30


def _custom(**options: Any) -> JobSpec:
    named = {f"lsf.{name}": value for name, value in options.items()}
    return JobSpec("/bin/true", attributes=JobAttributes(custom_attributes=named))


def _requesting(**resources: Any) -> JobSpec:
    return JobSpec("/bin/true", resources=ResourceSpecV1.uneven(**resources))


@pytest.mark.clause("attributes-duration", "attributes-queue", "attributes-project")
def test_options_of_each_job() -> None:
    assert hooks.render_script(JobSpec("/bin/true"), CONTEXT).text.splitlines() == [
        "#!/bin/sh",
        "#BSUB -J jpsi",
        "#BSUB -Jd jpsi-abc-1",
        "#BSUB -o /dev/null",
        "#BSUB -e /dev/null",
        "#BSUB -W 10",
        "#BSUB -n 1",
        "",
    ]


@pytest.mark.clause("attributes-queue", "attributes-project", "attributes-reservation")
def test_names_queues_projects_and_reservations() -> None:
    attributes = JobAttributes(queue_name="short", project_name="p 1", reservation_id="user1#0")
    spec = JobSpec("/bin/true", name="my job", attributes=attributes)

    assert directives(spec) == ["-q short", "-P 'p 1'", "-U 'user1#0'", "-n 1"]
    assert "#BSUB -J 'my job'" in hooks.render_script(spec, CONTEXT).text


@pytest.mark.parametrize(
    ("licenses", "expected"),
    [
        ("matlab:2,abaqus", ["-n 1", "-R rusage[matlab=2,abaqus=1]"]),
        ("mem:2", ["attributes.licenses: mem is a load index of LSF, and no license"]),
        ("a@b", ["attributes.licenses: 'a@b' is no resource of LSF: letters, digits and _ alone"]),
        ("a|b", ["attributes.licenses must be names with counts, such as matlab:2,abaqus, not 'a|b'"]),
    ],
)
def test_licenses_are_resources_that_the_job_uses(licenses: str, expected: list[str]) -> None:
    spec = JobSpec("/bin/true", attributes=JobAttributes(licenses=licenses))

    assert (problems(spec) or directives(spec)) == expected


def test_quality_of_service_mail_and_the_kind_of_gpus() -> None:
    spec = JobSpec(
        "/bin/true",
        resources=ResourceSpecV1(gpu_cores_per_process=2),
        attributes=JobAttributes(qos="gold", gpu_type="a100", mail="end,begin:ann@example.org"),
    )
    lines = directives(spec)

    assert {"-sla gold", "-u ann@example.org", "-B", "-N", "-gpu num=2/task:gmodel=a100"} <= set(lines)
    spec.resources = HeterogeneousResources([ResourceSpecV1(), ResourceSpecV1(gpu_cores_per_process=2)])
    assert problems(spec) == ["attributes.gpu_type: LSF has it for slots of one kind alone"]


@pytest.mark.clause("attributes-duration-seconds")
@pytest.mark.parametrize(
    ("limit", "expected"),
    [(timedelta(seconds=61), ["-W 2"]), (timedelta(hours=25), ["-W 1500"]), (timedelta(0), [])],
    ids=str,
)
def test_time_limits_are_whole_minutes(limit: timedelta, expected: list[str]) -> None:
    lines = hooks.render_script(JobSpec("/bin/true", attributes=JobAttributes(duration=limit)), CONTEXT).text

    assert [line.removeprefix("#BSUB ") for line in lines.splitlines() if "-W" in line] == expected


@pytest.mark.clause(
    "spec-resources",
    "resources-nodes",
    "resources-processes",
    "resources-exclusive-node",
    "resources-cores",
    "resources-gpus",
)
@pytest.mark.parametrize(
    ("resources", "config", "expected"),
    [
        ({"process_count": 4}, {}, ["-n 4"]),
        ({"process_count": 4, "processes_per_node": 2}, {}, ["-n 4", "-R span[ptile=2]"]),
        ({"node_count": 2}, {}, ["-n 2", "-R span[ptile=1]"]),
        ({"process_count": 2, "cpu_cores_per_process": 3}, {}, ["-n 2", "-R affinity[core(3)]"]),
        ({"cpu_cores_per_process": 3}, {"cores_as_slots": True}, ["-n 3", "-R span[hosts=1]"]),
        (
            {"node_count": 2, "processes_per_node": 2, "cpu_cores_per_process": 3},
            {"cores_as_slots": True},
            ["-n 12", "-R span[ptile=6]"],
        ),
        ({"gpu_cores_per_process": 2}, {}, ["-n 1", "-gpu num=2/task"]),
        ({"gpu_cores_per_process": 0}, {}, ["-n 1"]),
        ({"exclusive_node_use": True}, {}, ["-n 1", "-x"]),
        ({"memory": GIB + 1}, {}, ["-n 1", "-R rusage[mem=1025MB/host]", "-M 1025MB"]),
        ({"process_count": 4, "memory": GIB}, {}, ["-n 4", "-R rusage[mem=256MB/task]", "-M 1024MB"]),
        (
            {"node_count": 2, "processes_per_node": 2, "memory": GIB, "cpu_cores_per_process": 1},
            {},
            ["-n 4", "-R 'span[ptile=2] rusage[mem=512MB/host] affinity[core(1)]'", "-M 1024MB"],
        ),
        (
            {"node_count": 2, "processes_per_node": 2, "memory": GIB},
            {"memory_unit": "KB"},
            ["-n 4", "-R 'span[ptile=2] rusage[mem=524288]'", "-M 1048576"],
        ),
        (
            {"process_count": 5, "processes_per_node": 3, "memory": 50 * GIB},
            {},
            ["-n 5", "-R 'span[ptile=3] rusage[mem=30720MB/host]'", "-M 51200MB"],
        ),
        ({"memory": GIB + 1}, {"memory_unit": "GB"}, ["-n 1", "-R rusage[mem=2]", "-M 2"]),
    ],
)
def test_resources(resources: dict[str, Any], config: dict[str, Any], expected: list[str]) -> None:
    spec = _requesting(**resources)

    assert problems(spec, **config) == []
    assert directives(spec, _context(**config)) == expected


def _context(**config: Any) -> SubmitContext:
    return attrs.evolve(CONTEXT, site=site(**config))


@pytest.mark.parametrize(
    ("resources", "config", "words"),
    [
        ({"process_count": 4, "node_count": 3}, {}, "occupy 2 nodes, not 3"),
        ({"process_count": 4, "memory": GIB}, {"memory_unit": "MB"}, "on each node"),
        ({"process_count": 4, "cpu_cores_per_process": 2}, {"cores_as_slots": True}, "several nodes"),
    ],
)
def test_resources_that_no_option_can_express(
    resources: dict[str, Any], config: dict[str, Any], words: str
) -> None:
    (problem,) = problems(_requesting(**resources), **config)

    assert words in problem


def _kinds(*kinds: dict[str, Any], **custom: Any) -> JobSpec:
    spec = _custom(**custom)
    spec.resources = HeterogeneousResources([ResourceSpecV1.uneven(**it) for it in kinds])
    return spec


_READER = {"cpu_cores_per_process": 2, "memory": 4 * GIB}
_READING = "1*{span[ptile=1] rusage[mem=4096MB/host] affinity[core(2)]}"
_SOLVERS = {"node_count": 2, "processes_per_node": 4, "gpu_cores_per_process": 1, "memory": 2 * GIB}


@pytest.mark.parametrize(
    ("kinds", "config", "expected"),
    [
        (
            [_READER, _SOLVERS],
            {},
            [
                "-n 9",
                f"-R '{_READING} + 8*{{span[ptile=4] rusage[mem=1024MB/host,ngpus_physical=1/task]}}'",
                "-M 6144MB",
            ],
        ),
        (
            [_READER, _SOLVERS],
            {"memory_unit": "GB", "cores_as_slots": True},
            [
                "-n 10",
                "-R '2*{span[ptile=2] rusage[mem=4]} + 8*{span[ptile=4] rusage[mem=1,ngpus_physical=4]}'",
                "-M 6",
            ],
        ),
        (
            [{"process_count": 3, "exclusive_node_use": True}, {"gpu_cores_per_process": 2, "memory": 1}],
            {},
            [
                "-n 4",
                "-R '3*{span[ptile=3]} + 1*{span[ptile=1] rusage[mem=1MB/host,ngpus_physical=2/task]}'",
                "-x",
            ],
        ),
    ],
)
def test_slots_of_several_kinds_are_a_compound_requirement(
    kinds: list[dict[str, Any]], config: dict[str, Any], expected: list[str]
) -> None:
    requested = _kinds(*kinds)

    assert problems(requested, **config) == []
    assert directives(requested, _context(**config)) == expected


def test_requirements_of_users_apply_to_every_component() -> None:
    requested = _kinds({}, {"process_count": 2}, R="select[fast]", x=True, Jd="of mine")

    assert problems(requested) == []
    assert directives(requested) == [
        "-n 3",
        "-R '1*{select[fast] span[ptile=1]} + 2*{select[fast] span[ptile=2]}'",
        "-x",
    ]
    assert "#BSUB -Jd 'of mine jpsi-abc-1'\n" in hooks.render_script(requested, CONTEXT).text
    assert directives(_kinds({}, {}, R=None)) == ["-n 2", "-R '1*{span[ptile=1]} + 1*{span[ptile=1]}'"]


@pytest.mark.parametrize(
    ("custom", "words"),
    [
        ({"R": "1*{select[a]} + 1*{select[b]}"}, "its requirements apply to each of these"),
        ({"n": 4}, "custom attribute lsf.n cannot be set: it is for slots of one kind"),
        ({"nnodes": 2}, "custom attribute lsf.nnodes cannot be set: it is for slots of one kind"),
        ({"gpu": "num=1"}, "set gpu_cores_per_process of each"),
        ({"cwd": "/tmp"}, "set JobSpec.directory"),
    ],
    ids=str,
)
def test_options_that_exclude_several_components(custom: dict[str, Any], words: str) -> None:
    (problem,) = problems(_kinds({}, {}, **custom))

    assert words in problem


def test_a_component_that_no_option_can_express_is_named() -> None:
    (problem,) = problems(_kinds({}, {"process_count": 4, "node_count": 3}))

    assert problem.startswith("resources.components[1]: LSF fills nodes")


@given(heterogeneous_resources())
def test_requested_slots_and_memory_add_up(resources: HeterogeneousResources) -> None:
    lines = directives(JobSpec("/bin/true", resources=resources))

    (slots,) = [int(line.removeprefix("-n ")) for line in lines if line.startswith("-n ")]
    (required,) = [line for line in lines if line.startswith("-R ")]
    assert slots == sum(it.computed_process_count for it in resources.components)
    assert slots == sum(int(number) for number in re.findall(r"([0-9]+)\*\{", required))


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("x[1-3]%2", "x_1-3_%2"),
        ("it's", "it_s"),
        ('say "x"', "say _x_"),
        ("a\nb", "a_b"),
        ("$HOME\\`", "_HOME__"),
        ("# note", "_ note"),
        (" a  b ", "_a _b_"),
        ("é" * 200, "é" * 127),
    ],
)
def test_illegal_names_are_made_legal(name: str, legal: str) -> None:
    """`#BSUB -J '#'` once created a job named -Jd that mailed its output and could not be found."""
    spec = JobSpec("/bin/true", name=name)

    lines = hooks.render_script(spec, CONTEXT).text.splitlines()
    assert problems(spec) == []
    (named,) = [line.removeprefix("#BSUB -J ").strip("'") for line in lines if " -J " in line]
    assert named == legal
    (description,) = [line.removeprefix("#BSUB -Jd ").strip("'") for line in lines if " -Jd " in line]
    assert description == f"{quote(name, safe='')[:1000]} {CONTEXT.tag}"


def test_a_legal_name_is_not_repeated_in_the_description() -> None:
    text = hooks.render_script(JobSpec("/bin/true", name="a b"), CONTEXT).text

    assert "#BSUB -J 'a b'\n" in text
    assert f"#BSUB -Jd {CONTEXT.tag}\n" in text
    assert "#BSUB -J jpsi\n" in hooks.render_script(JobSpec("/bin/true", name=""), CONTEXT).text


@pytest.mark.parametrize("project", ["#", "# note", " a", "a ", "a  b"])
def test_values_that_lsf_would_misread_are_refused(project: str) -> None:
    spec = JobSpec("/bin/true", attributes=JobAttributes(project_name=project))

    assert len(problems(spec)) == 1
    with pytest.raises(ValueError, match="comment"):
        hooks.render_script(spec, CONTEXT)


def test_a_value_can_contain_a_number_sign() -> None:
    assert problems(JobSpec("/bin/true", name="a#b", attributes=JobAttributes(reservation_id="u#0"))) == []


@pytest.mark.parametrize(
    ("queues", "count"), [("q" * 60, 1), (f"short {'q' * 60}", 1), (f"{'q' * 59} short@x", 0)]
)
def test_no_queue_has_a_longer_name(queues: str, count: int) -> None:
    assert len(problems(JobSpec("/bin/true", attributes=JobAttributes(queue_name=queues)))) == count


def test_options_of_users_are_rendered() -> None:
    spec = _custom(app="dock", sp=50, R="select[fast]", Jd="of mine", gpu="num=4", W=None, x=True, n=False)

    lines = hooks.render_script(spec, CONTEXT).text

    assert problems(spec) == []
    assert "#BSUB -app dock\n" in lines
    assert "#BSUB -sp 50\n" in lines
    assert "#BSUB -R select[fast]\n" in lines
    assert "#BSUB -Jd 'of mine jpsi-abc-1'\n" in lines
    assert "#BSUB -x\n" in lines
    assert "-W" not in lines
    assert "-n " not in lines


def test_requirements_of_users_come_before_those_of_jpsi() -> None:
    spec = _custom(R="select[fast]")
    spec.resources = ResourceSpecV1(node_count=2)

    assert "-R 'select[fast] span[ptile=1]'" in directives(spec)


def test_easy_mode_requests_nodes_instead_of_slots() -> None:
    assert directives(_custom(nnodes=2, alloc_flags="smt4")) == ["-nnodes 2", "-alloc_flags smt4"]


@pytest.mark.parametrize("option", ["I", "Is", "K", "J", "o", "cwd", "env", "L", "N", "H", "Q", "pack"])
def test_options_that_would_break_jpsi_are_refused(option: str) -> None:
    (problem,) = problems(_custom(**{option: "x"}))

    assert f"lsf.{option} cannot be set" in problem


def test_a_site_may_make_jobs_rerunnable() -> None:
    assert directives(JobSpec("/bin/true"), _context(rerunnable=True)) == ["-n 1", "-r"]


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="memory_unit"):
        LsfConfig(memory_unit="mb")
