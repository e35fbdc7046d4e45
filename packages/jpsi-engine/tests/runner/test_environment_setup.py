"""The environment of a job is set up before anything is launched, or the job says what failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi_engine.runner.script import launcher_log
from runners import RunnerBench, script, shell_job

pytestmark = pytest.mark.parametrize("shell", ["sh", "bash", "bash itself"], indirect=True)


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_modules_are_loaded_by_the_function_of_the_site(bench: RunnerBench) -> None:
    init = script(
        bench.root / "modules" / "init" / "sh", 'module() { shift; export LOADED="${LOADED-}<$1>"; }'
    )
    spec = shell_job(
        'echo "$LOADED"',
        environment={"MODULESHOME": str(init.parent.parent), "LMOD_PKG": "/nowhere"},
        environment_setup=["module:gcc/12", "module:it's $x"],
    )

    ended = bench.run(spec)

    assert (ended.code, ended.stdout) == (0, b"<gcc/12><it's $x>\n"), ended.stderr


def test_conda_and_spack_say_what_to_set(bench: RunnerBench) -> None:
    conda = program(
        bench.root / "conda", '[ "$1 $2" = "shell.posix activate" ] && echo "export ENV_NAME=\'$3\'"'
    )
    program(bench.root / "spack" / "bin" / "spack", '[ "$1 $2" = "load --sh" ] && echo "export SPEC=\'$3\';"')
    spec = shell_job(
        'echo "$ENV_NAME, $SPEC"',
        environment={"CONDA_EXE": str(conda), "SPACK_ROOT": str(bench.root / "spack")},
        environment_setup=["conda:my env", "spack:hdf5 +mpi"],
    )

    ended = bench.run(spec)

    assert (ended.code, ended.stdout) == (0, b"my env, hdf5 +mpi\n"), ended.stderr


def test_a_value_with_other_separators_of_lines_arrives_as_it_is(bench: RunnerBench) -> None:
    name = "a\u2028b\x0cc"
    conda = program(bench.root / "conda", "echo \"export ENV_NAME='$3'\"")
    environment = {"CONDA_EXE": str(conda)}
    spec = shell_job('echo "$ENV_NAME"', environment=environment, environment_setup=[f"conda:{name}"])

    ended = bench.run(spec)

    assert (ended.code, ended.stdout.decode()) == (0, f"{name}\n"), ended.stderr


@pytest.mark.parametrize("path", ["{root}/home/env", "~/env", "../home/env"])
def test_an_environment_of_python_may_be_in_the_home_directory(bench: RunnerBench, path: str) -> None:
    program(bench.home / "env" / "bin" / "activate", "export VIRTUAL_ENV=yes")
    entry = f"venv:{path.format(root=bench.root)}"

    ended = bench.run(shell_job('echo "$VIRTUAL_ENV"', environment_setup=[entry]))

    assert (ended.code, ended.stdout) == (0, b"yes\n"), ended.stderr


def test_the_prologue_comes_before_and_pre_launch_after(bench: RunnerBench) -> None:
    source = script(bench.root / "source", 'export A="$A source"')
    pre = script(bench.root / "pre", 'export A="$A pre"')
    spec = shell_job('echo "$A"', environment_setup=[f"source:{source}"], pre_launch=pre)

    ended = bench.run(spec, prologue=["export A=prologue"])

    assert (ended.code, ended.stdout) == (0, b"prologue source pre\n")


@pytest.mark.parametrize(
    "entry",
    ["module:gcc", "conda:none", "spack:none", "venv:/none", "source:/none", "source:{root}/bad"],
)
def test_what_fails_is_named_and_nothing_is_launched(bench: RunnerBench, entry: str) -> None:
    bench.root.mkdir(exist_ok=True)
    script(bench.root / "bad", "return 3")
    entry = entry.format(root=bench.root)
    failing = {"CONDA_EXE": "/bin/false", "SPACK_ROOT": "/none", "MODULESHOME": "/none", "LMOD_PKG": "/none"}
    program(bench.root / "bin" / "module", "exit 1")
    spec = shell_job(
        'pwd >"$1"',
        bench.proof,
        environment={**failing, "PATH": f"{bench.root}/bin:/usr/bin:/bin"},
        environment_setup=[entry, "source:/never"],
    )

    ended = bench.run(spec)

    assert ended.code == 125
    assert ended.markers == ["exit.environment_setup.125"]
    assert Path(launcher_log(str(bench.folder), 1)).read_text() == f"{entry}\n"
    assert not bench.proof.exists()
