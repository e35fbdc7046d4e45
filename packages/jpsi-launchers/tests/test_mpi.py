"""`mpirun` and `mpiexec` over programs that stand in for those of each MPI and print their arguments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launchers_support import RECORDINGS, lines_of, print_arguments, program, run, script_of, spec_of

OPEN_MPI = ("openmpi-4.1.4", "openmpi-5.0.11")
HYDRA = ("mpich-4.0.2", "mpich-5.0.2")
INTEL = "intel-2021.19"
ROOT = ["--allow-run-as-root"]
CORES = len(os.sched_getaffinity(0))


@pytest.fixture(params=["mpirun", "mpiexec"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Stand:
    """A machine with one MPI, where a job is launched."""

    def __init__(self, tmp_path: Path, name: str, uid: int = 1000) -> None:
        self.tmp_path, self.name = tmp_path, name
        self.bin = tmp_path / "its bin"
        program(self.bin / "id", f"echo {uid}")
        self.nodes = ""

        self.batch_system: dict[str, str] = {}

    def launch(self, version: str, *command: str, **resources: int) -> list[str]:
        recording = RECORDINGS / f"{version}.txt"
        print_arguments(self.bin / self.name, str(recording) if recording.exists() else "/dev/null")
        script = script_of(lines_of(spec_of(self.name, **resources)), self.tmp_path / "launch")
        environment = {"WITH": "two\nlines;,", "SLURM_PROCID": "0", "_jpsi_folder": str(self.tmp_path)}
        environment |= self.batch_system
        if self.nodes:
            file = self.tmp_path / "node file"
            file.write_text(self.nodes.replace(" ", "\n") + "\n")
            environment["JPSI_NODEFILE"] = str(file)
        return run(script, *(command or ("true",)), path=self.bin, **environment)


@pytest.fixture
def stand(tmp_path: Path, name: str) -> Stand:
    return Stand(tmp_path, name)


# Hydra's proxies leave the input of the other ranks open for ever, and TTIN ignored.
FED = [
    *("/bin/sh", "-c", '[ "${PMI_RANK:-0}" = 0 ] || exec </dev/null; exec "$@"', "sh"),
    *("/usr/bin/env", "--default-signal=TTIN"),
]


@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_without_node_file(stand: Stand, version: str) -> None:
    assert stand.launch(version, "a b", "") == [stand.name, "-n", "1", "a b", ""]


@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_may_run_as_root_only_where_it_does(tmp_path: Path, version: str, name: str) -> None:
    assert Stand(tmp_path, name, uid=0).launch(version) == [name, "-n", "1", *ROOT, "true"]


@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_has_a_slot_for_each_line_of_the_node_file(stand: Stand, version: str) -> None:
    count = CORES + 1
    stand.nodes = " ".join(["a"] * count)

    arguments = stand.launch(version, process_count=count)

    file = stand.tmp_path / f"{stand.name}.hosts"
    assert file.read_text() == f"a slots={count}\n"
    # and is not asked to bind more processes than there are cores
    assert arguments[1:] == ["-n", str(count), "--hostfile", str(file), "--bind-to", "none", "true"]


@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_takes_the_environment_to_other_nodes(stand: Stand, version: str) -> None:
    stand.nodes = "a b"

    arguments = stand.launch(version, process_count=2)

    named = {arguments[at + 1] for at, it in enumerate(arguments) if it == "-x"}
    assert named >= {"WITH", "PATH", "JPSI_NODEFILE"}
    assert not named & {"SLURM_PROCID", "PWD", "_", "AWKPATH"}
    assert arguments[1:3] == ["-n", "2"]


@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_binds_where_there_are_cores_for_all(stand: Stand, version: str) -> None:
    stand.nodes = "a b"

    fits = stand.launch(version, process_count=2, cpu_cores_per_process=CORES)
    does_not = stand.launch(version, process_count=2, cpu_cores_per_process=CORES + 1)

    at = fits.index("--map-by")
    assert fits[at : at + 4] == ["--map-by", f"slot:PE={CORES}", "--bind-to", "core"]
    assert "--map-by" not in does_not
    assert does_not[does_not.index("--bind-to") + 1] == "none"


@pytest.mark.parametrize("version", HYDRA)
def test_hydra(stand: Stand, version: str) -> None:
    assert stand.launch(version, process_count=3) == [stand.name, "-n", "3", *FED, "true"]

    stand.nodes = "a b"
    file = str(stand.tmp_path / "node file")
    assert stand.launch(version, process_count=2)[1:] == ["-n", "2", "-f", file, *FED, "true"]
    assert stand.launch(version, process_count=2, cpu_cores_per_process=1)[1:] == [
        *("-n", "2", "-bind-to", "core:1", "-f", file, *FED, "true")
    ]
    assert "-bind-to" not in stand.launch(version, process_count=2, cpu_cores_per_process=CORES + 1)


def test_intel_mpi_is_run_without_the_script_around_it(stand: Stand) -> None:
    print_arguments(stand.bin / "mpiexec.hydra")
    stand.nodes = "a b"

    arguments = stand.launch(INTEL, process_count=2, cpu_cores_per_process=2)

    file = str(stand.tmp_path / "node file")
    assert arguments == ["mpiexec.hydra", "-n", "2", "-f", file, *FED, "true"]


@pytest.mark.parametrize(
    ("variables", "bootstrap"),
    [
        ({"SLURM_JOB_ID": "1"}, ["-bootstrap", "slurm"]),
        ({"PE_HOSTFILE": "/x"}, ["-bootstrap", "sge"]),
        ({"LSB_JOBID": "1"}, ["-bootstrap", "lsf"]),
        ({"PBS_NODEFILE": "/x"}, ["-bootstrap", "pbs"]),
        ({"SLURM_JOB_ID": "1", "I_MPI_HYDRA_BOOTSTRAP": "ssh"}, []),
    ],
    ids=["slurm", "sge", "lsf", "pbs", "user"],
)
def test_intel_mpi_is_told_the_batch_system(
    stand: Stand, variables: dict[str, str], bootstrap: list[str]
) -> None:
    """Its mpirun would find that out."""
    print_arguments(stand.bin / "mpiexec.hydra")
    stand.batch_system = variables

    assert stand.launch(INTEL) == ["mpiexec.hydra", "-n", "1", *bootstrap, *FED, "true"]


def test_an_unknown_mpi_gets_what_all_understand(stand: Stand) -> None:
    stand.nodes = "a b"

    assert stand.launch("unknown", process_count=2) == [stand.name, "-n", "2", "true"]


def test_a_colon_reaches_the_program(tmp_path: Path, name: str) -> None:
    """MPIs take a word that is a colon for the end of the command."""
    stand = Stand(tmp_path, name)

    arguments = stand.launch(HYDRA[0], "/bin/echo", "a", ":", "", "it's", ".b")

    hidden = arguments[3 + len(FED) :]
    assert ":" not in hidden
    expected = "a :  it's .b"
    assert run(program(tmp_path / "again", 'exec "$@"'), *hidden) == [expected]
