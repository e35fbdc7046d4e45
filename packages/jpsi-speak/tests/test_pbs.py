"""Programs that speak PBS: what they submit and list, and what is refused."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jpsi.plugin import CommandResult
from jpsi_pbs.fake import speak
from jpsi_testing.fake import FakeState
from speak_support import Programs


class PbsPrograms(Programs):
    """Programs that speak PBS."""

    def jobs(self, *ids: str) -> dict[str, Any]:
        """Return what qstat says of jobs, also of those that have ended."""
        listing: dict[str, dict[str, Any]] = json.loads(self.run("qstat", "-xtf", "-F", "json", *ids))
        return listing.get("Jobs", {})

    def ends(self) -> dict[str, tuple[str, int | None]]:
        """Wait for the jobs, and return the state and the exit code of each."""
        self.wait()
        return {name: (job["job_state"], job.get("Exit_status")) for name, job in self.jobs().items()}


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[PbsPrograms]:
    programs = PbsPrograms(tmp_path, speak)
    yield programs
    left = [job.native_id for job in programs.queue.jobs if not job.state.final]
    if left:
        programs.call("qdel", *left)
    programs.wait()
    programs.queue.close()


def test_a_job_runs_with_the_variables_of_pbs_at_home(programs: PbsPrograms) -> None:
    script = (
        "#!/bin/bash\n#PBS -N heat -l select=1:ncpus=2 -l walltime=5:00\n#PBS -j oe\n"
        'echo "$PBS_JOBID $PBS_JOBNAME $NCPUS $PBS_O_WORKDIR [$COLOUR]"\n'
        'pwd -P\ncat "$PBS_NODEFILE"\necho error >&2\n'
    )
    (programs.directory / "job.sh").write_text(script)

    assert programs.run("qsub", "job.sh") == "1.jpsi\n"

    assert programs.ends() == {"1.jpsi": ("F", 0)}
    assert (programs.directory / "heat.o1").read_text().splitlines() == [
        f"1.jpsi heat 2 {programs.directory} []",
        str(Path.home().resolve()),
        platform.node(),
        "error",
    ]
    assert not (programs.directory / "heat.e1").exists()


def test_variables_reach_a_job_by_name_and_all_of_them_at_once(programs: PbsPrograms) -> None:
    echo = 'echo "$COLOUR|$FORM|$PBS_O_PATH"'

    programs.run("qsub", "-v", "COLOUR,FORM='a,b'", "-o", "some", stdin=echo)
    programs.run("qsub", "-V", "-o", "all", stdin=echo)

    assert programs.ends() == {"1.jpsi": ("F", 0), "2.jpsi": ("F", 0)}
    assert (programs.directory / "some").read_text() == "red|a,b|/usr/bin:/bin\n"
    assert (programs.directory / "all").read_text() == "red||/usr/bin:/bin\n"


def test_a_script_without_an_interpreter_is_one_of_the_shell_that_is_named(programs: PbsPrograms) -> None:
    programs.run("qsub", "-S", "/bin/bash", "-o", "out", stdin="echo ${BASH_VERSION:+bash}\n")

    assert programs.ends() == {"1.jpsi": ("F", 0)}
    assert (programs.directory / "out").read_text() == "bash\n"


def test_a_command_needs_no_script(programs: PbsPrograms) -> None:
    programs.run("qsub", "-o", "out", "--", "/bin/echo", "a  b", "-N")

    assert programs.ends() == {"1.jpsi": ("F", 0)}
    assert (programs.directory / "out").read_text() == "a  b -N\n"


def test_an_array_has_elements(programs: PbsPrograms) -> None:
    echo = "echo $PBS_ARRAY_INDEX $PBS_ARRAY_ID $PBS_JOBID; exit $PBS_ARRAY_INDEX"

    assert programs.run("qsub", "-N", "a", "-J", "0-3:3%1", stdin=echo) == "1[].jpsi\n"
    assert programs.run("qsub", "-J", "1-2", "-o", "part-^array_index^", stdin="echo $PBS_ARRAY_INDEX") == (
        "2[].jpsi\n"
    )

    assert programs.ends() == {
        "1[].jpsi": ("F", 1),
        "1[0].jpsi": ("F", 0),
        "1[3].jpsi": ("F", 3),
        "2[].jpsi": ("F", 0),
        "2[1].jpsi": ("F", 0),
        "2[2].jpsi": ("F", 0),
    }
    assert [(programs.directory / f"a.o1.{it}").read_text() for it in (0, 3)] == [
        "0 1[].jpsi 1[0].jpsi\n",
        "3 1[].jpsi 1[3].jpsi\n",
    ]
    assert [(programs.directory / f"part-{it}").read_text() for it in (1, 2)] == ["1\n", "2\n"]


def test_dependencies_hold_jobs_back_until_they_are_met(programs: PbsPrograms) -> None:
    programs.run("qsub", "-h", "-J", "3-4", stdin="exit $PBS_ARRAY_INDEX")
    for kind in ("afterok", "afternotok", "afterany"):
        programs.run("qsub", "-W", f"depend={kind}:1[].jpsi", stdin="true")
    states = {name: job["job_state"] for name, job in programs.jobs().items() if "[" not in name}
    assert states == {f"{number}.jpsi": "H" for number in (2, 3, 4)}

    programs.run("qrls", "1[]")

    assert {name: end for name, end in programs.ends().items() if "[" not in name} == {
        "2.jpsi": ("F", None),
        "3.jpsi": ("F", 0),
        "4.jpsi": ("F", 0),
    }


def test_qdel_ends_jobs_and_qhold_keeps_them_from_starting(programs: PbsPrograms) -> None:
    programs.run("qsub", stdin="sleep 300")
    programs.run("qsub", "-W", "depend=afterany:1", stdin="exit 3")
    programs.run("qhold", "2")
    with programs.queue._changed:
        assert programs.queue._changed.wait_for(lambda: programs.queue.jobs[0].state is FakeState.RUNNING, 60)
    assert programs.jobs("1")["1.jpsi"]["exec_host"] == f"{platform.node()}/0"

    programs.run("qdel", "1.jpsi")

    assert programs.ends() == {"1.jpsi": ("F", 271), "2.jpsi": ("H", None)}
    programs.run("qrls", "2")
    assert programs.ends()["2.jpsi"] == ("F", 3)
    unknown = programs.call("qdel", "7")
    assert (unknown.returncode, unknown.stderr) == (153, "qdel: Unknown Job Id 7.jpsi\n")


def test_a_path_of_a_stream_may_have_colons(programs: PbsPrograms) -> None:
    (programs.directory / "at:10:30").mkdir()

    programs.run("qsub", "-o", f"{programs.directory}/at:10:30/out", "-e", "host:err", stdin="echo out")

    assert programs.ends() == {"1.jpsi": ("F", 0)}
    assert (programs.directory / "at:10:30/out").read_text() == "out\n"
    assert (programs.directory / "err").exists()


def test_streams_may_go_to_a_directory(programs: PbsPrograms) -> None:
    (programs.directory / "logs").mkdir()

    programs.run("qsub", "-o", "host:logs/", "-e", "logs", stdin="echo out; echo err >&2")

    assert programs.ends() == {"1.jpsi": ("F", 0)}
    assert (programs.directory / "logs/1.jpsi.OU").read_text() == "out\n"
    assert (programs.directory / "logs/1.jpsi.ER").read_text() == "err\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-p", "5"), "-p 5 cannot be kept: the executor local has no such option"),
        (("-l", "software=x"), "-l software=x cannot be kept: the executor local has no such option"),
        (("-a", "2300"), "-a 2300 cannot be kept: the executor local has no such option"),
        (("-W", "block=true"), "-W block=true: qsub would not return"),
        (("-W", "depend=on:2"), "-W depend=on:2 cannot be kept"),
        (("-o", "$PBS_JOBID.out"), "-o $PBS_JOBID.out cannot be kept"),
        (("-I",), "-I: an interactive job has no script"),
        (("-J", "5"), "illegal -J value"),
        (("-l", "select=2", "-l", "place=scatter"), "local is one machine, but the job needs 2 nodes"),
        (("-Z",), "invalid option -- 'Z'"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else "",
)
def test_what_cannot_be_kept_is_refused_by_name(
    programs: PbsPrograms, options: tuple[str, ...], message: str
) -> None:
    result = programs.call("qsub", *options, stdin="true")

    assert result.returncode != 0
    assert message in result.stderr
    assert programs.ends() == {}


@pytest.mark.parametrize("is_lenient", [False, True], ids=["strict", "lenient"])
@pytest.mark.parametrize(
    ("value", "resource"),
    [
        ("walltime=5x", "Resource_List.walltime"),
        ("walltime=1:2:3:4", "Resource_List.walltime"),
        ("mem=lots", "Resource_List.mem"),
        ("ncpus=x", "Resource_List.ncpus"),
        ("select=x", "Resource_List.select"),
        ("select=1:ncpus", "Resource_List.select"),
        ("select=1:ncpus=x", "select.ncpus"),
    ],
)
def test_a_wrong_value_is_the_error_of_qsub(
    programs: PbsPrograms, value: str, resource: str, *, is_lenient: bool
) -> None:
    result = programs.call("qsub", "-l", value, stdin="true", is_lenient=is_lenient)

    refusal = f"qsub: Illegal attribute or resource value {resource}\n"
    assert result == CommandResult(returncode=166, stderr=refusal)
    assert programs.ends() == {}


def test_a_script_has_no_arguments(programs: PbsPrograms) -> None:
    (programs.directory / "job.sh").write_text("true\n")

    assert "first cannot be kept" in programs.call("qsub", "job.sh", "first").stderr


def test_a_lenient_queue_warns(programs: PbsPrograms) -> None:
    result = programs.call("qsub", "-p", "5", stdin="true", is_lenient=True)

    assert result.stdout == "1.jpsi\n"
    assert result.stderr == "qsub: warning: -p 5 cannot be kept: the executor local has no such option\n"
    assert programs.ends() == {"1.jpsi": ("F", 0)}


def test_a_repeated_call_is_the_first_one_and_jobs_outlast_the_server(programs: PbsPrograms) -> None:
    first = programs.call("qsub", "-J", "1-2", "-o", "out-^array_index^", stdin="echo run", key="k")
    programs.run("qsub", "-h", stdin="true")

    programs.start()

    assert programs.call("qsub", "-J", "1-2", stdin="ignored", key="k") == first
    assert programs.ends() == {
        "1[].jpsi": ("F", 0),
        "1[1].jpsi": ("F", 0),
        "1[2].jpsi": ("F", 0),
        "2.jpsi": ("H", None),
    }
    assert [(programs.directory / f"out-{it}").read_text() for it in (1, 2)] == ["run\n", "run\n"]
    assert programs.run("qsub", stdin="true") == "3.jpsi\n"


def test_a_script_and_its_variables_reach_another_machine(programs: PbsPrograms) -> None:
    programs.queue.is_shared = programs.queue.is_local = False
    echo = "#!/bin/bash\necho '${HOME}' $COLOUR; tr '\\0' ' ' </proc/$$/cmdline\n"

    programs.run("qsub", "-v", "COLOUR", "-o", "out", stdin=echo)

    assert programs.ends() == {"1.jpsi": ("F", 0)}
    assert (programs.directory / "out").read_text() == "${HOME} red\n/bin/bash /dev/fd/3 "


def test_the_server_has_one_queue(programs: PbsPrograms) -> None:
    programs.run("qsub", "-q", "long", stdin="true")

    assert programs.run("qstat", "-Q", "-f").startswith("Queue: jpsi\n")
    assert "default_queue = jpsi\n" in programs.run("qstat", "-B", "-f")
    assert programs.jobs()["1.jpsi"]["queue"] == "long"


def test_the_queue_that_qstat_shows_is_no_queue_of_the_executor(programs: PbsPrograms) -> None:
    for queue in ("jpsi", "long"):
        programs.run("qsub", "-q", queue, stdin="true")

    specs = [job.attributes["spec"] for job in programs.queue.jobs]
    assert [it.attributes.queue_name for it in specs] == [None, "long"]
    assert {name: it["queue"] for name, it in programs.jobs().items()} == {"1.jpsi": "jpsi", "2.jpsi": "long"}
