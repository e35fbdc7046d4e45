"""The command lines of container runtimes."""

from __future__ import annotations

import csv
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import Bind, Command, Container
from jpsi.plugin.engine import container_runtime
from jpsi_engine.runner.containers import RUNTIMES

IMAGE = f"docker.io/library/debian@sha256:{'5' * 64}"
CONTAINER = Container(
    IMAGE,
    directory="/work",
    environment={"LC_ALL": "C, really", "UNSET": None},
    binds=[Bind("/r/in", "/in", read_only=True), Bind("/r/a,b", "/work")],
)
MOUNTS = [
    *("--mount", "type=bind,source=/r/in,target=/in,readonly"),
    *("--mount", 'type=bind,"source=/r/a,b",target=/work'),
]
COMMAND = ("sort", "--reverse", "/in/words")


def started(
    runtime: str, container: Container, command: Sequence[str] = COMMAND, *, inherits: bool = False
) -> Command:
    return container_runtime(runtime).run_container(
        container=container, command=command, inherits=inherits, user="1000:100"
    )


@pytest.mark.parametrize("program", ["apptainer", "singularity"])
def test_apptainer_gets_variables_through_its_environment(program: str) -> None:
    command = started(program, CONTAINER)

    assert list(command.argv) == [
        *(program, "exec", "--containall", "--no-home", "--writable-tmpfs", "--pwd", "/work"),
        *(*MOUNTS, f"docker://{IMAGE}", *COMMAND),
    ]
    assert command.environment == {f"{program.upper()}ENV_LC_ALL": "C, really"}


def test_podman_runs_as_the_user() -> None:
    command = started("podman", CONTAINER)

    assert list(command.argv) == [
        *("podman", "run", "--rm", "--init", "--userns=keep-id", "--interactive", "--workdir", "/work"),
        *("--env", "LC_ALL=C, really", *MOUNTS, "--entrypoint", '["sort"]'),
        *(IMAGE, "--reverse", "/in/words"),
    ]
    assert command.environment == {}


@pytest.mark.parametrize("runtime", ["podman", "docker"])
def test_the_container_of_a_job_is_found_by_its_label(runtime: str) -> None:
    argv = started(runtime, Container(IMAGE, environment={"JPSI_JOB_ID": "${ID}"})).argv

    assert argv[argv.index("--label") + 1] == "jpsi.job=${ID}"


def test_docker_gets_the_user() -> None:
    assert list(started("docker", CONTAINER).argv) == [
        *("docker", "run", "--rm", "--init", "--user", "1000:100", "--interactive", "--workdir", "/work"),
        *("--env", "LC_ALL=C, really", *MOUNTS, "--entrypoint", "sort"),
        *(IMAGE, "--reverse", "/in/words"),
    ]


def test_charliecloud_runs_an_image_of_its_storage_or_a_directory() -> None:
    container = attrs.evolve(CONTAINER, image="docker://debian:12", binds=["/r/in:/in"])

    assert list(started("charliecloud", container).argv) == [
        *("ch-run", "--private-tmp", "--unset-env=*", "--env-no-expand", "--set-env=LC_ALL=C, really"),
        *("--cd=/work", "--bind=/r/in:/in", "debian:12", "--", *COMMAND),
    ]
    assert "/images/debian" in started("charliecloud", Container("/images/debian")).argv


@pytest.mark.parametrize(
    ("runtime", "container", "why"),
    [
        ("charliecloud", CONTAINER, "nothing read-only"),
        ("charliecloud", Container("a", binds=[Bind("/a:b")]), "a colon"),
        ("charliecloud", Container("a", gpu=True), "no GPUs"),
        ("charliecloud", Container("/images/a.sif"), "directories and squash files, not /images/a.sif"),
        ("charliecloud", Container("oci-archive:/a.tar"), "directories and squash files"),
        ("docker", Container("docker-archive:/a.tar"), "by their names, not the file"),
        ("podman", Container("/images/debian"), "by their names, not the file /images/debian"),
        ("docker", Container("${HOME}/debian"), "by their names, not the file"),
    ],
)
def test_a_runtime_refuses_what_it_cannot_do(runtime: str, container: Container, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        started(runtime, container)


@pytest.mark.parametrize("runtime", ["apptainer", "podman", "docker"])
def test_gpus_and_the_environment_of_the_host_are_shown_on_request(runtime: str) -> None:
    plain, full = started(runtime, Container("a")), started(runtime, Container("a", gpu=True), inherits=True)

    options = {"apptainer": "--nv", "podman": "nvidia.com/gpu=all", "docker": "--gpus"}
    assert options[runtime] in full.argv
    assert options[runtime] not in plain.argv
    assert "--containall" not in full.argv
    assert ("--network=host" in full.argv) == (runtime != "apptainer")


@pytest.mark.clause("records-image-command")
@pytest.mark.parametrize("runtime", ["apptainer", "podman", "docker"])
def test_defaults_are_those_of_the_image(runtime: str) -> None:
    command = started(runtime, Container(IMAGE), ())

    assert command.argv[-1].endswith(IMAGE)
    assert not {"--entrypoint", "--workdir", "--pwd", "exec"} & set(command.argv)


@pytest.mark.parametrize(
    "image",
    [
        "/images/a.sif",
        "library://a",
        "${HOME}/a.sif",
        "./a.sif",
        "oci-archive:/a.tar",
        "docker-archive:a.tar",
    ],
)
def test_apptainer_takes_files_and_its_own_names(image: str) -> None:
    assert image in started("apptainer", Container(image)).argv


@pytest.mark.parametrize("runtime", ["apptainer", "singularity", "podman", "docker"])
@given(path=st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]), min_size=1))
def test_no_name_of_a_file_is_read_as_an_option(runtime: str, path: str) -> None:
    container = attrs.evolve(CONTAINER, binds=[Bind(f"/{path}", "/in", read_only=True)])

    argv = started(runtime, container).argv

    mount = argv[argv.index("--mount") + 1]
    assert next(csv.reader([mount])) == ["type=bind", f"source=/{path}", "target=/in", "readonly"]


def test_each_runtime_is_a_plugin() -> None:
    assert all(container_runtime(it) for it in RUNTIMES)
