from __future__ import annotations

import csv
import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_dispatcher import Client, finish
from fake_engines import DIGEST, IMAGE, InstallEngine, container_spec
from jpsi_records.errors import InvalidRequestError
from jpsi_records.jobs.containers import (
    ENGINES,
    Bind,
    Container,
    engine_problem,
    find_engine,
    started,
    variables,
)
from jpsi_records.model.request_spec import read_request_spec, write_request_spec
from jpsi_records.records.records import Records

CONTAINER = Container(
    image=IMAGE,
    command=["sort", "--reverse", "/in/words"],
    cwd="/work",
    environment={"LC_ALL": "C, really"},
    binds=[Bind("/r/in", "/in"), Bind("/r/a,b", "/work", is_writable=True)],
    reads_stdin=True,
    uid=1000,
    gid=100,
)
MOUNTS = [
    *("--mount", "type=bind,source=/r/in,target=/in,readonly"),
    *("--mount", 'type=bind,"source=/r/a,b",target=/work'),
]


def test_apptainer_gets_variables_through_its_environment() -> None:
    assert started("apptainer", CONTAINER) == [
        *("apptainer", "exec", "--containall", "--no-home", "--writable-tmpfs", "--pwd", "/work"),
        *(*MOUNTS, f"docker://{IMAGE}", "sort", "--reverse", "/in/words"),
    ]
    assert variables("apptainer", CONTAINER) == {"APPTAINERENV_LC_ALL": "C, really"}


def test_podman_runs_as_the_user() -> None:
    assert started("podman", CONTAINER) == [
        *("podman", "run", "--rm", "--init", "--userns=keep-id", "--interactive", "--workdir", "/work"),
        *("--env", "LC_ALL=C, really", *MOUNTS, "--entrypoint", '["sort"]'),
        *(IMAGE, "--reverse", "/in/words"),
    ]
    assert variables("podman", CONTAINER) == {}


def test_docker_gets_the_user() -> None:
    assert started("docker", CONTAINER) == [
        *("docker", "run", "--rm", "--init", "--user", "1000:100", "--interactive", "--workdir", "/work"),
        *("--env", "LC_ALL=C, really", *MOUNTS, "--entrypoint", "sort"),
        *(IMAGE, "--reverse", "/in/words"),
    ]


@pytest.mark.clause("records-image-command")
@pytest.mark.parametrize("engine", ENGINES)
def test_defaults_are_those_of_the_image(engine: str) -> None:
    command = started(engine, Container(image=IMAGE))

    assert command[-1].endswith(IMAGE)
    assert not {"--entrypoint", "--workdir", "--pwd", "exec", "--interactive"} & set(command)


@pytest.mark.parametrize("engine", ENGINES)
@given(path=st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]), min_size=1))
def test_no_name_of_a_file_is_read_as_an_option(engine: str, path: str) -> None:
    command = started(engine, attrs.evolve(CONTAINER, binds=[Bind(f"/{path}", "/in")]))

    mount = command[command.index("--mount") + 1]
    assert next(csv.reader([mount])) == ["type=bind", f"source=/{path}", "target=/in", "readonly"]


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
