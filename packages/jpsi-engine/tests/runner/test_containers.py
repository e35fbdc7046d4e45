"""The command of a job in a container: what its runtime is asked, and which runtime the node takes."""

from __future__ import annotations

import os

import attrs
import pytest

from jpsi import Container, JobSpec
from jpsi.plugin import ExecutorConfig, ResourceSpecV1
from jpsi_engine.runner.containers import container_commands, container_problems
from jpsi_testing import PluginDirectory
from runners import Ended, RunnerBench, script

PLUGIN = """
from jpsi.plugin import Command, hookimpl

@hookimpl
def run_container(container, command, inherits, user):
    if container.gpu:
        raise ValueError("it has no GPUs")
    return Command(["box", container.image, str(inherits), user, *command], environment={"BOX": "${A}"})
"""
CONFIG = ExecutorConfig()
HERE, QUOTE = "${_jpsi_here}", "${_jpsi_quote}"


@pytest.fixture
def box(plugin_directory: PluginDirectory) -> str:
    """Return the name of a runtime of a plugin."""
    plugin_directory.add(
        "jpsi-box", entry_points={"jpsi.containers": {"box": "jpsi_box"}}, files={"jpsi_box.py": PLUGIN}
    )
    return "box"


def run(bench: RunnerBench, spec: JobSpec, config: ExecutorConfig = CONFIG) -> Ended:
    return bench.run(spec, containers=container_commands(spec, config))


def in_container(*command: str, **fields: object) -> JobSpec:
    container = fields.pop("container", Container("image", "box"))
    return JobSpec(command[0], [*command[1:]], container=container, **fields)  # type: ignore[arg-type]


def test_a_job_without_a_container_has_no_command() -> None:
    assert list(container_commands(JobSpec("a"), CONFIG)) == []
    assert list(container_problems(JobSpec("a", inherit_environment=False), CONFIG)) == []


def test_the_directory_and_the_variables_of_the_job_are_inside() -> None:
    container = Container("/a.sif", "apptainer", ["/b:/c"], environment={"A": "mine", "B": "${A}"})
    spec = in_container("${x}", "${A}", container=container, environment={"A": "1", "C": "2", "D": None})

    (command,) = container_commands(spec, CONFIG)

    assert command.argv == (
        *("apptainer", "exec", "--pwd", HERE),
        *(
            "--mount",
            f"type=bind,{QUOTE}source={HERE}{QUOTE},{QUOTE}target={HERE}{QUOTE}",
            "--mount",
            "type=bind,source=/b,target=/c",
        ),
        *("/a.sif", "$${x}", "${A}"),
    )
    prefix = "APPTAINERENV_"
    assert {name.removeprefix(prefix): value for name, value in command.environment.items()} == {
        "A": "mine",
        "B": "${_jpsi_or_empty_A}",
        "C": "${_jpsi_or_empty_C}",
        "JPSI_JOB_ID": "${_jpsi_or_empty_JPSI_JOB_ID}",
    }


def test_auto_leaves_out_what_cannot_do_it(box: str) -> None:
    by_name = [it.argv[0] for it in container_commands(in_container("a", container=Container("i")), CONFIG)]
    of_file = in_container("a", container=Container("/i"))
    configured = attrs.evolve(CONFIG, container_runtime=box)

    assert by_name == ["apptainer", "singularity", "podman", "ch-run", "docker"]
    for_file = [it.argv[0] for it in container_commands(of_file, CONFIG)]
    assert for_file == ["apptainer", "singularity", "ch-run"]
    assert [it.argv[0] for it in container_commands(of_file, configured)] == ["box"]


def test_auto_in_the_configuration_leaves_the_choice_to_the_node() -> None:
    spec, configured = (
        in_container("a", container=Container("i")),
        attrs.evolve(CONFIG, container_runtime="auto"),
    )

    assert container_commands(spec, configured) == container_commands(spec, CONFIG)


def test_problems_say_what_cannot_be(box: str) -> None:
    several = ResourceSpecV1(process_count=2)
    strict = in_container("a", inherit_environment=False, resources=several)

    assert list(container_problems(in_container("a"), CONFIG)) == []
    assert list(container_problems(in_container("a", container=Container("a", box, gpu=True)), CONFIG)) == [
        "container: it has no GPUs"
    ]
    (missing,) = container_problems(in_container("a", container=Container("a", "cell")), CONFIG)
    assert "no container 'cell'" in missing
    (problem,) = container_problems(strict, CONFIG)
    assert "several processes need inherit_environment" in problem


@pytest.mark.parametrize("inherits", [True, False])
@pytest.mark.parametrize("shell", ["sh", "bash"], indirect=True)
def test_words_and_variables_are_those_of_the_job(bench: RunnerBench, box: str, inherits: bool) -> None:
    script(bench.root / "bin" / "box", '#!/bin/sh\nprintf "<%s>" "$BOX" "$@"\nexit 5\n')
    spec = in_container(
        *("a b", "${A}", "$${A}", "it's"),
        environment={"A": "x $y", "PATH": f"{bench.root}/bin:/usr/bin:/bin", "UID": "7"},
        inherit_environment=inherits,
    )

    ended = run(bench, spec)

    user = f"{os.getuid()}:{os.getgid()}"
    assert ended.code == 5
    assert ended.stdout.decode() == f"<x $y><image><{inherits}><{user}><a b><x $y><${{A}}><it's>"


@pytest.mark.parametrize("shell", ["sh", "bash"], indirect=True)
@pytest.mark.parametrize(("name", "quote"), [("a b", ""), ("a, b", '"'), ("a\nb", '"')])
def test_the_directory_is_quoted_only_if_it_has_to_be(bench: RunnerBench, name: str, quote: str) -> None:
    """Podman before 4.1 reads no quotes."""
    script(bench.root / "bin" / "podman", '#!/bin/sh\nprintf "<%s>" "$@"\n')
    directory = bench.root / name
    directory.mkdir()
    path = f"{bench.root}/bin:/usr/bin:/bin"
    spec = in_container("a", container=Container("i", "podman"), environment={"PATH": path})

    containers = container_commands(spec, CONFIG)
    stdout = bench.run(spec, containers=containers, directory=str(directory)).stdout.decode()

    assert f"<type=bind,{quote}source={directory}{quote},{quote}target={directory}{quote}>" in stdout


@pytest.mark.parametrize(("runtime", "is_refused"), [("podman", True), ("charliecloud", False)])
def test_a_directory_that_a_mount_cannot_name_is_refused(
    bench: RunnerBench, runtime: str, is_refused: bool
) -> None:
    for name in ("podman", "ch-run"):
        script(bench.root / "bin" / name, "#!/bin/sh\n")
    directory = bench.root / 'a","target=/b'
    directory.mkdir(parents=True)
    path = f"{bench.root}/bin:/usr/bin:/bin"
    spec = in_container("a", container=Container("i", runtime), environment={"PATH": path})

    ended = bench.run(spec, containers=container_commands(spec, CONFIG), directory=str(directory))

    assert ended.markers == (["exit.container.125"] if is_refused else ["exit.run.0"])


def test_the_runners_own_variables_are_not_passed_from_the_spec() -> None:
    environment = {"JPSI_NODEFILE": "/other", "JPSI_JOB_ID": "other"}
    spec = in_container("a", container=Container("i", "docker"), environment=environment)

    (command,) = container_commands(spec, CONFIG)

    assert [it.partition("=")[0] for it in command.argv if it.startswith("JPSI_")] == ["JPSI_JOB_ID"]


@pytest.mark.parametrize("shell", ["sh", "bash"], indirect=True)
def test_variables_of_the_container_are_like_those_of_the_job(bench: RunnerBench) -> None:
    script(bench.root / "bin" / "ch-run", '#!/bin/sh\nprintf "<%s>" "${GONE-unset}" "$@"\n')
    values = {"A": "/opt:${NONE}", "B": "$${NONE}", "C": "${KEPT}", "UID": "${UID}", "GONE": None}
    spec = in_container(
        *("a", "${NONE}"),
        container=Container("i", "charliecloud", environment=values),
        environment={"PATH": f"{bench.root}/bin:/usr/bin:/bin", "KEPT": "1", "UID": "7", "GONE": "x"},
    )

    stdout = run(bench, spec).stdout.decode()

    for it in ("A=/opt:", "B=${NONE}", "C=1", "UID=7"):
        assert f"<--set-env={it}>" in stdout
    assert stdout.startswith("<unset>")
    assert "GONE" not in stdout
    assert stdout.endswith("<a><${NONE}>")


@pytest.mark.parametrize("contained", [True, False])
def test_arguments_show_no_variable_of_the_host_unless_it_is_inherited(
    bench: RunnerBench, contained: bool
) -> None:
    script(
        bench.root / "bin" / "ch-run", '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'
    )
    spec = in_container(
        *("printf", "<%s>", "${HOME}", "${A}", "$${A}"),
        container=Container("i", "charliecloud") if contained else None,
        environment={"PATH": f"{bench.root}/bin:/usr/bin:/bin", "A": "1"},
        inherit_environment=False,
    )

    assert run(bench, spec).stdout == b"<${HOME}><1><${A}>"


@pytest.mark.parametrize("shell", ["sh", "bash"], indirect=True)
def test_a_variable_of_the_spec_moves_no_directory(bench: RunnerBench) -> None:
    script(bench.root / "bin" / "ch-run", '#!/bin/sh\nprintf "<%s>" "$@"\n')
    path = f"{bench.root}/bin:/usr/bin:/bin"
    container = Container("i", "charliecloud")
    spec = in_container("a", "${PWD}", container=container, environment={"PWD": "/elsewhere", "PATH": path})

    stdout = run(bench, spec).stdout.decode()

    assert f"<--cd={bench.directory}>" in stdout
    assert f"<--bind={bench.directory}:{bench.directory}>" in stdout
    assert "<--set-env=PWD=/elsewhere>" in stdout
    assert stdout.endswith("<a></elsewhere>")


@pytest.mark.parametrize("shell", ["sh", "bash"], indirect=True)
def test_the_first_runtime_on_the_path_is_taken(bench: RunnerBench) -> None:
    pre = script(bench.root / "pre", f"PATH={bench.root}/bin:$PATH\n")
    for name in ("docker", "ch-run"):
        script(bench.root / "bin" / name, f'#!/bin/sh\necho {name} "$@"\n')
    hidden = bench.root / "none"
    spec = in_container("a", container=Container("i"), environment={"PATH": str(hidden)}, pre_launch=pre)

    ended = run(bench, spec)

    assert ended.code == 0, ended.stderr
    assert ended.stdout.startswith(b"ch-run --env-no-expand")


@pytest.mark.parametrize("shell", ["sh", "bash"], indirect=True)
def test_without_a_runtime_nothing_is_launched(bench: RunnerBench, box: str) -> None:
    ended = run(bench, in_container("pwd", container=Container("i", box)))

    assert (ended.code, ended.markers, ended.stdout) == (127, ["exit.container.127"], b"")
