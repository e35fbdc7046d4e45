"""The rendered directives, and the specs that are refused before rendering."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi import read_document
from jpsi.plugin import JobAttributes, JobSpec, ResourceSpecV1, SubmitContext
from jpsi_slurm import hooks
from jpsi_slurm.custom_options import CUSTOM
from jpsi_slurm.directives import legal_name
from jpsi_slurm.fake.submit import SBATCH, _directives
from jpsi_testing import specs
from slurm_support import CONTEXT, SITE, site


def _spec(resources: dict[str, Any] | None = None, name: str | None = None, **attributes: Any) -> JobSpec:
    return JobSpec(
        "/bin/true",
        name=name,
        resources=None if resources is None else ResourceSpecV1.uneven(**resources),
        attributes=JobAttributes(**attributes),
    )


def _options(spec: JobSpec, context: SubmitContext = CONTEXT) -> dict[str, str]:
    """Return the options that sbatch reads from the directives, by its own rules of quoting."""
    (words,) = _directives(hooks.render_script(spec, context).text)
    return {name[2:]: value for name, _, value in (word.partition("=") for word in words)}


@pytest.mark.clause("spec-attributes", "attributes-duration", "attributes-queue", "attributes-project")
def test_a_plain_job() -> None:
    assert hooks.render_script(_spec(), CONTEXT).text.splitlines() == [
        "#!/bin/sh",
        "#SBATCH --job-name=jpsi",
        "#SBATCH --comment=jpsi-abc-1",
        "#SBATCH --chdir=/",
        "#SBATCH --output=/dev/null",
        "#SBATCH --error=/dev/null",
        "#SBATCH --export=ALL",
        "#SBATCH --time=10",
        "#SBATCH --ntasks=1",
        "",
    ]


@pytest.mark.clause(
    "resources-exclusive-node", "attributes-queue", "attributes-project", "attributes-reservation"
)
def test_every_attribute_is_rendered() -> None:
    spec = _spec(
        {
            "node_count": 2,
            "processes_per_node": 3,
            "cpu_cores_per_process": 4,
            "gpu_cores_per_process": 1,
            "exclusive_node_use": True,
            "memory": 3 * 2**30 + 1,
        },
        name="my job",
        duration=timedelta(hours=1, seconds=1),
        queue_name="main",
        project_name="proj1",
        reservation_id="r1",
        licenses="matlab:2,abaqus",
        qos="high",
        gpu_type="a100",
        mail="begin,fail:ann@example.org",
    )

    assert _options(spec) == {
        "job-name": "my job",
        "comment": "jpsi-abc-1",
        "chdir": "/",
        "output": "/dev/null",
        "error": "/dev/null",
        "export": "ALL",
        "partition": "main",
        "account": "proj1",
        "reservation": "r1",
        "licenses": "matlab:2,abaqus:1",
        "qos": "high",
        "mail-user": "ann@example.org",
        "mail-type": "BEGIN,FAIL",
        "time": "61",
        "nodes": "2",
        "ntasks": "6",
        "ntasks-per-node": "3",
        "cpus-per-task": "4",
        "gpus-per-task": "a100:1",
        "exclusive": "",
        "mem": "1537M",
    }


@pytest.mark.clause("document-slot-exclusive")
def test_resources_of_a_slot_are_requested_for_the_job_only() -> None:
    """Slurm gives cores to one job only, unless an option lets jobs share them."""
    graph = "[{type: slot, label: s, count: 4, with: [{type: core, count: 2}, {type: gpu, count: 1}]}]"
    task = "{command: [a], slot: s, count: {per_slot: 1}}"
    text = f"{{version: 1, resources: {graph}, tasks: [{task}], attributes: {{system: {{duration: 0}}}}}}"

    options = _options(read_document(text))

    assert options["ntasks"] == "4"
    assert options["cpus-per-task"] == "2"
    assert options["gpus-per-task"] == "1"
    assert not {"oversubscribe", "share", "overcommit"} & options.keys()


@pytest.mark.clause("attributes-duration-seconds")
@pytest.mark.parametrize(
    ("duration", "limit"),
    [
        (None, "10"),
        (timedelta(0), None),
        (timedelta(microseconds=1), "1"),
        (timedelta(minutes=1), "1"),
        (timedelta(seconds=61), "2"),
        (timedelta(days=2), "2880"),
    ],
    ids=str,
)
def test_time_is_whole_minutes_and_never_too_few(duration: timedelta | None, limit: str | None) -> None:
    assert _options(_spec(duration=duration)).get("time") == limit


@pytest.mark.clause("spec-resources", "resources-nodes", "resources-cores", "resources-gpus")
@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, {"ntasks": "1"}),
        ({"process_count": 10}, {"ntasks": "10"}),
        ({"node_count": 4}, {"nodes": "4", "ntasks": "4", "ntasks-per-node": "1"}),
        (
            {"process_count": 10, "processes_per_node": 3},
            {"nodes": "4", "ntasks": "10", "ntasks-per-node": "3"},
        ),
        ({"memory": 1}, {"ntasks": "1", "mem": "1M"}),
        (
            {"process_count": 5, "processes_per_node": 3, "memory": 50 << 30},
            {"ntasks": "5", "nodes": "2", "ntasks-per-node": "3", "mem": "30720M"},
        ),
        ({"process_count": 4, "memory": 2**30}, {"ntasks": "4", "mem-per-cpu": "256M"}),
        (
            {"process_count": 4, "cpu_cores_per_process": 3, "memory": 2**30},
            {"ntasks": "4", "cpus-per-task": "3", "mem-per-cpu": "86M"},
        ),
        ({"gpu_cores_per_process": 0}, {"ntasks": "1"}),
    ],
    ids=str,
)
def test_resources(resources: dict[str, Any], expected: dict[str, str]) -> None:
    own = {"job-name", "comment", "chdir", "output", "error", "export", "time"}

    assert {k: v for k, v in _options(_spec(resources)).items() if k not in own} == expected


@given(
    st.integers(1, 2**50),
    st.integers(1, 100),
    st.integers(1, 100),
    st.one_of(st.none(), st.integers(1, 50)),
)
def test_a_job_gets_its_requested_memory(
    memory: int, processes: int, cores: int, per_node: int | None
) -> None:
    resources = ResourceSpecV1.uneven(
        process_count=processes, cpu_cores_per_process=cores, processes_per_node=per_node, memory=memory
    )
    options = _options(JobSpec("/bin/true", resources=resources))

    if "mem" in options:
        shares, share = int(options.get("nodes", "1")), options["mem"]
    else:
        shares, share = processes * cores, options["mem-per-cpu"]

    assert int(share.removesuffix("M")) * 2**20 * shares >= memory


@pytest.mark.parametrize(
    ("requeue", "expected"), [(None, set()), (True, {"requeue"}), (False, {"no-requeue"})], ids=str
)
def test_the_policy_for_requeueing(requeue: bool | None, expected: set[str]) -> None:
    context = SubmitContext(site=site(requeue=requeue), job_id="job", tag="t")

    assert {"requeue", "no-requeue"} & _options(_spec(), context).keys() == expected


@pytest.mark.clause("attributes-custom")
def test_custom_attributes_add_replace_and_remove_options() -> None:
    custom = {
        "slurm.qos": "high",
        "slurm.contiguous": True,
        "slurm.time": None,
        "slurm.ntasks": 3,
        "slurm.nice": 5,
        "slurm.comment": "for my boss",
        "slurm.mem-per-gpu": "4G",
        "pbs.anything": "else",
    }

    options = _options(_spec({"memory": 1, "process_count": 8}, custom_attributes=custom))

    assert options["qos"] == "high"
    assert options["contiguous"] == ""
    assert "time" not in options
    assert options["ntasks"] == "3"
    assert options["nice"] == "5"
    assert options["comment"] == "for my boss jpsi-abc-1"
    assert options["mem-per-gpu"] == "4G"
    assert "mem-per-cpu" not in options
    assert "anything" not in options


def test_the_option_of_one_job_overrides_the_policy() -> None:
    context = SubmitContext(site=site(requeue=False), job_id="job", tag="t")
    spec = _spec(custom_attributes={"slurm.requeue": True})

    assert {"requeue", "no-requeue"} & _options(spec, context).keys() == {"requeue"}


@pytest.mark.parametrize(
    "option", ["wrap", "array", "arr", "parsable", "output", "out", "export", "wait", "ex"]
)
def test_an_option_that_would_break_jpsi_is_refused_however_abbreviated(option: str) -> None:
    found = hooks.check_spec(_spec(custom_attributes={f"slurm.{option}": "x"}), SITE)

    assert len(found) == 1
    assert found[0].startswith(f"custom attribute slurm.{option} cannot be set: ")


@pytest.mark.parametrize("option", ["exclusive", "wait-all-nodes", "mem", "mail-type", "exclude", "gpus"])
def test_an_option_that_only_resembles_one_is_accepted(option: str) -> None:
    assert not hooks.check_spec(_spec(custom_attributes={f"slurm.{option}": "1"}), SITE)


def test_no_option_of_sbatch_counts_as_an_abbreviation() -> None:
    custom = {f"slurm.{it}": "1" for it in SBATCH.known if it not in CUSTOM.refused}

    assert list(CUSTOM.problems(_spec(custom_attributes=custom))) == []


@pytest.mark.parametrize("name", ["p", "--qos", "q os", "qos=x", "Qos", "qos\n#SBATCH --wrap", "", "qos-"])
def test_a_short_option_is_refused(name: str) -> None:
    found = hooks.check_spec(_spec(custom_attributes={f"slurm.{name}": "x"}), SITE)

    assert len(found) == 1
    assert "whole name" in found[0]


def test_all_problems_are_reported_together() -> None:
    spec = _spec(
        name="x" * 2000,
        queue_name="",
        project_name="a\nb",
        reservation_id="x" * 2000,
        custom_attributes={"slurm.qos": "`id`"},
    )

    found = hooks.check_spec(spec, SITE)

    assert len(found) == 5
    assert [sum(word in text for text in found) for word in ("job-name", "queue_name", "account")] == [
        1,
        1,
        1,
    ]
    assert [sum(word in text for text in found) for word in ("reservation", "qos")] == [1, 1]


def test_a_list_is_no_value_of_an_option() -> None:
    found = hooks.check_spec(_spec(custom_attributes={"slurm.gres": ["gpu:1"]}), SITE)

    assert len(found) == 1
    assert "must be text" in found[0]


_ANYTHING = st.text(max_size=80) | st.sampled_from(
    ["$(touch /tmp/x)", "`id`", "a'b", 'a"b', "a\\", "a\nb", "\r", "#SBATCH --wrap=x", "x" * 1100, "é" * 600]
)


@given(_ANYTHING, _ANYTHING, _ANYTHING, _ANYTHING)
def test_hostile_text_arrives_unchanged_or_is_refused(
    name: str, queue: str, project: str, reservation: str
) -> None:
    spec = _spec(name=name, queue_name=queue, project_name=project, reservation_id=reservation)
    if hooks.check_spec(spec, SITE):
        return

    text = hooks.render_script(spec, CONTEXT).text
    options = _options(spec)

    assert all(line.startswith("#") or not line for line in text.splitlines())
    assert options["job-name"] == legal_name(name or "jpsi")
    assert [options["partition"], options["account"], options["reservation"]] == [queue, project, reservation]


@given(
    st.dictionaries(st.text(max_size=12), st.none() | st.booleans() | st.integers() | _ANYTHING, max_size=3)
)
def test_custom_attributes_never_become_another_line(custom: dict[str, Any]) -> None:
    spec = _spec(custom_attributes={f"slurm.{name}": value for name, value in custom.items()})
    if hooks.check_spec(spec, SITE):
        return

    lines = hooks.render_script(spec, CONTEXT).text.split("\n")

    assert len(lines) == 1 + len(hooks.render_script(spec, CONTEXT).directives) + 2
    assert all(line.startswith(("#!", "#SBATCH --")) for line in lines if line)


@given(specs())
def test_every_valid_spec_is_rendered_or_refused_in_full(spec: JobSpec) -> None:
    problems = hooks.check_spec(spec, SITE)

    assert all(problems)
    if not problems:
        lines = hooks.render_script(spec, CONTEXT).text.split("\n")
        assert all(line.startswith(("#!", "#SBATCH --")) for line in lines if line)


@pytest.mark.parametrize("value", [10**5000, "\ud83d", "é" * 600], ids=["digits", "surrogate", "bytes"])
def test_a_value_that_no_text_or_line_can_hold_is_refused(value: object) -> None:
    assert len(hooks.check_spec(_spec(custom_attributes={"slurm.qos": value}), SITE)) == 1


@pytest.mark.parametrize(
    "character", ['"', "'", "\\", "$", "`", "\n", "\x1b", "\x85", "\u2028", "\udc80"], ids=ascii
)
def test_a_name_with_illegal_characters_is_made_legal(character: str) -> None:
    spec = _spec(name=f"heat {character}")

    assert hooks.check_spec(spec, SITE) == []
    assert _options(spec)["job-name"] == "heat _"


@given(_ANYTHING)
def test_a_spec_without_problems_can_be_rendered(text: str) -> None:
    spec = _spec(name=text, custom_attributes={"slurm.comment": text})

    if not hooks.check_spec(spec, SITE):
        hooks.render_script(spec, CONTEXT)


@pytest.mark.parametrize("option", ["comm", "part", "acc", "ntasks-per", "me"])
def test_an_abbreviation_of_an_option_that_jpsi_sets_is_refused(option: str) -> None:
    """The last option wins; such an abbreviation would replace the tag, for example."""
    (problem,) = hooks.check_spec(_spec(custom_attributes={f"slurm.{option}": "x"}), SITE)

    assert f"slurm.{option} is ambiguous, the command may read it as" in problem
