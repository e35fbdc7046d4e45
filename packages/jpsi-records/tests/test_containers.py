from __future__ import annotations

import json

import pytest

from fake_dispatcher import Client, finish
from fake_engines import DIGEST, IMAGE, InstallEngine, container_spec
from jpsi_records.errors import InvalidRequestError
from jpsi_records.jobs.containers import engine_problem, find_engine
from jpsi_records.model.request_spec import read_request_spec, write_request_spec
from jpsi_records.records.records import Records


def test_of_several_engines_one_without_a_service_is_used() -> None:
    assert find_engine({"docker": 1, "podman": 1}.get) == "podman"
    assert find_engine({"docker": 1}.get) == "docker"
    assert find_engine({}.get) is None
    assert engine_problem("docker", says_cwd=False) is None


@pytest.mark.clause("records-record", "records-image")
def test_the_image_is_identified_by_its_digest(records: Records, on_path: InstallEngine) -> None:
    on_path("podman")
    first = records.submit(container_spec("a")).execution

    assert (
        records.submit(container_spec("a", container_image=f"mirror:5000/debian@{DIGEST}")).execution == first
    )
    assert records.submit(container_spec("a", container_image=f"debian@sha256:{'6' * 64}")).execution != first
    assert records.submit(read_request_spec({"command": ["a"]})).execution != first
    assert records.submit(container_spec("a", cwd="/tmp")).execution != first
    assert records.submit(container_spec()).execution != first
    assert IMAGE not in records.execution(first or "").preimage


def test_the_root_and_the_directory_of_the_image_are_different(
    records: Records, on_path: InstallEngine
) -> None:
    on_path("podman")
    images = read_request_spec({"container_image": IMAGE})

    assert images.computation.cwd is None
    assert read_request_spec(write_request_spec(images)) == images
    assert records.submit(images).execution != records.submit(container_spec()).execution
    again = records.execution(records.rerun(records.submit(images).execution or "").execution or "")
    assert json.loads(again.preimage) == {
        "v": 1,
        "command": [],
        "cwd": None,
        "container_image": DIGEST,
    }


@pytest.mark.clause("records-image", "records-image-relative")
@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"container_image": "debian:12", "command": ["a"]}, "NAME@sha256"),
        ({"container_image": "--privileged@" + DIGEST, "command": ["a"]}, "NAME@sha256"),
        ({"container_image": 5}, "NAME@sha256"),
        ({"container_image": IMAGE, "cwd": "in"}, "with a container image it is absolute"),
        ({"container_image": IMAGE, "environment": {"A": None}}, "no variable can be unset"),
        ({"cwd": "/"}, "command is missing"),
        ({"command": []}, "command must be a list"),
    ],
    ids=["a tag", "an option", "no text", "a relative place", "an unset variable", "neither", "an empty one"],
)
def test_an_invalid_image_is_reported(document: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        read_request_spec(document)


def test_a_container_that_no_engine_can_run_is_refused_but_its_results_are_found(
    client: Client, on_path: InstallEngine
) -> None:
    records = client("ca")
    folder = on_path("podman")
    existing = records.submit(container_spec("a")).execution or ""
    finish(records, existing)
    (folder / "podman").unlink()

    assert records.submit(container_spec("a")).execution == existing
    for refused in (records.preview, records.submit):
        with pytest.raises(InvalidRequestError, match="none of apptainer, podman, docker"):
            refused(container_spec("b"))
    assert len(records.requests()) == 2


def test_apptainer_does_not_know_the_directory_of_an_image(records: Records, on_path: InstallEngine) -> None:
    on_path("apptainer")

    records.preview(container_spec("a"))
    with pytest.raises(InvalidRequestError, match="cwd is needed"):
        records.preview(read_request_spec({"container_image": IMAGE, "command": ["a"]}))
