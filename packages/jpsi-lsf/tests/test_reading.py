"""Scripts that were written for bsub."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jpsi.plugin import Dependency, DependencyKind, ForeignScript, ResourceSpecV1
from jpsi_lsf import hooks
from lsf_support import SITE, site

_GIB = 1 << 30


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
        "-app big -sla gold -r",
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
    assert _custom(script) == {"lsf.app": "big", "lsf.sla": "gold", "lsf.r": True}


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
        ('-n 4 -R "rusage[mem=1GB/task]"', {"process_count": 4, "memory": 4 * _GIB}),
        ('-n 2 -R "affinity[core(4)]"', {"process_count": 2, "cpu_cores_per_process": 4}),
        ("-gpu num=2", {"gpu_cores_per_process": 2}),
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
    assert script.spec.resources == ResourceSpecV1(**expected)


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
        ("-W 10:00/host1", {"lsf.W": "10:00/host1"}),
        ("-w 'done(1) || done(2)'", {"lsf.w": "done(1) || done(2)"}),
        ("-gpu num=2:mode=shared", {"lsf.gpu": "num=2:mode=shared"}),
    ],
)
def test_what_jpsi_has_no_word_for_is_said_to_lsf_as_it_was(directives: str, custom: object) -> None:
    script = _read(directives)

    assert (script.lost, _custom(script)) == ((), custom)


def test_memory_without_a_unit_is_in_that_of_the_site() -> None:
    assert _read('-R "rusage[mem=2]"', memory_unit="GB").spec.resources == ResourceSpecV1(memory=2 * _GIB)


@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ("-o out.%J", "-o out.%J: a path of jpsi has no patterns"),
        ("-J 'a[1-9]%2'", "-J a[1-9]%2: an array is several jobs"),
        ("-K", "-K: bsub would not return"),
        ("-u me@example.org", "-u me@example.org: it is for mail"),
        ("-env A=1", "-env A=1: the job has the whole environment"),
        ("-Y", "the directive '-Y' is not read to its end: '-Y' is no option"),
    ],
)
def test_what_is_lost_is_told(directive: str, why: str) -> None:
    (lost,) = _read(directive).lost

    assert lost.startswith(why)


def test_the_name_of_an_array_is_kept() -> None:
    assert _read("-J 'a[1-9]%2'").spec.name == "a"


def test_without_a_file_for_errors_both_streams_go_to_that_of_the_output() -> None:
    assert _read("-o out.txt").spec.stderr_path == Path("out.txt")


def test_conditions_and_variables() -> None:
    script = _read("-w 'done(1) && ended(2)' -ti -env 'all, A=1, B=${C}'")

    assert script.lost == ()
    assert script.spec.attributes is not None
    assert script.spec.attributes.after == [Dependency("1"), Dependency("2", DependencyKind.ANY)]
    assert script.spec.environment == {"A": "1", "B": "$${C}"}


def test_directives_count_behind_commands_too() -> None:
    assert hooks.read_script("#!/bin/sh\ntrue\n#BSUB -J a\n", SITE).spec.name == "a"
