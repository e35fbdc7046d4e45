"""Conversion of scripts that were written for `flux batch`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jpsi.plugin import Dependency, DependencyKind, ForeignScript, ResourceSpecV1
from jpsi_flux import hooks


def _read(*directives: str) -> ForeignScript:
    lines = ["#!/bin/bash", *(f"# flux: {it}" for it in directives), "flux run ./a"]
    return hooks.read_script("\n".join(lines))


def _custom(script: ForeignScript) -> dict[str, Any] | None:
    assert script.spec.attributes is not None
    return script.spec.attributes.custom_attributes


def test_a_whole_script() -> None:
    script = _read(
        "--job-name=sim -q batch -B proj1",
        "-t 90 --cwd=run",
        "--output=out.txt --error=err.txt",
        "--urgency=20 -l",
    )

    assert (script.directives, script.lost) == (4, ())
    spec = script.spec
    assert (spec.name, spec.directory) == ("sim", Path("run"))
    assert (spec.stdout_path, spec.stderr_path) == (Path("out.txt"), Path("err.txt"))
    assert spec.attributes is not None
    assert (spec.attributes.queue_name, spec.attributes.project_name) == ("batch", "proj1")
    assert spec.attributes.duration == timedelta(minutes=90)
    assert _custom(script) == {"flux.urgency": "20"}


def test_an_unknown_option_is_named() -> None:
    script = _read("--cores-per-slots=4 --rlimit=nofile --broker-opts=-v")

    assert script.lost == (
        (
            "--cores-per-slots 4: jpsi knows no such option, and leaves it to the batch system as it is; "
            "did you mean --cores-per-slot?"
        ),
    )
    assert _custom(script) == {
        "flux.cores-per-slots": "4",
        "flux.rlimit": "nofile",
        "flux.broker-opts": "-v",
    }


@pytest.mark.parametrize(("text", "seconds"), [("10", 600), ("90s", 90), ("1.5h", 5400), ("2d", 172_800)])
def test_times(text: str, seconds: int) -> None:
    attributes = _read(f"-t {text}").spec.attributes

    assert attributes is not None
    assert attributes.duration == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        (
            "-N2 -n8 -c4 -g1",
            {
                "node_count": 2,
                "process_count": 8,
                "cpu_cores_per_process": 4,
                "gpu_cores_per_process": 1,
            },
        ),
        ("-N 2 --exclusive", {"node_count": 2, "exclusive_node_use": True}),
        ("--ntasks=3 --cores-per-task=2", {"process_count": 3, "cpu_cores_per_process": 2}),
    ],
)
def test_resources(directives: str, expected: dict[str, Any]) -> None:
    script = _read(directives)

    assert script.lost == ()
    assert script.spec.resources == ResourceSpecV1.uneven(**expected)


@pytest.mark.parametrize(
    ("directives", "custom"),
    [
        ("--setattr=user.a=1 --setattr=bank=p", {"flux.setattr": "user.a=1"}),
        ("--dependency=singleton", {"flux.dependency": "singleton"}),
        (
            "--requires=host:a -o cpu-affinity=off",
            {"flux.requires": "host:a", "flux.setopt": "cpu-affinity=off"},
        ),
    ],
)
def test_options_that_jpsi_cannot_express_become_custom_attributes(directives: str, custom: object) -> None:
    script = _read(directives)

    assert (script.lost, _custom(script)) == ((), custom)


@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ("--output=out.{{id}}", "--output out.{{id}}: jpsi has no patterns in paths"),
        ("--wait", "--wait: the submission would not return"),
        ("-N 2-4", "--nodes 2-4: '2-4' is not a single whole number"),
        ("--env=-*", "--env -*: the job has the whole environment"),
        ("--setattr=a=1 --setattr=b=2", "--setattr b=2: one of them can be carried over"),
        ('--setattr=a="""', "the directive"),
    ],
)
def test_lost_options_are_reported(directive: str, why: str) -> None:
    (lost,) = _read(directive).lost

    assert lost.startswith(why)


def test_dependencies_and_variables() -> None:
    script = _read("--dependency=afterok:f12 --dependency=afterany:13", "--env=A=1 --env=B=${C}")

    assert script.lost == ()
    assert script.spec.attributes is not None
    assert script.spec.attributes.after == [Dependency("f12"), Dependency("13", DependencyKind.ANY)]
    assert script.spec.environment == {"A": "1", "B": "$${C}"}


@pytest.mark.parametrize("mark", ["# flux:", "#flux:", "#FLUX:", "##  flux:"])
def test_prefixes_of_directives(mark: str) -> None:
    assert hooks.read_script(f"#!/bin/sh\n{mark} -n2\ntrue\n").directives == 1
