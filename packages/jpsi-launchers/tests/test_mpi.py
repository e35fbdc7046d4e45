"""`mpirun` and `mpiexec` over fakes of the programs of each MPI, which print their arguments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jpsi import HeterogeneousResources, JobSpec, ResourceSpecV1
from launchers_support import RECORDINGS, lines_of, print_arguments, program, run, script_of, spec_of

OPEN_MPI = ("openmpi-4.1.4", "openmpi-5.0.11")
HYDRA = ("mpich-4.0.2", "mpich-5.0.2")
INTEL = "intel-2021.19"
ROOT = ["--allow-run-as-root"]
CORES = len(os.sched_getaffinity(0))


@pytest.fixture(params=["mpirun", "mpiexec"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class MpiHost:
    """A host with one MPI, on which a test launches a job."""

    def __init__(self, tmp_path: Path, name: str, uid: int = 1000) -> None:
        self.tmp_path, self.name = tmp_path, name
        self.bin = tmp_path / "its bin"
        program(self.bin / "id", f"echo {uid}")
        self.nodes = ""

        self.batch_system: dict[str, str] = {}

    def launch(self, version: str, *command: str, **resources: int) -> list[str]:
        return self.launch_spec(spec_of(self.name, **resources), version, *command)

    def launch_spec(self, spec: JobSpec, version: str, *command: str) -> list[str]:
        recording = RECORDINGS / f"{version}.txt"
        print_arguments(self.bin / self.name, str(recording) if recording.exists() else "/dev/null")
        script = script_of(lines_of(spec), self.tmp_path / "launch")
        environment = {"WITH": "two\nlines;,", "SLURM_PROCID": "0", "_jpsi_folder": str(self.tmp_path)}
        environment |= {"_jpsi_stdin": "/dev/null", "_jpsi_log": str(self.tmp_path / "log")}
        environment |= self.batch_system
        if self.nodes:
            file = self.tmp_path / "node file"
            file.write_text(self.nodes.replace(" ", "\n") + "\n")
            environment["JPSI_NODEFILE"] = str(file)
        return run(script, *(command or ("true",)), path=self.bin, **environment)


@pytest.fixture
def mpi_host(tmp_path: Path, name: str) -> MpiHost:
    return MpiHost(tmp_path, name)


# Open MPI 5 must not be given standard input.
NO_INPUT = {"openmpi-4.1.4": [], "openmpi-5.0.11": ["--stdin", "none"]}


def options(arguments: list[str]) -> list[str]:
    """Return the arguments without the wrapper in which Hydra runs each process."""
    heeding = arguments.index("--default-signal=TTIN")
    return [*arguments[: arguments.index("/bin/sh")], *arguments[heeding + 1 :]]


@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_without_node_file(mpi_host: MpiHost, version: str) -> None:
    assert mpi_host.launch(version, "a b", "") == [mpi_host.name, "-n", "1", *NO_INPUT[version], "a b", ""]


@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_may_run_as_root_only_where_it_does(tmp_path: Path, version: str, name: str) -> None:
    expected = [name, "-n", "1", *ROOT, *NO_INPUT[version], "true"]
    assert MpiHost(tmp_path, name, uid=0).launch(version) == expected


@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_has_a_slot_for_each_line_of_the_node_file(mpi_host: MpiHost, version: str) -> None:
    count = CORES + 1
    mpi_host.nodes = " ".join(["a"] * count)

    arguments = mpi_host.launch(version, process_count=count)

    file = mpi_host.tmp_path / f"{mpi_host.name}.hosts"
    assert file.read_text() == f"a slots={count}\n"
    # and does not bind more processes than there are cores
    hosts = ["--hostfile", str(file), "--bind-to", "none"]
    assert arguments[1:] == ["-n", str(count), *hosts, *NO_INPUT[version], "true"]


@pytest.mark.clause("pre-launch-forwarded")
@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_passes_the_environment_to_other_nodes(mpi_host: MpiHost, version: str) -> None:
    mpi_host.nodes = "a b"

    arguments = mpi_host.launch(version, process_count=2)

    named = {arguments[at + 1] for at, it in enumerate(arguments) if it == "-x"}
    assert named >= {"WITH", "PATH", "JPSI_NODEFILE"}
    assert not named & {"SLURM_PROCID", "PWD", "_", "AWKPATH"}
    assert arguments[1:3] == ["-n", "2"]


@pytest.mark.parametrize("version", OPEN_MPI)
def test_open_mpi_binds_where_there_are_cores_for_all(mpi_host: MpiHost, version: str) -> None:
    mpi_host.nodes = "a b"

    fits = mpi_host.launch(version, process_count=2, cpu_cores_per_process=CORES)
    does_not = mpi_host.launch(version, process_count=2, cpu_cores_per_process=CORES + 1)

    at = fits.index("--map-by")
    assert fits[at : at + 4] == ["--map-by", f"slot:PE={CORES}", "--bind-to", "core"]
    assert "--map-by" not in does_not
    assert does_not[does_not.index("--bind-to") + 1] == "none"


KINDS = HeterogeneousResources(
    [ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1(node_count=1, processes_per_node=2)]
)


@pytest.mark.parametrize("version", [*OPEN_MPI, *HYDRA])
def test_slots_of_several_kinds_follow_the_node_file_without_binding(mpi_host: MpiHost, version: str) -> None:
    mpi_host.nodes = "a b b"

    arguments = mpi_host.launch_spec(JobSpec("/bin/true", launcher=mpi_host.name, resources=KINDS), version)

    assert arguments[1:3] == ["-n", "3"]
    if version in HYDRA:
        assert "-bind-to" not in arguments
    else:
        assert arguments[arguments.index("--bind-to") + 1] == "none"
        assert (mpi_host.tmp_path / f"{mpi_host.name}.hosts").read_text() == "a slots=1\nb slots=2\n"


def test_an_mpi_that_cannot_start_in_slurm_is_an_error(mpi_host: MpiHost) -> None:
    mpi_host.batch_system = {"SLURM_HET_SIZE": "2"}

    with pytest.raises(subprocess.CalledProcessError) as error:
        mpi_host.launch_spec(JobSpec("/bin/true", launcher=mpi_host.name, resources=KINDS), OPEN_MPI[0])

    assert error.value.returncode == 125
    assert "use srun" in (mpi_host.tmp_path / "log").read_text()
    assert mpi_host.launch(OPEN_MPI[0]), "a job with slots of one kind is none of those"


@pytest.mark.parametrize("version", HYDRA)
def test_hydra(mpi_host: MpiHost, version: str) -> None:
    assert options(mpi_host.launch(version, process_count=3)) == [mpi_host.name, "-n", "3", "true"]

    mpi_host.nodes = "a b"
    file = str(mpi_host.tmp_path / "node file")
    bound = mpi_host.launch(version, process_count=2, cpu_cores_per_process=1)
    assert options(mpi_host.launch(version, process_count=2))[1:] == ["-n", "2", "-f", file, "true"]
    assert options(bound)[1:] == ["-n", "2", "-bind-to", "core:1", "-f", file, "true"]
    assert "-bind-to" not in mpi_host.launch(version, process_count=2, cpu_cores_per_process=CORES + 1)


def test_intel_mpi_is_run_without_the_script_around_it(mpi_host: MpiHost) -> None:
    print_arguments(mpi_host.bin / "mpiexec.hydra")
    mpi_host.nodes = "a b"

    arguments = mpi_host.launch(INTEL, process_count=2, cpu_cores_per_process=2)

    file = str(mpi_host.tmp_path / "node file")
    assert options(arguments) == ["mpiexec.hydra", "-n", "2", "-f", file, "true"]


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
def test_intel_mpi_gets_the_batch_system(
    mpi_host: MpiHost, variables: dict[str, str], bootstrap: list[str]
) -> None:
    """Its mpirun would find that out."""
    print_arguments(mpi_host.bin / "mpiexec.hydra")
    mpi_host.batch_system = variables

    assert options(mpi_host.launch(INTEL)) == ["mpiexec.hydra", "-n", "1", *bootstrap, "true"]


def test_an_unknown_mpi_gets_what_all_understand(mpi_host: MpiHost) -> None:
    mpi_host.nodes = "a b"

    assert mpi_host.launch("unknown", process_count=2) == [mpi_host.name, "-n", "2", "true"]


@pytest.mark.parametrize(
    ("listed", "numbers"),
    [("0", [0]), ("0,2", [0, 2]), ("0-1,4", [0, 1, 4]), ("3,35", [3, 35]), ("", [])],
    ids=repr,
)
def test_every_core_of_a_list_is_counted_once(tmp_path: Path, listed: str, numbers: list[int]) -> None:
    """Under Slurm and cgroups single cores are listed without a range."""
    lines = lines_of(spec_of("mpirun"))
    until = next(at for at, it in enumerate(lines) if it.startswith("_mpi_version="))
    script = script_of(["mpirun() { :; }", *lines[:until], '_mpi_numbers "$1"'], tmp_path / "launch")

    assert run(script, listed) == [str(number) for number in numbers]


def test_rank_0_of_open_mpi_5_opens_the_input_itself(mpi_host: MpiHost, tmp_path: Path) -> None:
    """Its own passing on has no end."""
    (tmp_path / "in put").write_text("put in\n")
    mpi_host.batch_system = {"_jpsi_stdin": str(tmp_path / "in put")}

    arguments = mpi_host.launch(OPEN_MPI[1], "cat")

    assert arguments[3:5] == NO_INPUT[OPEN_MPI[1]]
    rank = program(
        tmp_path / "rank", 'OMPI_COMM_WORLD_RANK=$1; export OMPI_COMM_WORLD_RANK; shift; exec "$@"'
    )
    assert run(rank, "0", *arguments[5:]) == ["put in"]
    assert run(rank, "1", *arguments[5:]) == []


def test_open_mpi_5_gets_no_path_with_a_comma(mpi_host: MpiHost, tmp_path: Path) -> None:
    """It would open the part before the comma."""
    (tmp_path / "a,b").mkdir()
    mpi_host.nodes = "a b"
    mpi_host.batch_system = {"_jpsi_folder": str(tmp_path / "a,b")}

    with pytest.raises(subprocess.CalledProcessError) as error:
        mpi_host.launch(OPEN_MPI[1], process_count=2)

    assert error.value.returncode == 125
    assert "comma" in (tmp_path / "log").read_text()
    assert mpi_host.launch(OPEN_MPI[0], process_count=2)


# Starts two processes and says of their codes what Hydra says.
_HYDRA = """\
[ "$1" != --version ] || exec cat "{version}"
shift 2
PMI_RANK=0; export PMI_RANK; "$@"; code=$?
PMI_RANK=1; "$@"; exit $((code | $?))"""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("exit 0", 0),
        ("exit $((PMI_RANK + 1))", 1),
        ("exit $((PMI_RANK * 5))", 5),
        ("[ $PMI_RANK = 0 ] || kill -KILL $$", 137),
    ],
)
def test_the_code_of_hydra_is_that_of_the_process_that_failed_first(
    tmp_path: Path, name: str, command: str, code: int
) -> None:
    """Hydra itself says 3 where they say 1 and 2; nothing is left of the output of an earlier job."""
    (tmp_path / f"{name}.failed").write_text("77\n")
    program(tmp_path / "bin" / name, _HYDRA.format(version=RECORDINGS / f"{HYDRA[0]}.txt"))
    script = script_of(lines_of(spec_of(name, process_count=2)), tmp_path / "launch")

    done = subprocess.run(
        ["/bin/sh", script, "/bin/sh", "-c", command],
        check=False,
        timeout=60,
        env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "_jpsi_folder": str(tmp_path)},
    )

    assert done.returncode == code


# Sends a signal to the shell that has started it, and prints the one that it gets.
_SIGNAL_PROGRAM = """\
[ "$1" != --version ] || exec cat "{version}"
for name in HUP INT QUIT TERM ALRM USR1 USR2 XCPU; do
  trap "kill \\$!; echo $name; exit 0" $name
done
sleep 1000 >&- 2>&- & kill -s "$SIGNAL" $PPID
wait $!; wait"""


@pytest.mark.parametrize(
    ("version", "ends_by_signal"),
    [
        (OPEN_MPI[0], {"QUIT"}),
        (OPEN_MPI[1], {"QUIT"}),
        (HYDRA[0], {"HUP", "USR2", "XCPU"}),
        (INTEL, {"HUP", "USR2", "XCPU", "ALRM"}),
        ("unknown", set()),
    ],
    ids=["openmpi-4", "openmpi-5", "mpich", "intel", "unknown"],
)
@pytest.mark.parametrize("sent", ["HUP", "INT", "QUIT", "TERM", "ALRM", "USR1", "USR2", "XCPU"])
def test_a_signal_that_would_kill_the_program_is_replaced_by_term(
    tmp_path: Path, version: str, ends_by_signal: set[str], sent: str
) -> None:
    recording = RECORDINGS / f"{version}.txt"
    text = _SIGNAL_PROGRAM.format(version=recording if recording.exists() else "/dev/null")
    for name in ("mpirun", "mpiexec.hydra"):
        program(tmp_path / "bin" / name, text)
    script = script_of(lines_of(spec_of("mpirun")), tmp_path / "launch")
    environment = {"SIGNAL": sent, "_jpsi_folder": str(tmp_path), "_jpsi_stdin": "/dev/null"}

    assert run(script, "true", path=tmp_path / "bin", **environment) == [
        "TERM" if sent in ends_by_signal else sent
    ]


def test_a_colon_reaches_the_program(tmp_path: Path, name: str) -> None:
    """MPIs take a word that is a colon for the end of the command."""
    mpi_host = MpiHost(tmp_path, name)

    arguments = mpi_host.launch(HYDRA[0], "/bin/echo", "a", ":", "", "it's", ".b")

    hidden = arguments[arguments.index("--default-signal=TTIN") + 1 :]
    assert ":" not in hidden
    expected = "a :  it's .b"
    assert run(program(tmp_path / "again", 'exec "$@"'), *hidden) == [expected]
