"""Conversion of scripts that were written for sbatch."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from jpsi.plugin import (
    Dependency,
    DependencyKind,
    ForeignScript,
    JobSpec,
    ResourceSpecV1,
    node_count,
    resources,
)
from jpsi_slurm import hooks
from jpsi_slurm.custom_options import parse_time
from jpsi_testing import specs
from slurm_support import CONTEXT

_GIB = 1 << 30


def _read(*directives: str) -> ForeignScript:
    return hooks.read_script("\n".join(["#!/bin/bash", *(f"#SBATCH {it}" for it in directives), "srun ./a"]))


def _resources(*directives: str) -> ResourceSpecV1:
    script = _read(*directives)
    assert script.lost == ()
    assert isinstance(script.spec.resources, ResourceSpecV1)
    return script.spec.resources


def _custom(*directives: str) -> dict[str, Any] | None:
    script = _read(*directives)
    assert script.lost == ()
    assert script.spec.attributes is not None
    return script.spec.attributes.custom_attributes


def test_a_whole_script() -> None:
    script = _read(
        "-J sim --partition=main -A proj1",
        "--reservation r1 -t 1-12:00 -D run",
        "-i in.txt -o out.txt -e err.txt",
        "--qos=high --mail-type=BEGIN,END,FAIL --mail-user=me@example.org --requeue",
    )

    assert (script.directives, script.lost) == (4, ())
    spec = script.spec
    assert spec.name == "sim"
    assert spec.attributes is not None
    attributes = spec.attributes
    assert (attributes.queue_name, attributes.project_name, attributes.reservation_id) == (
        "main",
        "proj1",
        "r1",
    )
    assert spec.attributes.duration == timedelta(hours=36)
    assert [spec.directory, spec.stdin_path, spec.stdout_path, spec.stderr_path] == [
        Path(name) for name in ("run", "in.txt", "out.txt", "err.txt")
    ]
    assert (spec.attributes.qos, spec.attributes.mail) == ("high", "begin,end,fail:me@example.org")
    assert spec.attributes.custom_attributes == {"slurm.requeue": True}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("1:30", 90),
        ("1:30:05", 5405),
        ("2-3", 183_600),
        ("2-3:4", 183_840),
        ("2-3:4:5", 183_845),
        ("0", 0),
        ("unlimited", 0),
        ("INFINITE", 0),
    ],
)
def test_times(text: str, seconds: int) -> None:
    assert parse_time(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "1h", "1:2:3:4", "-1", "1-", "a"])
def test_an_invalid_time_stays_unchanged(text: str) -> None:
    """Slurm then reports the error itself."""
    assert _custom(f"--time={text}") == {"slurm.time": text}


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        ("-N2 -n8 -c 4", {"node_count": 2, "process_count": 8, "cpu_cores_per_process": 4}),
        ("-N 2 --ntasks-per-node=4", {"node_count": 2, "processes_per_node": 4}),
        ("-N 2 --tasks-per-node=4", {"node_count": 2, "processes_per_node": 4}),
        ("--exclusive", {"exclusive_node_use": True}),
        ("--mem=4G", {"memory": 4 * _GIB}),
        ("--mem=1024", {"memory": _GIB}),
        (
            "--mem=3G -n5 -N2 --ntasks-per-node=3",
            {"memory": 5 * _GIB, "process_count": 5, "node_count": 2, "processes_per_node": 3},
        ),
        ("--mem=1g -N 3", {"memory": 3 * _GIB, "node_count": 3}),
        ("--mem-per-cpu=1G -n4 -c2", {"memory": 8 * _GIB, "process_count": 4, "cpu_cores_per_process": 2}),
        ("--gpus-per-task=2 -n2", {"gpu_cores_per_process": 2, "process_count": 2}),
        ("--gres=gpu:4", {"gpu_cores_per_process": 4}),
        ("--gres=gpu", {"gpu_cores_per_process": 1}),
        ("-G 8 -n4", {"gpu_cores_per_process": 2, "process_count": 4}),
        (
            "--gpus-per-node=4 -N2 --ntasks-per-node=2",
            {"gpu_cores_per_process": 2, "node_count": 2, "processes_per_node": 2},
        ),
    ],
)
def test_resources(directives: str, expected: dict[str, Any]) -> None:
    assert _resources(directives) == ResourceSpecV1.uneven(**expected)


@pytest.mark.parametrize(
    ("directives", "custom"),
    [
        ("-N 2-4", {"slurm.nodes": "2-4"}),
        ("--mem=0", {"slurm.mem": "0"}),
        ("--mem=4G -n8", {"slurm.mem": "4G"}),
        ("--gres=gpu:a100:2,gpu:h100:1", {"slurm.gres": "gpu:a100:2,gpu:h100:1"}),
        ("--gres=shard:2", {"slurm.gres": "shard:2"}),
        ("--gres=gpu:1 -n8", {"slurm.gres": "gpu:1"}),
        ("-G 3 -n2", {"slurm.gpus": "3"}),
        ("--exclusive=user", {"slurm.exclusive": "user"}),
        ("-N2 -n3 --ntasks-per-node=3", {"slurm.ntasks-per-node": "3"}),
        ("-d singleton", {"slurm.dependency": "singleton"}),
        ("-d afterok:1?afterok:2", {"slurm.dependency": "afterok:1?afterok:2"}),
        ("--mail-type=END,FAIL --hold", {"slurm.mail-type": "END,FAIL", "slurm.hold": True}),
    ],
)
def test_options_that_jpsi_cannot_express_become_custom_attributes(directives: str, custom: object) -> None:
    assert _custom(directives) == custom


@pytest.mark.parametrize(
    ("directive", "custom", "lost"),
    [
        ("--ntaks=4", {"slurm.ntaks": "4"}, "--ntaks 4: {}; did you mean --ntasks?"),
        (
            "--cpu-per-task 8",
            {"slurm.cpu-per-task": "8"},
            "--cpu-per-task 8: {}; did you mean --cpus-per-task?",
        ),
        ("--tiem=5", {"slurm.tiem": "5"}, "--tiem 5: {}; did you mean --time?"),
        ("--cpu-bind=none", {"slurm.cpu-bind": "none"}, "--cpu-bind none: {}"),
        ("--bank-card=a", {"slurm.bank-card": "a"}, "--bank-card a: {}"),
        ("--signal=USR1@60 --gpu-bind=none", {"slurm.signal": "USR1@60", "slurm.gpu-bind": "none"}, ""),
        ("--contig", {"slurm.contiguous": True}, ""),
        ("--stepmgr --external", {"slurm.stepmgr": True, "slurm.external": True}, ""),
        ("--oom-kill-step=1 --context c", {"slurm.oom-kill-step": "1", "slurm.context": "c"}, ""),
        (
            "--checkpoint=5 --checkpoint-dir=d",
            {"slurm.checkpoint": "5", "slurm.checkpoint-dir": "d"},
            "",
        ),
        ("--jobid=7 --ntasks-per-tres=2", {"slurm.jobid": "7", "slurm.ntasks-per-tres": "2"}, ""),
        ("--share", {"slurm.oversubscribe": True}, ""),
    ],
)
def test_an_unknown_option_is_named(directive: str, custom: dict[str, Any], lost: str) -> None:
    script = _read(directive)

    unknown = "jpsi knows no such option, and leaves it to the batch system as it is"
    assert script.lost == ((lost.format(unknown),) if lost else ())
    assert script.spec.attributes is not None
    assert script.spec.attributes.custom_attributes == custom


@pytest.mark.parametrize("directive", ["--workdir=run", "--workdir run", "--work=run"])
def test_the_old_name_of_the_directory(directive: str) -> None:
    script = _read(directive)

    assert (script.spec.directory, script.lost) == (Path("run"), ())


@pytest.mark.parametrize("directive", ["--gres=gpu:a100:2", "--gpus-per-task=a100:2", "-G a100:2"])
def test_the_kind_of_gpus(directive: str) -> None:
    script = _read(directive)

    assert resources(script.spec).gpu_cores_per_process == 2
    assert script.spec.attributes.gpu_type == "a100"


def test_mail_without_an_address_or_of_other_events_remains() -> None:
    assert _custom("--mail-type=ARRAY_TASKS --mail-user=a") == {
        "slurm.mail-type": "ARRAY_TASKS",
        "slurm.mail-user": "a",
    }


def test_dependencies() -> None:
    attributes = _read("-d afterok:1:2,afternotok:3").spec.attributes

    assert attributes is not None
    assert attributes.after == [
        Dependency("1"),
        Dependency("2"),
        Dependency("3", DependencyKind.NOTOK),
    ]


def test_without_an_error_file_both_streams_go_to_the_output_file() -> None:
    assert _read("-o out.txt").spec.stderr_path == Path("out.txt")


@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ("-o slurm-%j.out", "--output slurm-%j.out: jpsi has no patterns in paths"),
        ("--export=NONE", "--export NONE: the job has the whole environment"),
        ("--wait", "--wait: sbatch would not return"),
        ("--open-mode=append", "--open-mode append: jpsi's script opens the files of a job"),
        ("hetjob", "the directive 'hetjob' was read only in part: the parts of a heterogeneous job"),
    ],
)
def test_lost_options_are_reported(directive: str, why: str) -> None:
    (lost,) = _read(directive).lost

    assert lost.startswith(why)


def test_variables_are_set_in_the_job() -> None:
    script = _read("--export=ALL,A=1,B=${C},D")

    assert (script.spec.environment, script.lost) == ({"A": "1", "B": "$${C}"}, ())


@pytest.mark.parametrize("text", ["#SBATCHX -n2", "# SBATCH -n2", "##SBATCH -n2", "true\n#SBATCH -n2"])
def test_lines_that_sbatch_ignores_are_no_directives(text: str) -> None:
    assert hooks.read_script(f"#!/bin/sh\n{text}\n").directives == 0


@given(specs())
def test_the_resources_that_jpsi_renders_are_read_again(spec: JobSpec) -> None:
    plain = JobSpec("x", resources=spec.resources)
    rendered = resources(plain)

    script = hooks.read_script(hooks.render_script(plain, CONTEXT).text)

    assert script.lost == ()
    read = resources(script.spec)
    assert read.computed_process_count == rendered.computed_process_count
    assert read.cpu_cores_per_process == rendered.cpu_cores_per_process
    assert (read.gpu_cores_per_process or 0) == (rendered.gpu_cores_per_process or 0)
    assert node_count(read) == node_count(rendered)
    assert read.exclusive_node_use == rendered.exclusive_node_use
    assert (read.memory is None) == (rendered.memory is None)
    assert (read.memory or 0) >= (rendered.memory or 0)


def test_the_index_in_the_paths_of_an_array_is_retained() -> None:
    script = _read("--array=0-9 --output=out-%a.txt --input=in.%a")

    assert script.lost == ()
    assert [script.spec.stdin_path, script.spec.stdout_path, script.spec.stderr_path] == [
        Path(name) for name in ("in.%a", "out-%a.txt", "out-%a.txt")
    ]


@pytest.mark.parametrize("directives", ["--output=out-%a.txt", "--array=1-2 --chdir=run-%a"])
def test_an_index_that_jpsi_would_not_replace_is_lost(directives: str) -> None:
    (lost,) = _read(directives).lost

    assert "jpsi has no patterns in paths" in lost


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        (
            "out-%A_%a.txt",
            ": out-%a.txt is such a path, for --stdout or --stderr of jpsi submit",
        ),
        (
            "logs/%x.%j.%5a.%a",
            ": logs/%a is such a path, for --stdout or --stderr of jpsi submit",
        ),
        ("out-%A.txt", ""),
    ],
)
def test_other_patterns_in_the_paths_of_an_array_are_lost(path: str, rest: str) -> None:
    script = _read(f"--array=0-9 --error={path}")

    beginning = f"--error {path}: a path of jpsi has no pattern but %a, the index of a job of an array"
    assert script.lost == (f"{beginning}{rest}; without one the output is kept in the job's own folder",)
    assert script.spec.stderr_path is None


def test_an_array_is_retained() -> None:
    script = _read("--array=0-9:3%2")

    assert script.lost == ()
    assert script.spec.attributes.custom_attributes == {"jpsi.array": "0-9:3%2"}
    assert script.spec.environment == {
        "SLURM_ARRAY_TASK_ID": "${JPSI_ARRAY_INDEX}",
        "SLURM_ARRAY_TASK_COUNT": "${JPSI_ARRAY_COUNT}",
        "SLURM_ARRAY_TASK_MIN": "${JPSI_ARRAY_MIN}",
        "SLURM_ARRAY_TASK_MAX": "${JPSI_ARRAY_MAX}",
        "SLURM_ARRAY_TASK_STEP": "${JPSI_ARRAY_STEP}",
    }


def test_the_directory_of_the_submission_is_read_from_a_variable() -> None:
    script = hooks.read_script('#SBATCH -n 1\ncd "${SLURM_SUBMIT_DIR}"; run $SLURM_JOB_ID\n')

    assert script.directory_variables == ("SLURM_SUBMIT_DIR",)
    assert script.lost == ("the script reads variables that no other batch system sets: SLURM_JOB_ID",)
