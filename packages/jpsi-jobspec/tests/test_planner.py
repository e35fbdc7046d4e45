"""The plan of each document of the language, and the rules of planning."""

from __future__ import annotations

import gc
from datetime import timedelta
from types import TracebackType

import pytest

from jobspec_support import INVALID, VALID, entries, example, found, loaded, planned
from jpsi import ResourceSpecV1
from jpsi_jobspec.document.loader import load
from jpsi_jobspec.document.problems import Findings, WorkflowError
from jpsi_jobspec.document.shape import as_resources
from jpsi_jobspec.planning.chooser import Chooser
from jpsi_jobspec.planning.plan import Kind, Plan
from jpsi_jobspec.planning.site import Mapped, Site
from jpsi_jobspec.running.job_specs import job_spec

Line = tuple[str, str, int, str, list[str]]
#: For each document: id, kind, replicas, resources and dependencies, in the order of submission.
PLANS: dict[str, list[Line]] = {
    "00-spack-and-ior": [
        ("build", "job", 1, "spack-build", []),
        ("ior", "job", 1, "ior-run", ["build ok"]),
    ],
    "01-setup-and-run": [("setup", "job", 1, "", []), ("task-2", "job", 1, "", ["setup ok"])],
    "02-stage-a-directory": [("setup", "files", 1, "", [])],
    "03-stage-a-file": [("setup", "files", 1, "", [])],
    "04-archive-by-hand": [("root", "job", 1, "", [])],
    "05-requires-mended": [("build", "job", 1, "spack-build", [])],
    "06-mini-mummi-mended": [
        ("mini-mummi", "allocation", 1, "mini-mummi", []),
        ("mini-mummi/mini-mummi-task-1", "local", 1, "", []),
        ("mini-mummi/train", "pool", 1, "mummi-gpu", ["mini-mummi-task-1 ok"]),
        ("mini-mummi/train/train", "task", 1, "", []),
        ("mini-mummi/test", "task", 20, "mummi-gpu", ["train ok", "mini-mummi-task-1 ok"]),
        (
            *("mini-mummi/mini-mummi-task-4", "local", 1, ""),
            ["train any", "test any", "mini-mummi-task-1 any"],
        ),
    ],
    **{
        name: [
            ("task-1", "allocation", 1, "hello-world", []),
            ("task-1/task-1", "task", 4, "hello-world", []),
        ]
        for name in ("07-count", "08-replicas")
    },
    "09-one-command": [("task-1", "job", 1, "spack", [])],
    "10-three-commands": [(f"task-{n}", "job", 1, "spack", []) for n in (1, 2, 3)],
    "11-requires-of-a-resource": [("task-1", "job", 1, "spack", [])],
    "12-duration": [("task-1", "job", 1, "spack", [])],
    "13-environment": [("task-1", "job", 1, "spack", [])],
    "14-cwd": [("task-1", "job", 1, "spack", [])],
    "15-flags": [("task-1", "job", 1, "spack", [])],
    "16-services-mended": [
        ("ml-work", "allocation", 1, "ml-group", []),
        ("ml-work/start", "local", 1, "", []),
        ("ml-work/train", "task", 100, "single-node", ["start ok"]),
        ("ml-work/test", "task", 10, "single-node", ["train ok", "start ok"]),
        ("ml-work/delete", "local", 1, "", ["test any", "start any"]),
    ],
    "17-nested": [
        ("machine-learning", "allocation", 1, "machine-learning", []),
        ("machine-learning/machine-learning-task-1", "local", 1, "", []),
        ("machine-learning/sleep", "service", 1, "single-node", ["machine-learning-task-1 ok"]),
        ("machine-learning/generate-data", "pool", 1, "generate-data", ["machine-learning-task-1 ok"]),
        ("machine-learning/generate-data/generate-data-task-1", "task", 1, "single-node", []),
        ("machine-learning/generate-data/eat-data", "task", 1, "single-node", []),
        (
            *("machine-learning/machine-learning-task-4", "local", 1, ""),
            ["generate-data any", "machine-learning-task-1 any"],
        ),
    ],
}


def lines(plan: Plan) -> list[Line]:
    return [
        (
            it.id,
            it.kind.value,
            it.replicas,
            it.resources,
            [f"{after.id.rpartition('/')[2]} {after.when}" for after in it.after],
        )
        for it in entries(plan).values()
    ]


@pytest.mark.clause("ng-examples", "ng-name", "ng-local", "ng-order")
@pytest.mark.parametrize("name", VALID)
def test_a_document_of_the_language_has_the_expected_plan(name: str) -> None:
    assert lines(planned(example(name))) == PLANS[name]


@pytest.mark.clause("ng-examples")
@pytest.mark.parametrize(
    ("name", "message"),
    {
        "05-requires": "flow.yaml:19:14: JS030: tasks[0].resources names the resource 'spack-build'",
        "06-mini-mummi": "flow.yaml:65:4: JS000:",
        "16-services": "flow.yaml:45:3: JS000:",
    }.items(),
)
def test_an_invalid_document_is_reported_with_its_position(name: str, message: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        planned(example(name))

    assert name in INVALID
    assert str(caught.value).startswith(message)
    assert name == "05-requires" or "sibling item starts at column" in str(caught.value)


def test_loose_documents_of_the_language_are_accepted_with_one_warning_for_each_looseness() -> None:
    """The requirements are unknown here, and no slot count is the group's own."""
    codes = {name: [it.code for it in found(example(name)) if it.code != "JS081"] for name in VALID}

    assert {name: it for name, it in codes.items() if it} == {
        "00-spack-and-ior": ["JS022"],
        "01-setup-and-run": ["JS002", "JS044", "JS044"],
        "02-stage-a-directory": ["JS002"],
        "03-stage-a-file": ["JS001", "JS002"],
        "04-archive-by-hand": ["JS001", "JS002", "JS044"],
        "05-requires-mended": ["JS002"],
        "06-mini-mummi-mended": ["JS023", "JS023"],
        "13-environment": ["JS003"],
        "17-nested": ["JS002", "JS040"],
    }


def requested_resources(name: str, id_: str) -> ResourceSpecV1:
    shape = entries(planned(example(name)))[id_].shape
    assert shape is not None
    return as_resources(shape)


@pytest.mark.clause("ng-count")
def test_nodes_of_unknown_content_are_counted() -> None:
    assert requested_resources("09-one-command", "task-1").node_count == 4


@pytest.mark.clause("ng-schedule")
def test_a_resource_is_requested_once_for_each_top_level_task_that_names_it() -> None:
    text = (
        f"{HEAD}  used: {{type: node, count: 1}}\n  unused: {{type: node, count: 2}}\n"
        "  part: {type: core, count: 1}\n"
        "tasks: [{command: a, resources: used}, {command: b, resources: used}]\n"
        "groups: [{name: g, resources: used, tasks: [{command: c, resources: part}]}]\n"
    )

    plan = planned(text)

    assert plan.requests == 3
    assert [it.resources for it in plan.entries] == ["used"] * 3


@pytest.mark.clause("ng-count")
def test_four_nodes_by_count_are_four_nodes_with_a_process_on_each() -> None:
    assert requested_resources("07-count", "task-1") == ResourceSpecV1(
        node_count=4, processes_per_node=1, cpu_cores_per_process=4
    )


@pytest.mark.clause("ng-replicas-resource")
def test_four_nodes_by_replicas_are_four_processes_anywhere() -> None:
    assert requested_resources("08-replicas", "task-1") == ResourceSpecV1(
        process_count=4, cpu_cores_per_process=4
    )


def test_the_first_example_gets_its_requested_gpus() -> None:
    assert requested_resources("00-spack-and-ior", "ior") == ResourceSpecV1(
        node_count=1, processes_per_node=1, gpu_cores_per_process=4
    )


def test_all_alternatives_in_a_group_are_kept_in_the_order_of_preference() -> None:
    entry = entries(planned(example("06-mini-mummi-mended")))["mini-mummi/test"]

    assert (entry.resources, [name for name, _ in entry.others]) == ("mummi-gpu", ["mummi-cpu"])


HEAD = "version: 1\nresources:\n"


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        ("{type: core, count: 4}", ResourceSpecV1(process_count=1, cpu_cores_per_process=4)),
        ("{type: core, replicas: 4}", ResourceSpecV1(process_count=4, cpu_cores_per_process=1)),
        (
            "{type: node, count: 2, with: [{type: slot, count: 4, with: [{type: core, count: 2}]}]}",
            ResourceSpecV1(node_count=2, processes_per_node=4, cpu_cores_per_process=2),
        ),
        (
            "{type: node, count: 2, with: [{type: socket, count: 2, with: [{type: core, count: 8}]}]}",
            ResourceSpecV1(node_count=2, processes_per_node=1, cpu_cores_per_process=16),
        ),
        (
            "{type: rack, count: 2, with: [{type: node, count: 3}]}",
            ResourceSpecV1(node_count=6, processes_per_node=1),
        ),
        (
            "{type: node, count: 2, with: [{type: memory, size: 16GB}]}",
            ResourceSpecV1(node_count=2, processes_per_node=1, memory=2 * 16 * 2**30),
        ),
        (
            "{type: node, count: 1, exclusive: true}",
            ResourceSpecV1(node_count=1, processes_per_node=1, exclusive_node_use=True),
        ),
    ],
)
def test_counts_are_for_each_enclosing_resource(resource: str, spec: ResourceSpecV1) -> None:
    """JS024."""
    plan = planned(f"{HEAD}  r: {resource}\ntasks: [{{command: a, resources: r}}]\n")

    shape = plan.entries[0].shape
    assert shape is not None
    assert as_resources(shape) == spec


def test_resources_that_jobs_cannot_request_are_noted() -> None:
    plan = planned(
        f"{HEAD}  r: {{type: rack, count: 1, with: [{{type: node, count: 2}}]}}\n"
        "tasks: [{command: a, resources: r}]\n"
    )

    assert plan.entries[0].lost == ("racks are not requested: jobs do not name them",)


@pytest.mark.clause("ng-attributes")
def test_the_nearest_attribute_counts() -> None:
    """Document < resource < group < task."""
    plan = planned(
        "version: 1\nattributes: {environment: {A: document, B: document, C: document, D: document}}\n"
        "resources:\n  r: {type: node, count: 1, attributes: {environment: {B: r, C: r, D: r},"
        " duration: 1h}}\n"
        "groups:\n- name: g\n  resources: r\n  attributes: {environment: {C: g, D: g}}\n"
        "  tasks: [{name: t, command: a, attributes: {environment: {D: t, A: null}}}]\n"
    )

    inner = entries(plan)["g/t"].attributes
    assert inner.environment == {"A": None, "B": "r", "C": "g", "D": "t"}
    assert entries(plan)["g"].attributes.duration == timedelta(hours=1)
    assert inner.duration is None


@pytest.mark.clause("ng-watch")
def test_a_watched_task_holds_back_later_submissions() -> None:
    plan = planned(
        f"{HEAD}  r: {{type: node, count: 1}}\ntasks:\n"
        "- {name: a, command: x, resources: r, depends_on: [c]}\n"
        "- {name: b, command: x, resources: r, attributes: {watch: true}}\n"
        "- {name: c, command: x, resources: r}\n- {name: d, command: x, resources: r}\n"
    )

    assert [(it.id, [after.id for after in it.after]) for it in plan.entries] == [
        ("b", []),
        ("c", ["b"]),
        ("a", ["c", "b"]),
        ("d", ["b"]),
    ]


@pytest.mark.clause("ng-requires-resource")
def test_a_table_translates_a_requirement_to_an_option_of_the_batch_system() -> None:
    site = Site(constraints={"system.platform": Mapped(option="slurm.constraint")})

    (entry,) = planned(example("11-requires-of-a-resource"), site).entries

    assert (dict(entry.constraints), entry.lost) == ({"slurm.constraint": "amd64"}, ())


@pytest.mark.clause("ng-requires-resource")
def test_an_untranslated_requirement_is_in_the_plan() -> None:
    (entry,) = planned(example("11-requires-of-a-resource")).entries

    assert entry.lost == ("no option expresses that it requires system: platform=amd64",)


def test_parameters_replace_counts_and_parts_of_text_only() -> None:
    document, _ = loaded(
        "version: 1\nparameters:\n  n: 3\n  who: {type: string, default: me}\n"
        "resources:\n  r: {type: node, count: '${n}'}\n"
        "tasks: [{command: ['echo', 'for ${who} ${HOME}'], resources: r, replicas: '${n}'}]\n"
    )

    assert document.resources["r"].vertex.count == 3
    assert document.tasks[0].replicas == 3
    assert document.tasks[0].command == ("echo", "for me ${HOME}")


def test_a_parameter_of_any_type_can_be_a_word_of_a_command() -> None:
    document, _ = loaded(
        "version: 1\nparameters: {n: 3, x: 0.5, is_new: true}\nresources: {r: {type: core, count: 1}}\n"
        "tasks: [{command: [fit, '${n}', '${x}', '${is_new}'], resources: r}]\n"
    )

    assert document.tasks[0].command == ("fit", "3", "0.5", "true")


@pytest.mark.parametrize(
    ("default", "typed", "text"),
    [
        ("3.9", {"v": "3.10"}, "3.10"),
        ("3.10", {}, "3.10"),
        ("007", {}, "007"),
        ("{type: number, default: 1e3}", {"v": "1.0e+3"}, "1.0e+3"),
        ("{type: number, default: 3.10}", {}, "3.10"),
        ("'3.10'", {}, "3.10"),
        ("false", {"v": "true"}, "true"),
    ],
)
def test_a_parameter_in_a_text_is_as_it_was_written(default: str, typed: dict[str, str], text: str) -> None:
    document = load(
        f"version: 1\nparameters: {{v: {default}}}\nresources: {{r: {{type: core, count: 1}}}}\n"
        "tasks: [{command: [echo, '${v}', 'x${v}'], resources: r,"
        " attributes: {environment: {V: '${v}'}}}]\n",
        Findings("flow.yaml"),
        typed,
    )

    (task,) = document.tasks
    assert task.command == ("echo", text, f"x{text}")
    assert task.attributes.environment == {"V": text}


def test_a_script_is_run_by_its_own_interpreter() -> None:
    document, _ = loaded("version: 1\ntasks:\n- command: |\n    #!/bin/sh\n    echo it runs\n")

    command = document.tasks[0].command
    assert command[:2] == ("/bin/sh", "-c")
    assert command[-1] == "#!/bin/sh\necho it runs\n"


@pytest.mark.clause("ng-group-commands")
def test_commands_of_a_group_run_before_its_tasks_one_after_the_other() -> None:
    plan = planned(
        f"{HEAD}  r: {{type: node, count: 1}}\ngroups:\n- name: g\n  resources: r\n"
        "  commands: [module load x, 'echo \"a b\"']\n  tasks: [{command: a}]\n"
    )

    inside = plan.entries[0].inside
    assert [it.kind for it in inside] == [Kind.LOCAL, Kind.LOCAL, Kind.TASK]
    assert inside[1].command == ("/bin/sh", "-ec", 'echo "a b"')
    assert [after.id for after in inside[2].after] == ["g/g-command-2"]


def test_dependents_of_a_service_wait_for_its_start() -> None:
    plan = planned(
        f"{HEAD}  r: {{type: node, count: 1}}\ngroups:\n- name: g\n  resources: r\n  tasks:\n"
        "  - {name: s, command: serve, service: true, ready: {tcp: 'localhost:80'}}\n"
        "  - {name: t, command: a, depends_on: [s]}\n"
    )

    assert [(it.id, it.when) for it in entries(plan)["g/t"].after] == [("g/s", "started")]


def test_a_group_waits_for_the_entries_of_its_depends_on() -> None:
    plan = planned(
        f"{HEAD}  r: {{type: node, count: 1}}\ntasks: [{{name: first, command: a, resources: r}}]\n"
        "groups:\n- {name: g, resources: r, depends_on: [first], tasks: [{command: a}]}\n"
    )

    assert [(it.id, [after.id for after in it.after]) for it in plan.entries] == [
        ("first", []),
        ("g", ["first"]),
    ]


def test_a_reason_against_a_resource_retains_no_tasks() -> None:
    text = (
        "version: 1\nresources:\n  r: {type: core, count: 1}\n"
        "  wide: {type: slot, count: 1, with: [{type: node, count: 2}]}\n"
        "tasks:\n" + "- {command: [a], resources: wide|r}\n" * 99
    )
    document, _ = loaded(text)
    chooser = Chooser(document, Site(target="slurm"), Findings())

    assert {chooser.choose(task, task.resources).name for task in document.tasks} == {"r"}
    assert sum(isinstance(it, TracebackType) for it in gc.get_objects()) < 99


def test_the_garbage_collector_of_the_application_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """It serves all threads of the application."""
    monkeypatch.setattr(gc, "disable", lambda: pytest.fail("it was switched off"))

    assert len(planned("version: 1\ntasks: [{command: a}]\n").entries) == 1


@pytest.mark.parametrize(
    ("resources", "spec"),
    [
        (
            "  a: {type: node, count: 2}\n  b: {type: node, count: 1, with: [{type: core, count: 4}]}\n",
            ResourceSpecV1(node_count=3, processes_per_node=1, cpu_cores_per_process=4),
        ),
        (
            "  a: {type: core, replicas: 3}\n  b: {type: core, replicas: 2}\n",
            ResourceSpecV1(process_count=5, cpu_cores_per_process=1),
        ),
        (
            (
                "  a: {type: node, count: 1, with: [{type: memory, size: 1GB}]}\n"
                "  b: {type: node, count: 1, exclusive: true, with: [{type: memory, size: 2GB}]}\n"
            ),
            ResourceSpecV1(node_count=2, processes_per_node=1, memory=3 * 2**30, exclusive_node_use=True),
        ),
    ],
)
def test_equal_pieces_are_requested_at_once_as_one_job(resources: str, spec: ResourceSpecV1) -> None:
    (entry,) = planned(f"{HEAD}{resources}tasks: [{{command: x, resources: a&b}}]\n").entries

    assert entry.resources == "a&b"
    assert entry.shape is not None
    assert as_resources(entry.shape) == spec


def test_the_longest_time_of_concurrent_pieces_counts() -> None:
    text = (
        f"{HEAD}  a: {{type: core, replicas: 1, attributes: {{duration: 1h, environment: {{A: a, B: a}}}}}}\n"
        "  b: {type: core, replicas: 1, attributes: {duration: 30m, environment: {B: b}}}\n"
        "  c: {type: core, replicas: 1, attributes: {duration: 0}}\n"
        "tasks: [{command: x, resources: a&b}, {command: x, resources: 'a&c'}]\n"
    )

    first, second = (it.attributes for it in planned(text).entries)

    assert (first.duration, first.environment) == (timedelta(hours=1), {"A": "a", "B": "b"})
    assert second.duration == timedelta(0)


def test_for_pieces_that_differ_the_next_alternative_is_chosen() -> None:
    text = (
        f"{HEAD}  a: {{type: node, count: 1, with: [{{type: gpu, count: 1}}]}}\n"
        "  b: {type: node, count: 1}\ntasks: [{command: x, resources: 'a&b|b'}]\n"
    )

    (entry,) = planned(text).entries

    assert entry.resources == "b"
    assert entry.why[-1].startswith("'a&b' is left out: its pieces differ")


@pytest.mark.clause("ng-schedule")
def test_only_scheduled_alternatives_are_requested_at_the_top() -> None:
    text = (
        f"{HEAD}  a: {{type: node, count: 1}}\n  b: {{type: node, count: 1, schedule: true}}\n"
        "tasks: [{command: x, resources: a|b}]\n"
        "groups: [{name: g, resources: b, tasks: [{command: x, resources: a|b}]}]\n"
    )

    found = entries(planned(text))

    assert found["task-1"].resources == "b"
    assert found["g/g-task-1"].resources == "a"


@pytest.mark.clause("ng-duration")
def test_without_a_duration_the_batch_systems_default_counts() -> None:
    """A duration of zero is no limit for jpsi; an omitted one would be its default of ten minutes."""
    (entry,) = planned(example("09-one-command")).entries

    attributes = job_spec(entry).attributes
    assert attributes is not None
    assert attributes.duration == timedelta(0)


def test_requirements_with_the_same_option_are_joined_by_the_table_or_refused() -> None:
    requires = "[{name: a, field: x, match: '1'}, {name: a, field: y, match: '2'}]"
    text = (
        f"{HEAD}  r: {{type: node, count: 1, requires: {requires}}}\ntasks: [{{command: x, resources: r}}]\n"
    )
    mapped = Mapped(option="slurm.constraint", value="a{match}", join="&")
    joined = Site(constraints={"a.x": mapped, "a.y": mapped})
    alone = Site(constraints=dict.fromkeys(("a.x", "a.y"), Mapped(option="slurm.constraint")))

    (entry,) = planned(text, joined).entries

    assert entry.constraints == {"slurm.constraint": "a1&a2"}
    assert [it.code for it in found(text, site=alone)] == ["JS090"]
