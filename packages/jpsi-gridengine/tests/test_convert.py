"""Conversion of scripts that were written for the qsub of Grid Engine."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gridengine_support import SITE, site
from jpsi.plugin import Dependency, DependencyKind, ForeignScript, ResourceSpecV1
from jpsi_gridengine import hooks

_GIB = 1 << 30


def _read(*directives: str, **config: Any) -> ForeignScript:
    lines = ["#!/bin/bash", *(f"#$ {it}" for it in directives), "mpirun ./a"]
    return hooks.read_script("\n".join(lines), site(**config))


def _custom(script: ForeignScript) -> dict[str, Any] | None:
    assert script.spec.attributes is not None
    return script.spec.attributes.custom_attributes


def test_a_whole_script() -> None:
    script = _read(
        "-N sim -q all.q -P proj1 -ar 7",
        "-cwd -S /bin/bash -V",
        "-o out.txt -e host:err.txt",
        "-l h_rt=36:00:00",
        "-m bea -M me@example.org -r y",
    )

    assert script.directives == 5
    why = "Grid Engine appends to the file, and jpsi's script empties it first"
    assert script.lost == (f"-o out.txt: {why}", f"-e host:err.txt: {why}")
    spec = script.spec
    assert (spec.name, spec.executable, spec.directory) == ("sim", "/bin/bash", Path())
    assert (spec.stdout_path, spec.stderr_path) == (Path("out.txt"), Path("err.txt"))
    assert spec.attributes is not None
    assert (spec.attributes.queue_name, spec.attributes.project_name) == ("all.q", "proj1")
    assert spec.attributes.reservation_id == "7"
    assert spec.attributes.duration == timedelta(hours=36)
    assert spec.attributes.mail == "begin,end:me@example.org"
    assert _custom(script) == {"gridengine.r": "y"}


@pytest.mark.parametrize("directives", ["-e /dev/null", "-o /dev/null -e err.txt -j y"])
def test_a_file_of_errors_that_is_not_written_is_not_lost(directives: str) -> None:
    assert _read(directives).lost == ()


def test_the_kind_of_gpus() -> None:
    script = _read("-l gpu=2,gpu_model=a100", gpu_resource="gpu", gpu_type_resource="gpu_model")

    assert (script.spec.attributes.gpu_type, _custom(script)) == ("a100", None)


def test_without_a_directory_a_job_runs_in_the_home_directory() -> None:
    assert str(_read("-N a").spec.directory) == "~"
    assert _read("-wd /scratch").spec.directory == Path("/scratch")


@pytest.mark.parametrize(
    ("directives", "config", "expected"),
    [
        ("-l mem_free=2G", {}, {"memory": 2 * _GIB}),
        ("-l mem_free=2g", {}, {"memory": 2 * 10**9}),
        (
            "-pe mpi 8 -l mem_free=1G",
            {"parallel_environment": "mpi"},
            {"process_count": 8, "memory": 8 * _GIB},
        ),
        (
            "-pe smp 4 -l mem_free=1G",
            {"node_environment": "smp"},
            {"cpu_cores_per_process": 4, "memory": 4 * _GIB},
        ),
        (
            "-pe mpi-4 8",
            {"parallel_environment": "mpi-{slots}"},
            {"node_count": 2, "processes_per_node": 4},
        ),
        (
            "-l gpu=2,exclusive",
            {"gpu_resource": "gpu"},
            {"gpu_cores_per_process": 2, "exclusive_node_use": True},
        ),
        ("-l exclusive=true", {}, {"exclusive_node_use": True}),
        ("-l h_vmem=1G", {"memory_resource": "mem_free,h_vmem"}, {"memory": _GIB}),
    ],
)
def test_resources(directives: str, config: dict[str, Any], expected: dict[str, Any]) -> None:
    script = _read(directives, **config)

    assert (script.lost, _custom(script)) == ((), None)
    assert script.spec.resources == ResourceSpecV1.uneven(**expected)


@pytest.mark.parametrize(
    ("directives", "custom"),
    [
        ("-l h_vmem=4G,arch=lx-amd64 -l h_rt=60", {"gridengine.l": "h_vmem=4G,arch=lx-amd64"}),
        ("-hold_jid first", {"gridengine.hold_jid": "first"}),
        ("-p -100", {"gridengine.p": "-100"}),
        ("-notify -js 3", {"gridengine.notify": True, "gridengine.js": "3"}),
    ],
)
def test_options_that_jpsi_cannot_express_become_custom_attributes(directives: str, custom: object) -> None:
    script = _read(directives)

    assert (script.lost, _custom(script)) == ((), custom)


def test_an_environment_that_is_not_configured_is_named() -> None:
    script = _read("-pe orte 8")

    assert (script.lost, _custom(script)) == ((), {"gridengine.pe": "orte 8"})
    assert script.spec.resources == ResourceSpecV1(process_count=8)


@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ("-o out.$JOB_ID", "-o out.$JOB_ID: jpsi has no patterns in paths"),
        ("-pe mpi 4-8", "-pe mpi 4-8: a job of jpsi has one number of slots"),
        ("-sync y", "-sync y: qsub would not return"),
        ("-j y", "-j y: without -o, jpsi keeps output and errors in a file each"),
        ("-soft", "-soft: jpsi turns the soft requests after it into hard ones"),
    ],
)
def test_lost_options_are_reported(directive: str, why: str) -> None:
    (lost,) = _read(directive).lost

    assert lost.startswith(why)


@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ("-notfy", "'-notfy' is no option; did you mean -notify?"),
        ("-hold_jd 7", "'-hold_jd' is no option; did you mean -hold_jid?"),
        ("-bindng linear:4", "'-bindng' is no option; did you mean -binding?"),
        ("-when now", "'-when' is no option"),
        ("-sh", "'-sh' is no option"),
        ("-Nsim", "'-Nsim' is no option"),
    ],
)
def test_a_word_that_is_no_option_of_qsub_is_named(directive: str, why: str) -> None:
    script = _read(directive)

    assert script.lost == (f"the directive {directive!r} was read only in part: {why}",)
    assert _custom(script) is None


def test_joined_streams_are_one_file() -> None:
    spec = _read("-j y", "-o all.txt").spec

    assert (spec.stdout_path, spec.stderr_path) == (Path("all.txt"), Path("all.txt"))


def test_no_file_loses_nothing() -> None:
    assert _read("-o /dev/null").lost == ()


def test_dependencies_and_variables() -> None:
    script = _read("-hold_jid 1,2 -hold_jid 3 -v A=1,B -v C=${D}")

    assert script.lost == ()
    assert script.spec.attributes is not None
    assert script.spec.attributes.after == [Dependency(it, DependencyKind.ANY) for it in "123"]
    assert script.spec.environment == {"A": "1", "C": "$${D}"}


def test_directives_after_commands_count_too() -> None:
    assert hooks.read_script("#!/bin/sh\ntrue\n#$ -N a\n#$-cwd\n", SITE).directives == 2


def test_an_array_is_retained() -> None:
    script = _read("-t 1-9:2 -tc 3")

    assert script.lost == ()
    assert script.spec.attributes.custom_attributes == {"jpsi.array": "1-9:2%3"}
    assert script.spec.environment == {
        "SGE_TASK_ID": "${JPSI_ARRAY_INDEX}",
        "SGE_TASK_FIRST": "${JPSI_ARRAY_MIN}",
        "SGE_TASK_LAST": "${JPSI_ARRAY_MAX}",
        "SGE_TASK_STEPSIZE": "${JPSI_ARRAY_STEP}",
    }


def test_the_directory_of_the_submission_is_read_from_a_variable() -> None:
    script = hooks.read_script('#$ -N a\ncd "${SGE_O_WORKDIR}"; run $JOB_ID $NSLOTS\n', SITE)

    assert script.directory_variables == ("SGE_O_WORKDIR",)
    assert script.lost == ("the script reads variables that no other batch system sets: JOB_ID, NSLOTS",)
