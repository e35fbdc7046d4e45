"""Conversion of scripts that were written for bsub."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from jpsi.plugin import (
    Dependency,
    DependencyKind,
    ForeignScript,
    HeterogeneousResources,
    JobSpec,
    ResourceSpecV1,
)
from jpsi_lsf import hooks
from jpsi_testing import heterogeneous_resources
from lsf_support import CONTEXT, SITE, site

_GIB = 1 << 30
_GPUS = {"process_count": 1, "gpu_cores_per_process": 2}
_READER = "1*{span[hosts=1] rusage[mem=4GB] affinity[core(2)]}"
_TWO = {"process_count": 2, "node_count": 1}


def _read(*directives: str, **config: Any) -> ForeignScript:
    lines = ["#!/bin/bash", *(f"#BSUB {it}" for it in directives), "mpirun ./a"]
    return hooks.read_script("\n".join(lines), site(**config))


def _custom(script: ForeignScript) -> dict[str, Any] | None:
    assert script.spec.attributes is not None
    return script.spec.attributes.custom_attributes


def test_a_whole_script() -> None:
    script = _read(
        "-J sim -q normal",
        "-P proj1 -U r1 -W 36:30",
        "-cwd run -i in.txt -oo out.txt -eo err.txt",
        "-app big -sla gold -r -B -Ne -u me@example.org",
    )

    assert (script.directives, script.lost) == (4, ())
    spec = script.spec
    assert (spec.name, spec.directory) == ("sim", Path("run"))
    assert [spec.stdin_path, spec.stdout_path, spec.stderr_path] == [
        Path(name) for name in ("in.txt", "out.txt", "err.txt")
    ]
    assert spec.attributes is not None
    assert (spec.attributes.queue_name, spec.attributes.project_name) == ("normal", "proj1")
    assert spec.attributes.reservation_id == "r1"
    assert spec.attributes.duration == timedelta(hours=36, minutes=30)
    assert (spec.attributes.qos, spec.attributes.mail) == ("gold", "begin,fail:me@example.org")
    assert _custom(script) == {"lsf.app": "big", "lsf.r": True}


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        ("-n 8", {"process_count": 8}),
        ("-n8 -x", {"process_count": 8, "exclusive_node_use": True}),
        ('-n 8 -R "span[ptile=4]"', {"process_count": 8, "processes_per_node": 4}),
        (
            '-n 8 -R "rusage[mem=2GB] span[hosts=1]"',
            {"process_count": 8, "node_count": 1, "memory": 2 * _GIB},
        ),
        ('-R "rusage[mem=1024MB]"', {"memory": _GIB}),
        (
            '-n 5 -R "span[ptile=3] rusage[mem=3GB/host]"',
            {"memory": 5 * _GIB, "process_count": 5, "processes_per_node": 3},
        ),
        ('-n 4 -R "rusage[mem=1GB/task]"', {"process_count": 4, "memory": 4 * _GIB}),
        ('-n 2 -R "affinity[core(4)]"', {"process_count": 2, "cpu_cores_per_process": 4}),
        ("-gpu num=2", {"gpu_cores_per_process": 2}),
        ('-n 2 -R "rusage[ngpus_physical=1/task]"', {"process_count": 2, "gpu_cores_per_process": 1}),
        ('-n 4 -gpu "num=1/task"', {"process_count": 4, "gpu_cores_per_process": 1}),
        (
            '-n 4 -gpu num=4 -R "span[hosts=1]"',
            {"process_count": 4, "node_count": 1, "gpu_cores_per_process": 1},
        ),
    ],
)
def test_resources(directives: str, expected: dict[str, Any]) -> None:
    script = _read(directives)

    assert (script.lost, _custom(script)) == ((), None)
    assert script.spec.resources == ResourceSpecV1.uneven(**expected)


@pytest.mark.parametrize(
    ("directives", "kinds"),
    [
        (
            f'-n 9 -R "{_READER} + 8*{{span[ptile=4] rusage[mem=1GB/host, ngpus_physical=4]}}" -M 6GB -x',
            [
                {"process_count": 1, "node_count": 1, "cpu_cores_per_process": 2, "memory": 4 * _GIB},
                {
                    "process_count": 8,
                    "processes_per_node": 4,
                    "memory": 2 * _GIB,
                    "gpu_cores_per_process": 1,
                },
            ],
        ),
        ('-n 3 -R "1*{rusage[ngpus_physical=2/task]} + {span[hosts=1]}"', [_GPUS, _TWO]),
        ('-R "1*{rusage[ngpus_physical=2]}+2*{span[hosts=1]}"', [_GPUS, _TWO]),
    ],
)
def test_compound_requirements(directives: str, kinds: list[dict[str, Any]]) -> None:
    script = _read(directives)

    alone = {"exclusive_node_use": directives.endswith("-x")}
    assert (script.lost, _custom(script)) == ((), None)
    assert script.spec.resources == HeterogeneousResources(
        [ResourceSpecV1.uneven(**it, **alone) for it in kinds]
    )


def test_requirements_of_every_term_are_retained() -> None:
    script = _read('-R "1*{select[fast] span[hosts=1]} + 2*{select[fast] span[ptile=1]}"')

    assert (script.lost, _custom(script)) == ((), {"lsf.R": "select[fast]"})
    assert isinstance(script.spec.resources, HeterogeneousResources)


@pytest.mark.parametrize(
    ("directives", "why"),
    [
        ('-R "1*{} + 2*{}"', "jpsi has the slots of a term on one node if it has no span"),
        ('-R "1*{span[hosts=1]} + 1*{span[hosts=1]}" -gpu num=1', "-gpu num=1: it is for slots of one kind"),
    ],
)
def test_lost_parts_of_compound_requirements(directives: str, why: str) -> None:
    (lost,) = _read(directives).lost

    assert why in lost


@given(heterogeneous_resources())
def test_slots_of_several_kinds_are_read_as_jpsi_renders_them(resources: HeterogeneousResources) -> None:
    requested = JobSpec("/bin/true", resources=resources)
    if hooks.check_spec(requested, SITE):
        return
    text = hooks.render_script(requested, CONTEXT).text
    found = hooks.read_script(text, SITE)

    assert found.lost == ()
    again = hooks.render_script(JobSpec("/bin/true", resources=found.spec.resources), CONTEXT).text
    assert re.findall("-[nR] .*", again) == re.findall("-[nR] .*", text)


@pytest.mark.parametrize(
    ("directives", "custom"),
    [
        ("-n 4,8", {"lsf.n": "4,8"}),
        ("-M 4GB", {"lsf.M": "4GB"}),
        ('-R "rusage[mem=1GB]" -M 2GB', {"lsf.M": "2GB"}),
        ('-R "rusage[mem=4000]"', {"lsf.R": "rusage[mem=4000]"}),
        ('-n 8 -R "rusage[mem=1GB]"', {"lsf.R": "rusage[mem=1GB]"}),
        ('-R "select[type==any] span[ptile=2]" -R "order[ut]"', {"lsf.R": "select[type==any] order[ut]"}),
        ("-R 1*{span[hosts=1]}", {"lsf.R": "1*{span[hosts=1]}"}),
        ("-R '1*{span[hosts=1]} + 1*{order[ut]}'", {"lsf.R": "1*{span[hosts=1]} + 1*{order[ut]}"}),
        ("-R '{span[hosts=1]} + 1*{}'", {"lsf.R": "{span[hosts=1]} + 1*{}"}),
        ("-R '{span[hosts=1]} || {order[ut]}'", {"lsf.R": "{span[hosts=1]} || {order[ut]}"}),
        ("-n 4 -R '1*{span[hosts=1]}+2*{span[ptile=1]}'", {"lsf.R": "1*{span[hosts=1]}+2*{span[ptile=1]}"}),
        ("-R '1*{span[hosts=1]}+0*{}'", {"lsf.R": "1*{span[hosts=1]}+0*{}"}),
        ("-R '1*{span[hosts=1]}+1*{span[hosts=1]}' -M 2GB", {"lsf.M": "2GB"}),
        ('-R "rusage[mem=1GB,license=1]"', {"lsf.R": "rusage[mem=1GB,license=1]"}),
        ("-W 10:00/host1", {"lsf.W": "10:00/host1"}),
        ("-w 'done(1) || done(2)'", {"lsf.w": "done(1) || done(2)"}),
        ("-gpu num=2:mode=shared", {"lsf.gpu": "num=2:mode=shared"}),
        ("-ln_slots 4 -ln_mem 8GB", {"lsf.ln_slots": "4", "lsf.ln_mem": "8GB"}),
        ("-csm y -cn_mem 8GB", {"lsf.csm": "y", "lsf.cn_mem": "8GB"}),
        ("-core_isolation 2 -cn_cu a", {"lsf.core_isolation": "2", "lsf.cn_cu": "a"}),
        ("-alloc_flags smt4 -smt 4", {"lsf.alloc_flags": "smt4", "lsf.smt": "4"}),
        ("-jsm n -step_cgroup n", {"lsf.jsm": "n", "lsf.step_cgroup": "n"}),
        ("-stage storage=5", {"lsf.stage": "storage=5"}),
        ("-eptl 30 -ptl 60", {"lsf.eptl": "30", "lsf.ptl": "60"}),
        ("-ext a -extsched b", {"lsf.ext": "a", "lsf.extsched": "b"}),
        ("-datachk -jobaff same(x)", {"lsf.datachk": True, "lsf.jobaff": "same(x)"}),
        ("-rnc /bin/notify", {"lsf.rnc": "/bin/notify"}),
    ],
)
def test_options_that_jpsi_cannot_express_become_custom_attributes(directives: str, custom: object) -> None:
    script = _read(directives)

    assert (script.lost, _custom(script)) == ((), custom)


def test_memory_without_a_unit_is_in_that_of_the_site() -> None:
    assert _read('-R "rusage[mem=2]"', memory_unit="GB").spec.resources == ResourceSpecV1(memory=2 * _GIB)


@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ("-o out.%J", "-o out.%J: jpsi has no patterns in paths"),
        ("-o out.txt", "-o out.txt: LSF appends to the file, and jpsi's script empties it first"),
        (
            "-e err.txt",
            "-e err.txt: LSF appends to the file, and jpsi's script empties it first, as with -eo",
        ),
        ("-K", "-K: bsub would not return"),
        ("-u me@example.org", "-u me@example.org: jpsi cannot express the events"),
        ("-u 'a  b'", "-u a  b: jpsi cannot express the events"),
        ("-N", "-N: jpsi sends mail to an address, and -u names none"),
        ("-env A=1", "-env A=1: the job has the whole environment"),
        ("-Y", "the directive '-Y' was read only in part: '-Y' is no option"),
        (
            "-hostfil f",
            (
                "the directive '-hostfil f' was read only in part: '-hostfil' is no option; "
                "did you mean -hostfile?"
            ),
        ),
    ],
)
def test_lost_options_are_reported(directive: str, why: str) -> None:
    (lost,) = _read(directive).lost

    assert lost.startswith(why)


@pytest.mark.parametrize("directive", ["-e /dev/null", "-eo err.txt"])
def test_a_file_that_lsf_empties_or_that_has_no_content_is_not_lost(directive: str) -> None:
    assert _read(directive).lost == ()


def test_an_array_is_retained() -> None:
    script = _read("-J 'a[1-9]%2'")

    assert (script.lost, script.spec.name) == ((), "a")
    assert script.spec.attributes.custom_attributes == {"jpsi.array": "1-9%2"}
    assert script.spec.environment == {
        "LSB_JOBINDEX": "${JPSI_ARRAY_INDEX}",
        "LSB_JOBINDEX_END": "${JPSI_ARRAY_MAX}",
        "LSB_JOBINDEX_STEP": "${JPSI_ARRAY_STEP}",
    }


def test_without_an_error_file_both_streams_go_to_the_output_file() -> None:
    assert _read("-o out.txt").spec.stderr_path == Path("out.txt")


def test_a_file_that_lsf_empties_as_well_loses_nothing() -> None:
    assert _read("-oo out.txt").lost == _read("-o /dev/null").lost == ()


def test_conditions_and_variables() -> None:
    script = _read("-w 'done(1) && ended(2)' -ti -env 'all, A=1, B=${C}'")

    assert script.lost == ()
    assert script.spec.attributes is not None
    assert script.spec.attributes.after == [Dependency("1"), Dependency("2", DependencyKind.ANY)]
    assert script.spec.environment == {"A": "1", "B": "$${C}"}


def test_directives_after_commands_count_too() -> None:
    assert hooks.read_script("#!/bin/sh\ntrue\n#BSUB -J a\n", SITE).spec.name == "a"


def test_the_directory_of_the_submission_is_read_from_a_variable() -> None:
    script = hooks.read_script('#BSUB -n 1\ncd "${LS_SUBCWD}"; run $LSB_JOBID\n', SITE)

    assert script.directory_variables == ("LS_SUBCWD",)
    assert script.lost == ("the script reads variables that no other batch system sets: LSB_JOBID",)
