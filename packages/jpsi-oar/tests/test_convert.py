"""Scripts that were written for `oarsub -S`."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jpsi import Dependency
from jpsi.plugin import ForeignScript, ResourceSpecV1
from jpsi_oar import hooks
from oar_support import SITE


def _read(*lines: str) -> ForeignScript:
    return hooks.read_script("\n".join(["#!/bin/bash", *lines, "./simulate", ""]), SITE)


def test_an_unknown_option_is_named() -> None:
    read = _read("#OAR --chekpoint 60", "#OAR --signal 10")

    assert read.lost == (
        (
            "--chekpoint 60: jpsi knows no such option, and leaves it to the batch system as it is; "
            "did you mean --checkpoint?"
        ),
    )
    assert read.spec.attributes.custom_attributes == {"oar.chekpoint": "60", "oar.signal": "10"}


def test_a_script_of_a_user() -> None:
    read = _read(
        "#OAR -n heat flow",
        "#OAR -l /nodes=2/core=4,walltime=1:30:00",
        "#OAR -q long",
        "#OAR --project proj1",
        "#OAR -O out.txt",
        "#OAR -E err.txt",
        "#OAR -d /data/run",
        "#OAR -a 17",
        "#OAR -a 18",
        "#OAR -t besteffort",
        "#OAR -t inner=9",
        "#OAR --checkpoint 60",
        "#OAR --hold",
        "#OAR --notify [END,ERROR]mail:ann@example.org",
        "#OAR -p cluster='a'",
    )

    attributes, custom = read.spec.attributes, read.spec.attributes.custom_attributes
    assert (read.directives, read.lost) == (15, ())
    assert read.spec.name == "heat flow"
    assert read.spec.resources == ResourceSpecV1(node_count=2, processes_per_node=4, exclusive_node_use=False)
    assert attributes.duration == timedelta(minutes=90)
    assert (attributes.queue_name, attributes.project_name, attributes.reservation_id) == (
        "long",
        "proj1",
        "9",
    )
    assert [str(it) for it in (read.spec.stdout_path, read.spec.stderr_path, read.spec.directory)] == [
        "out.txt",
        "err.txt",
        "/data/run",
    ]
    assert attributes.after == [Dependency("17", "any"), Dependency("18", "any")]
    assert attributes.mail == "end:ann@example.org"
    assert custom == {
        "oar.type": "besteffort",
        "oar.checkpoint": "60",
        "oar.hold": True,
        "oar.property": "cluster='a'",
    }


@pytest.mark.parametrize(
    ("text", "resources", "hours"),
    [
        ("nodes=3", ResourceSpecV1(node_count=3, exclusive_node_use=True), None),
        ("/host=1/core=8,walltime=2", ResourceSpecV1(node_count=1, processes_per_node=8), 2),
        ("core=5,walltime=0:30", ResourceSpecV1(process_count=5), 0.5),
        ("walltime=10:0:0", ResourceSpecV1(), 10),
    ],
)
def test_resources(text: str, resources: ResourceSpecV1, hours: float | None) -> None:
    read = _read(f"#OAR -l {text}")

    assert read.spec.resources == resources
    assert read.spec.attributes.duration == (None if hours is None else timedelta(hours=hours))


def test_a_tree_that_jpsi_cannot_express_is_kept() -> None:
    read = _read("#OAR -l {cluster='a'}/switch=1/nodes=4,walltime=3")

    assert read.spec.attributes.custom_attributes == {"oar.resource": "{cluster='a'}/switch=1/nodes=4"}
    assert read.spec.attributes.duration == timedelta(hours=3)


def test_an_array_becomes_that_of_a_job_document() -> None:
    read = _read("#OAR --array 20")

    assert read.spec.attributes.custom_attributes == {"jpsi.array": "1-20"}
    assert read.spec.environment == {"OAR_ARRAY_INDEX": "${JPSI_ARRAY_INDEX}"}


def test_patterns_in_paths_are_lost() -> None:
    (lost,) = _read("#OAR -O out-%jobid%.txt").lost

    assert lost.startswith("--stdout out-%jobid%.txt: jpsi has no patterns")


def test_the_directory_of_the_submission_is_read_from_a_variable() -> None:
    script = hooks.read_script('#OAR -n a\ncd "${OAR_O_WORKDIR}"; run $OAR_JOB_ID\n', SITE)

    assert script.directory_variables == ("OAR_O_WORKDIR",)
    assert script.lost == ("the script reads variables that no other batch system sets: OAR_JOB_ID",)
