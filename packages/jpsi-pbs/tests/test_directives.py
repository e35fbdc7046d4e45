"""The rendered directives, and the specs that are refused before rendering."""

from __future__ import annotations

import shlex
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import Dependency, DependencyKind, JobSpec, SubmitContext, components, node_count
from jpsi_pbs.hooks import Hooks
from jpsi_pbs.job_names import legal_name
from jpsi_testing import hostile_text, specs
from pbs_support import CONTEXT, PBS, SITE, TORQUE, site, spec, spec_of_kinds

BOTH = pytest.mark.parametrize("hooks", [PBS, TORQUE], ids=["pbs", "torque"])


def _lines(spec: JobSpec, hooks: Hooks = PBS, context: SubmitContext = CONTEXT) -> list[str]:
    return [it.text for it in hooks.render_script(spec, context).directives]


def _options(spec: JobSpec, hooks: Hooks = PBS, context: SubmitContext = CONTEXT) -> dict[str, str]:
    """Return the options that qsub reads from the directives, by its own rules of quoting."""
    options = {}
    for line in _lines(spec, hooks, context):
        _, option, *value = shlex.split(line)
        name, _, rest = (value or [""])[0].partition("=")
        if option in {"-l", "-W"}:
            options[f"{option} {name}"] = rest
        else:
            options[option] = " ".join(value)
    return options


def _problems(spec: JobSpec, hooks: Hooks = PBS) -> list[str]:
    return hooks.check_spec(spec, SITE)


@pytest.mark.clause("attributes-duration", "attributes-queue", "attributes-project")
def test_a_plain_job() -> None:
    assert PBS.render_script(spec(), CONTEXT).text.splitlines() == [
        "#!/bin/sh",
        "#PBS -N jpsi",
        "#PBS -v JPSI_TAG=jpsi-abc-1",
        "#PBS -V",
        "#PBS -S /bin/sh",
        "#PBS -o /dev/null",
        "#PBS -e /dev/null",
        "#PBS -m n",
        "#PBS -l walltime=600",
        "#PBS -l select=1:ncpus=1:mpiprocs=1",
        "",
    ]


EVERYTHING = spec(
    {
        "node_count": 2,
        "processes_per_node": 3,
        "cpu_cores_per_process": 4,
        "gpu_cores_per_process": 1,
        "exclusive_node_use": True,
        "memory": 3 * 2**30 + 1,
    },
    name="my job",
    duration=timedelta(hours=1, milliseconds=1),
    queue_name="main",
    project_name="proj 1",
)


@pytest.mark.clause("resources-exclusive-node", "attributes-queue", "attributes-project")
def test_every_attribute_is_rendered() -> None:
    assert _options(EVERYTHING) == {
        "-N": "my_job",
        "-v": "JPSI_TAG=jpsi-abc-1,JPSI_NAME=my%20job",
        "-V": "",
        "-S": "/bin/sh",
        "-o": "/dev/null",
        "-e": "/dev/null",
        "-m": "n",
        "-q": "main",
        "-A": "proj 1",
        "-l walltime": "3601",
        "-l select": "2:ncpus=12:mpiprocs=3:ompthreads=4:ngpus=3:mem=1572865kb",
        "-l place": "scatter:exclhost",
    }


@pytest.mark.clause("resources-exclusive-node", "resources-gpus")
def test_every_attribute_is_rendered_for_torque() -> None:
    assert {
        name: value
        for name, value in _options(EVERYTHING, TORQUE).items()
        if name.startswith("-l") or name == "-n"
    } == {
        "-l walltime": "3601",
        "-l nodes": "2:ppn=12:gpus=3",
        "-l mem": "3145729kb",
        "-n": "",
    }


@pytest.mark.clause("attributes-duration-seconds")
@pytest.mark.parametrize(
    ("duration", "limit"),
    [
        (None, "600"),
        (timedelta(0), None),
        (timedelta(microseconds=1), "1"),
        (timedelta(seconds=61), "61"),
        (timedelta(seconds=61.5), "62"),
        (timedelta(days=2), "172800"),
    ],
    ids=str,
)
@BOTH
def test_time_is_whole_seconds_and_never_too_few(
    hooks: Hooks, duration: timedelta | None, limit: str | None
) -> None:
    assert _options(spec(duration=duration), hooks).get("-l walltime") == limit


@pytest.mark.clause("spec-resources", "resources-nodes", "resources-cores", "resources-gpus")
@pytest.mark.parametrize(
    ("resources", "select", "place", "nodes"),
    [
        ({}, "1:ncpus=1:mpiprocs=1", None, "1:ppn=1"),
        ({"process_count": 10}, "10:ncpus=1:mpiprocs=1", None, "1:ppn=10"),
        ({"node_count": 4}, "4:ncpus=1:mpiprocs=1", "scatter", "4:ppn=1"),
        (
            {"process_count": 10, "processes_per_node": 3},
            "3:ncpus=3:mpiprocs=3:ompthreads=1+1:ncpus=1:mpiprocs=1",
            "scatter",
            "4:ppn=3",
        ),
        (
            {"process_count": 9, "node_count": 4},
            "1:ncpus=3:mpiprocs=3:ompthreads=1+3:ncpus=2:mpiprocs=2:ompthreads=1",
            "scatter",
            "4:ppn=3",
        ),
        (
            {"process_count": 3, "processes_per_node": 5, "cpu_cores_per_process": 2},
            "1:ncpus=6:mpiprocs=3:ompthreads=2",
            None,
            "1:ppn=6",
        ),
        ({"exclusive_node_use": True}, "1:ncpus=1:mpiprocs=1", "exclhost", "1:ppn=1"),
        ({"cpu_cores_per_process": 8}, "1:ncpus=8:mpiprocs=1", None, "1:ppn=8"),
        (
            {"process_count": 2, "gpu_cores_per_process": 2},
            "2:ncpus=1:mpiprocs=1:ngpus=2",
            None,
            "1:ppn=2:gpus=4",
        ),
        ({"memory": 1}, "1:ncpus=1:mpiprocs=1:mem=1kb", None, "1:ppn=1"),
        ({"memory": 4096, "process_count": 4}, "4:ncpus=1:mpiprocs=1:mem=1kb", None, "1:ppn=4"),
    ],
    ids=str,
)
def test_resources(resources: dict[str, Any], select: str, place: str | None, nodes: str | None) -> None:
    options = _options(spec(resources))

    assert (options["-l select"], options.get("-l place")) == (select, place)
    assert _options(spec(resources), TORQUE).get("-l nodes") == nodes


@pytest.mark.clause("resources-processes", "resources-cores-nodes")
@pytest.mark.parametrize(
    ("resources", "cores_per_node", "options"),
    [
        ({"process_count": 40}, None, {"-l nodes": "1:ppn=40"}),
        ({"process_count": 40}, 16, {"-l nodes": "3:ppn=16"}),
        ({"process_count": 40}, 40, {"-l nodes": "1:ppn=40"}),
        ({"process_count": 8, "cpu_cores_per_process": 4}, 16, {"-l nodes": "2:ppn=16"}),
        ({"process_count": 8, "cpu_cores_per_process": 6}, 16, {"-l nodes": "4:ppn=12"}),
        ({"process_count": 2, "cpu_cores_per_process": 4}, None, {"-l nodes": "1:ppn=8"}),
        ({"process_count": 40, "node_count": 2}, 16, {"-l nodes": "2:ppn=20"}),
        ({"process_count": 1}, None, {"-l nodes": "1:ppn=1"}),
    ],
    ids=str,
)
def test_torque_processes_are_requested_as_nodes(
    resources: dict[str, Any], cores_per_node: int | None, options: dict[str, str]
) -> None:
    """Torque's own scheduler never starts a job with `procs`, and qsub refuses nodes that are too large."""
    context = attrs.evolve(CONTEXT, site=site(cores_per_node=cores_per_node))

    found = _options(spec(resources), TORQUE, context)

    assert {name: it for name, it in found.items() if name in {"-l nodes", "-l procs"}} == options


@pytest.mark.parametrize(("attribute", "value"), [("torque.l.nodes", "5:ppn=8"), ("torque.l.procs", 40)])
def test_resources_of_a_user_replace_nodes(attribute: str, value: Any) -> None:
    requested = spec({"process_count": 40})
    requested.attributes.set_custom_attribute(attribute, value)

    options = _options(requested, TORQUE)

    found = {name: it for name, it in options.items() if name in {"-l nodes", "-l procs"}}
    assert found == {attribute.replace("torque.l.", "-l "): str(value)}


def test_an_uneven_last_node_has_its_share_of_the_memory() -> None:
    resources = {"process_count": 5, "processes_per_node": 2, "memory": 10 * 2**20}

    assert _options(spec(resources))["-l select"] == (
        "2:ncpus=2:mpiprocs=2:ompthreads=1:mem=4096kb+1:ncpus=1:mpiprocs=1:mem=2048kb"
    )


_GIB = 1 << 30
_READER = {"cpu_cores_per_process": 2, "memory": 64 * _GIB}
_SOLVERS = {"node_count": 2, "processes_per_node": 4, "gpu_cores_per_process": 1, "memory": 16 * _GIB}


@pytest.mark.parametrize(
    ("kinds", "select", "place"),
    [
        (
            [_READER, _SOLVERS],
            "1:ncpus=2:mpiprocs=1:mem=67108864kb+2:ncpus=4:mpiprocs=4:ompthreads=1:ngpus=4:mem=8388608kb",
            "scatter",
        ),
        (
            [{"process_count": 3, "exclusive_node_use": True}, {"process_count": 3, "processes_per_node": 2}],
            "1:ncpus=3:mpiprocs=3:ompthreads=1+1:ncpus=2:mpiprocs=2:ompthreads=1+1:ncpus=1:mpiprocs=1",
            "scatter:exclhost",
        ),
        ([{}, {"memory": 1}], "1:ncpus=1:mpiprocs=1+1:ncpus=1:mpiprocs=1:mem=1kb", "scatter"),
    ],
)
def test_slots_of_several_kinds_are_chunks_on_nodes_of_their_own(
    kinds: list[dict[str, Any]], select: str, place: str
) -> None:
    requested = spec_of_kinds(*kinds)

    assert _problems(requested) == []
    assert (_options(requested)["-l select"], _options(requested)["-l place"]) == (select, place)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([_READER, _SOLVERS], {"-l nodes": "3:ppn=4:gpus=4", "-l mem": "83886080kb"}),
        (
            [{"process_count": 3, "exclusive_node_use": True}, {"process_count": 3, "processes_per_node": 2}],
            {"-l nodes": "3:ppn=3", "-n": ""},
        ),
    ],
)
def test_slots_of_several_kinds_are_nodes_of_torque_that_are_alike(
    kinds: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    """Torque may place nodes of several kinds on one host, where the job never starts."""
    requested = spec_of_kinds(*kinds)

    assert _problems(requested, TORQUE) == []
    options = _options(requested, TORQUE)
    assert {it: options[it] for it in ("-l nodes", "-l mem", "-n") if it in options} == expected


def test_torque_has_memory_for_the_whole_job_alone() -> None:
    (problem,) = _problems(spec_of_kinds({"memory": 1}, {}), TORQUE)

    assert problem.startswith("resources.components[1].memory: Torque has one memory limit for the whole job")


@BOTH
def test_jobs_of_several_kinds_may_be_an_array(hooks: Hooks) -> None:
    capabilities = hooks.capabilities(SITE)

    assert capabilities.arrays is not None
    assert (capabilities.heterogeneous, capabilities.arrays.heterogeneous) == (True, True)


def test_added_chunk_resources_apply_to_every_component() -> None:
    added = spec_of_kinds({}, _SOLVERS, custom_attributes={"pbs.chunk": "ib=true"})
    replaced = spec_of_kinds({}, _SOLVERS, custom_attributes={"pbs.l.select": "3:ncpus=4"})

    assert _options(added)["-l select"] == (
        "1:ncpus=1:mpiprocs=1:ib=true+2:ncpus=4:mpiprocs=4:ompthreads=1:ngpus=4:mem=8388608kb:ib=true"
    )
    assert _options(replaced)["-l select"] == "3:ncpus=4"


@given(specs(heterogeneous=True))
def test_every_process_gets_its_requested_resources(spec: JobSpec) -> None:
    kinds = components(spec.resources)
    chunks = [
        {"n": int(number), **dict(part.split("=") for part in parts)}
        for number, *parts in (
            chunk.split(":")
            for chunk in _options(attrs.evolve(spec, attributes=None))["-l select"].split("+")
        )
    ]

    cores = sum(it.computed_process_count * (it.cpu_cores_per_process or 1) for it in kinds)
    assert sum(it["n"] * int(it["mpiprocs"]) for it in chunks) == sum(
        it.computed_process_count for it in kinds
    )
    assert sum(it["n"] * int(it["ncpus"]) for it in chunks) == cores
    memory = sum(it.memory or 0 for it in kinds)
    assert sum(it["n"] * int(it.get("mem", "0kb").removesuffix("kb")) << 10 for it in chunks) >= memory
    if len(kinds) > 1 or node_count(kinds[0]) is not None:
        assert sum(it["n"] for it in chunks) == sum(it.computed_node_count for it in kinds)


@pytest.mark.clause("attributes-reservation")
def test_a_reservation_is_a_queue() -> None:
    assert _options(spec(reservation_id="R12.server"))["-q"] == "R12"
    assert _problems(spec(reservation_id="R12", queue_name="main")) == [
        "attributes.queue_name and reservation_id cannot both be set: a reservation is a queue"
    ]
    assert "Torque has no reservations" in _problems(spec(reservation_id="R12"), TORQUE)[0]


def test_licenses_are_resources_of_the_job() -> None:
    lines = _lines(spec(licenses="matlab:2,abaqus"))
    assert {"#PBS -l matlab=2", "#PBS -l abaqus=1"} <= set(lines)
    assert "attributes.licenses: jpsi knows no option" in _problems(spec(licenses="a"), TORQUE)[0]
    assert _problems(spec(licenses="walltime:5,ncpus:64")) == [
        "attributes.licenses: ncpus, walltime is a resource of PBS, and no license"
    ]


def test_the_kind_of_gpus_is_a_resource_of_chunks_that_have_some() -> None:
    kinds: list[dict[str, Any]] = [{}, {"gpu_cores_per_process": 2}]
    (select,) = [it for it in _lines(spec_of_kinds(*kinds, gpu_type="a100")) if "select" in it]

    assert select.endswith("select=1:ncpus=1:mpiprocs=1+1:ncpus=1:mpiprocs=1:ngpus=2:accelerator_model=a100")
    assert _problems(spec_of_kinds(*kinds, gpu_type="a:b")) == [
        "attributes.gpu_type must be a name such as a100, not 'a:b'"
    ]


def test_mail_and_quality_of_service() -> None:
    assert {"#PBS -M ann", "#PBS -m bae"} <= set(_lines(spec(mail="begin,end,fail:ann")))
    assert "#PBS -l qos=high" in _lines(spec(qos="high"), TORQUE)
    assert _problems(spec(mail="fail:ann")) == [
        "attributes.mail: the batch system sends no mail of fail alone; use end"
    ]


def test_configured_options() -> None:
    context = attrs.evolve(CONTEXT, site=site(umask="022", rerun=False))

    assert {"-W umask": "022", "-r": "n"}.items() <= _options(spec(), PBS, context).items()
    assert _options(spec(), PBS, attrs.evolve(CONTEXT, site=site(rerun=True)))["-r"] == "y"
    with pytest.raises(ValueError, match="umask"):
        site(umask="9")


@BOTH
def test_all_dependencies_must_be_satisfied(hooks: Hooks) -> None:
    after = (
        Dependency("7.node01", DependencyKind.OK),
        Dependency("8.node01", DependencyKind.OK),
        Dependency("9[]", DependencyKind.ANY),
        Dependency("10", DependencyKind.NOTOK),
    )

    depend = _options(spec(), hooks, attrs.evolve(CONTEXT, after=after))["-W depend"]

    assert depend == "afterok:7.node01:8.node01,afterany:9[],afternotok:10"
    assert "-W depend" not in _options(spec(), hooks)


@BOTH
def test_dependencies_that_pbs_cannot_express(hooks: Hooks) -> None:
    with pytest.raises(ValueError, match="'7,afterany:8' is no job id of PBS's"):
        hooks.canonical_id("7,afterany:8", SITE)
    both = spec(after=["7"], custom_attributes={f"{hooks.name}.W.depend": "on:1"})
    assert _problems(both, hooks) == [
        (
            f"attributes.after and the custom attribute {hooks.name}.W.depend both set the dependencies; "
            "give one of them"
        )
    ]


@BOTH
def test_custom_attributes(hooks: Hooks) -> None:
    custom = {"p": 5, "h": True, "l.software": "x", "W.group_list": "g", "q": "other", "m": None, "N": "n"}
    named = {f"{hooks.name.upper()}.{name}": value for name, value in custom.items()}

    options = _options(spec(queue_name="main", custom_attributes={**named, "other.x": 1}), hooks)

    assert {
        "-p": "5",
        "-h": "",
        "-l software": "x",
        "-W group_list": "g",
        "-q": "other",
        "-N": "n",
    }.items() <= options.items()
    assert "-m" not in options
    assert _problems(spec(custom_attributes=named), hooks) == []


@pytest.mark.parametrize(
    ("hooks", "name"),
    [(PBS, "pbspro"), (PBS, "openpbs"), (TORQUE, "pbs_classic")],
    ids=["pbspro", "openpbs", "pbs_classic"],
)
def test_custom_attributes_may_begin_with_any_name_of_the_executor(hooks: Hooks, name: str) -> None:
    assert _options(spec(custom_attributes={f"{name}.p": 5}), hooks)["-p"] == "5"
    assert _problems(spec(custom_attributes={f"{name}.N": "x", f"{name}.e": "x"}), hooks) != []


@pytest.mark.parametrize("name", ["l.nodes", "l.ncpus", "l.mem"])
def test_the_old_resource_options_replace_the_new_ones(name: str) -> None:
    """PBS refuses a job that requests resources in both forms."""
    options = _options(spec({"node_count": 2}, custom_attributes={f"pbs.{name}": "2"}))

    assert options[f"-{name.replace('.', ' ')}"] == "2"
    assert not {"-l select", "-l place"} & options.keys()


@pytest.mark.parametrize("name", ["l.ngpus", "l.vmem", "l.host"])
def test_chunk_resources_are_refused_beside_chunks(name: str) -> None:
    (problem,) = _problems(spec(custom_attributes={f"pbs.{name}": "2"}), PBS)

    assert "l.select" in problem
    assert _problems(spec(custom_attributes={f"torque.{name}": "2"}), TORQUE) == []


def test_resources_added_to_every_chunk() -> None:
    uneven = {"process_count": 3, "processes_per_node": 2}
    custom = {"openpbs.chunk": "host_type=fast:ib=true", "pbs.l.place": "scatter:group=rack"}

    options = _options(spec(uneven, custom_attributes=custom))

    assert options["-l select"] == (
        "1:ncpus=2:mpiprocs=2:ompthreads=1:host_type=fast:ib=true+1:ncpus=1:mpiprocs=1:host_type=fast:ib=true"
    )
    assert options["-l place"] == "scatter:group=rack"
    assert not any("chunk" in name for name in options)
    assert _problems(spec(uneven, custom_attributes=custom)) == []


@pytest.mark.parametrize("value", [None, False])
def test_no_resources_are_added_to_chunks_by_default(value: object) -> None:
    custom = {"pbs.chunk": value, "pbs.l.select": "2:ncpus=1"}

    assert _problems(spec(custom_attributes=custom)) == []
    assert _options(spec(custom_attributes=custom))["-l select"] == "2:ncpus=1"


@pytest.mark.parametrize("name", ["l.select", "l.nodes", "l.ncpus", "l.mem"])
def test_nothing_is_added_to_chunks_that_are_replaced(name: str) -> None:
    (problem,) = _problems(spec(custom_attributes={"pbs.chunk": "ib=true", f"pbs.{name}": "2"}))

    assert problem == (
        f"custom attributes pbs.chunk and pbs.{name} cannot both be set: the one adds to the chunks that "
        "jpsi requests, and the other replaces them"
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "'' is none"),
        (True, "'True' is none"),
        (["a=b"], "must be text"),
        ("fast", "'fast' is none"),
        ("a=b:", "'' is none"),
        ("a=b+2:ncpus=1", "'a=b+2' is none"),
        ("a=b,walltime=1", "'a=b,walltime=1' is none"),
        ("a='b c'", "is none that a chunk can have"),
        ("a=b\n", "is none that a chunk can have"),
        ("ib=true:ncpus=2", "cannot set ncpus: set resources.cpu_cores_per_process"),
        ("mem=4gb", "cannot set mem: set resources.memory"),
    ],
    ids=repr,
)
def test_resources_that_cannot_be_added_to_chunks(value: object, why: str) -> None:
    (problem,) = _problems(spec(custom_attributes={"pbs.chunk": value}))

    assert problem.startswith("custom attribute pbs.chunk ")
    assert why in problem


def test_torque_has_no_chunks() -> None:
    (problem,) = _problems(spec(custom_attributes={"torque.chunk": "ib=true"}), TORQUE)

    assert problem.startswith("custom attribute torque.chunk cannot be set")


@pytest.mark.parametrize(
    "name",
    [*"CIJRSVWXejklotvz", "W.block", "W.interactive", "walltime", "l.", "W.a=b", "l.a,b", "-q", "", "l.a b"],
)
@BOTH
def test_custom_attributes_that_are_refused(hooks: Hooks, name: str) -> None:
    problems = _problems(spec(custom_attributes={f"{hooks.name}.{name}": "1"}), hooks)

    assert len(problems) == 1
    assert f"{hooks.name}.{name}" in problems[0]


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        (None, "jpsi"),
        ("", "jpsi"),
        ("a.b-c_d+1", "a.b-c_d+1"),
        ("my job", "my_job"),
        ("1digit", "1digit"),
        ("-dash", "_dash"),
        (".dot", "_dot"),
        ("日本", "__"),
        ("a" * 300, "a" * 230),
        ("a\nb", "a_b"),
    ],
)
def test_names_are_made_legal(name: str | None, legal: str) -> None:
    assert legal_name(name) == legal
    assert _options(spec(name=name))["-N"] == legal


@given(hostile_text())
def test_the_original_of_a_changed_name_is_retained(name: str) -> None:
    variables = dict(part.split("=") for part in _options(spec(name=name))["-v"].split(","))

    assert variables.pop("JPSI_TAG") == CONTEXT.tag
    if name and legal_name(name) != name and len(name) < 50:
        assert unquote(variables["JPSI_NAME"]) == name.encode(errors="replace").decode()
    else:
        assert len(variables) <= 1


@given(hostile_text(), hostile_text())
def test_user_values_arrive_unchanged_or_are_refused(queue: str, project: str) -> None:
    requested = spec(queue_name=queue, project_name=project)
    if _problems(requested):
        return

    assert (_options(requested)["-q"], _options(requested)["-A"]) == (queue, project)


@given(
    st.dictionaries(
        st.text(max_size=12), st.none() | st.booleans() | st.integers() | hostile_text(), max_size=3
    )
)
def test_custom_attributes_never_become_another_line(custom: dict[str, Any]) -> None:
    requested = spec(custom_attributes={f"pbs.{name}": value for name, value in custom.items()})
    if _problems(requested):
        return

    assert all(len(line.splitlines()) == 1 and line.startswith("#PBS -") for line in _lines(requested))


@given(specs(heterogeneous=True))
@BOTH
def test_every_valid_spec_is_rendered_or_refused_in_full(hooks: Hooks, spec: JobSpec) -> None:
    problems = _problems(spec, hooks)

    assert all(problems)
    if not problems:
        assert all(line.startswith("#PBS -") for line in _lines(spec, hooks))


@pytest.mark.parametrize("value", [10**5000, "\ud83d", "a\nb"], ids=["digits", "surrogate", "line break"])
def test_a_value_that_no_text_or_line_can_hold_is_refused(value: object) -> None:
    assert len(_problems(spec(custom_attributes={"pbs.A": value}))) == 1


def test_a_directive_that_is_built_from_the_tag_is_whole() -> None:
    tag = "jpsi-" + "a" * 55

    assert _options(spec(), PBS, attrs.evolve(CONTEXT, tag=tag))["-v"] == f"JPSI_TAG={tag}"
