"""`--after`: jobs that wait for jobs of any executor, by whatever word names them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from jpsi_cli.stored_jobs.dependencies import describe_awaited, describe_vain_waits, read_dependencies
from jpsi_cli.submission.run import _await_foreign
from jpsi_engine.job_store import Origin
from jpsi_testing.fake import FakeScheduler, on_path
from stored_jobs import encoded_end, stored_job

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A pipe to which a job listens: opening it to write lets the job end."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


@pytest.fixture
def shell(environment: dict[str, str], tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run lines as a user types them."""
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    (bin_directory / "jpsi").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m jpsi_cli "$@"\n')
    (bin_directory / "jpsi").chmod(0o755)
    path = f"{bin_directory}:{environment['PATH']}"

    def shell(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", text],
            env={**environment, "PATH": path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return shell


def only(run: Run, job_id: str) -> dict[str, object]:
    (found,) = [it for it in json.loads(run("ls", "--json", "--all").stdout) if it["id"] == job_id]
    return found


def submitted(run: Run, *arguments: str) -> str:
    result = run("submit", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().strip()


def test_the_line_of_the_guide_works(shell: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    result = shell(
        "a=$(jpsi submit -- sh -c 'echo first >>out')\n"
        "b=$(jpsi submit --after $a -- sh -c 'echo second >>out')\n"
        "jpsi wait $b && cat out"
    )

    assert (result.returncode, result.stdout) == (0, "first\nsecond\n")


def test_a_process_waits_where_no_system_does(run: Run, gate: Path, tmp_path: Path) -> None:
    first = submitted(run, "--name", "first", "--", "sh", "-c", f"cat '{gate}'")
    result = run("submit", "--after", first[:8], "--", "sh", "-c", "echo done >out")
    second = result.stdout.decode().strip()

    assert re.fullmatch(
        rf"jpsi: local cannot wait for job {first}, so process \d+ on \S+ does and then submits: it has to "
        rf"run until then\. If it is killed, jpsi ls shows that, and jpsi wait {second} starts another\n",
        result.stderr.decode(),
    )
    waiting = only(run, second)
    assert (waiting["state"], waiting["native_id"]) == ("NEW", None)
    assert re.fullmatch(
        rf"it is submitted after {first[:8]}; process \d+ on \S+ waits for that", str(waiting["remark"])
    )
    assert b"waits for that" in run("explain", second).stdout
    assert run("wait", "--timeout", "0", second).returncode == 124
    assert not (tmp_path / "out").exists()

    gate.write_text("")
    assert run("wait", second).returncode == 0
    assert (tmp_path / "out").read_text() == "done\n"
    assert b"attempt:" not in run("show", second).stdout


def test_another_process_takes_the_place_of_a_killed_one(run: Run, gate: Path, tmp_path: Path) -> None:
    submitted(run, "--name", "first", "--", "sh", "-c", f"cat '{gate}'")
    result = run("submit", "--after", "first", "--", "sh", "-c", "echo done >>out")
    second = result.stdout.decode().strip()
    (pid,) = re.findall(r"process (\d+)", result.stderr.decode())
    with contextlib.closing(PidFd(int(pid))) as process:
        os.kill(int(pid), signal.SIGKILL)
        process.wait()
    remark = str(only(run, second)["remark"])
    assert remark.endswith(f"but no process waits for that; start one: jpsi wait {second}")

    gate.write_text("")
    assert run("wait", second).returncode == 0
    assert run("wait", second).returncode == 0
    assert (tmp_path / "out").read_text() == "done\n"


def test_a_waiting_job_can_be_cancelled(run: Run, gate: Path, tmp_path: Path) -> None:
    first = submitted(run, "--", "sh", "-c", f"cat '{gate}'")
    second = submitted(run, "--after", first, "--", "sh", "-c", "echo done >out")

    assert run("cancel", second).returncode == 0
    gate.write_text("")
    assert run("wait", first).returncode == 0

    assert (only(run, second)["state"], run("wait", second).returncode) == ("CANCELED", 130)
    assert not (tmp_path / "out").exists()


def test_a_job_whose_dependency_fails_never_starts(run: Run, gate: Path, tmp_path: Path) -> None:
    first = submitted(run, "--name", "first", "--", "sh", "-c", f"cat '{gate}'; exit 3")
    second = submitted(run, "--after", "first", "--", "sh", "-c", "echo done >out")
    third = submitted(run, "--after", f"notok:{first}", "--", "sh", "-c", "echo third >third")
    gate.write_text("")

    assert run("wait", second).returncode == 130
    end = only(run, second)
    sentence = f"the job {first} (first) was to complete first, but it is FAILED with exit code 3"
    assert (end["state"], end["reason"], end["message"]) == ("CANCELED", "dependency", sentence)
    assert run("wait", third).returncode == 0
    refused = run("submit", "--after", "first", "--", "true")
    assert (refused.returncode, refused.stderr.decode()) == (2, f"jpsi: {sentence}\n")
    assert not (tmp_path / "out").exists()


def test_a_name_stands_for_all_jobs_that_have_it(run: Run, gate: Path, tmp_path: Path) -> None:
    ids = [submitted(run, "--name", "prepare", "--", "sh", "-c", f"cat '{gate}'") for _ in range(2)]
    earlier = submitted(run, "--name", "prepare", "--", "true")
    assert run("wait", earlier).returncode == 0
    result = run("submit", "--after", "prepare", "--", "sh", "-c", "echo done >out")
    last = result.stdout.decode().strip()

    counted, process = result.stderr.decode().splitlines()
    assert counted == (
        "jpsi: --after: prepare stands for 3 jobs; the new job waits for the 2 of them that have not ended"
    )
    assert process.startswith("jpsi: local cannot wait for 2 other jobs, so process ")
    assert re.match("it is submitted after .{8}, .{8};", str(only(run, last)["remark"]))
    gate.write_text("")
    assert run("wait", last, *ids).returncode == 0
    assert (tmp_path / "out").read_text() == "done\n"


def test_a_name_whose_newest_job_completed_still_means_the_failed_one(run: Run) -> None:
    first = submitted(run, "--name", "fit", "--", "sh", "-c", "exit 5")
    assert run("wait", "fit").returncode == 5
    second = submitted(run, "--name", "fit", "--", "true")

    waited, refused = run("wait", "fit"), run("submit", "--after", "fit", "--", "true")
    by_id = run("wait", first, second)
    refused_by_id = run("submit", "--after", f"{first},{second}", "--", "true")

    which = (
        f"fit stands for 2 jobs: this is number 1, which had ended when the newest was submitted, {second}\n"
    )
    end = f"jpsi: job {first} (fit): FAILED: the executable returned exit code 5"
    assert (waited.returncode, waited.stderr.decode()) == (5, f"{end}; {which}")
    assert (by_id.returncode, by_id.stderr.decode()) == (5, f"{end}\n")
    assert (refused.returncode, refused_by_id.returncode) == (2, 2)
    note = f"jpsi: --after: fit stands for 2 jobs; the newest alone is {second}\n"
    assert refused.stderr.decode() == note + refused_by_id.stderr.decode()
    assert refused_by_id.stderr.decode().endswith("it is FAILED with exit code 5\n")


def test_an_array_that_a_name_means_besides_the_newest_is_named_once(run: Run) -> None:
    array = submitted(run, "--name", "fit", "--array", "1-3", "--", "sh", "-c", "exit 5")
    assert run("wait", array).returncode == 5
    submitted(run, "--name", "fit", "--", "true")

    waited = run("wait", "fit").stderr.decode().splitlines()

    assert ["; fit stands for 2 jobs: " in it for it in waited] == [True, False, False]


_NO_WAITS = "local waits for no other job; jpsi does, with these in place of the document's"


def test_after_overrides_what_a_document_says(run: Run, tmp_path: Path) -> None:
    after = [jpsi.Dependency("99999"), jpsi.Dependency("7", jpsi.DependencyKind.ANY)]
    waiting = jpsi.JobSpec("true", attributes=jpsi.JobAttributes(after=after))
    (tmp_path / "job.yaml").write_text(jpsi.write_document(waiting))
    first = run("submit", "--", "true").stdout.decode().strip()

    for command in ("submit", "run", "script", "validate"):
        refused = run(command, "-x", "local", "-f", "job.yaml")
        assert refused.returncode == 2
        assert refused.stderr.decode() == f"jpsi: job.yaml: {_NO_WAITS}: --after 99999 --after any:7\n"
    for command in ("submit", "run", "script"):
        assert run(command, "-x", "local", "--after", first, "-f", "job.yaml").returncode == 0


def test_validate_names_dependencies_beside_other_problems(run: Run, tmp_path: Path) -> None:
    attributes = jpsi.JobAttributes(after=[jpsi.Dependency("99999")])
    waiting = jpsi.JobSpec("true", launcher="nosuch", attributes=attributes)
    (tmp_path / "job.yaml").write_text(jpsi.write_document(waiting))

    refused = run("validate", "-x", "local", "-f", "job.yaml")

    first, other = refused.stderr.decode().splitlines()
    assert refused.returncode == 2
    assert first == f"jpsi: job.yaml: {_NO_WAITS}: --after 99999"
    assert "'nosuch'" in other


def test_run_waits_itself(run: Run, gate: Path, start: Callable[..., object]) -> None:
    first = submitted(run, "--", "sh", "-c", f"cat '{gate}'")
    started = start("run", "--after", first, "--", "echo", "ran")
    line = started.process.stderr.readline()  # type: ignore[attr-defined]
    gate.write_text("")

    code, out, _ = started.end()  # type: ignore[attr-defined]
    waits = f"jpsi: local cannot wait, so jpsi waits here until job {first} has ended; Ctrl-C stops that\n"
    assert line.decode() == waits
    assert (code, out) == (0, b"ran\n")


class PidFd:
    """A process of any parent, whose end can be waited for."""

    def __init__(self, pid: int) -> None:
        self._fd = os.pidfd_open(pid)

    def wait(self) -> None:
        """Wait until it has ended."""
        select.select([self._fd], [], [])

    def close(self) -> None:
        os.close(self._fd)


MISTAKES = {
    "unknown": ("nosuch", "no job has the id, native id or name 'nosuch'; jpsi ls --all shows all"),
    "no kind": ("well:first", "--after: 'well' is none of ok, any and notok, nor is it a job"),
    "nothing": ("", "--after: '' is not of the form [KIND:]JOB with KIND one of ok, any, notok"),
    "a kind alone": ("ok:", "--after: 'ok:' is not of the form [KIND:]JOB with KIND one of ok, any, notok"),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_submits_nothing(run: Run, text: str, message: str) -> None:
    result = run("submit", "--after", text, "--", "true")

    assert (result.returncode, result.stdout, result.stderr.decode()) == (2, b"", f"jpsi: {message}\n")


def test_the_batch_system_waits_for_its_own_jobs(run: Run, environment: dict[str, str], gate: Path) -> None:
    with FakeScheduler(slots=0) as fake, on_path("slurm", fake):
        here = {**environment, "PATH": os.environ["PATH"]}
        ids = []
        for arguments in ((), ("--after", "one"), ("--after", "afterany:1,notok:one")):
            result = run("submit", "-x", "slurm", "--name", "one", *arguments, "--", "true", env=here)
            many = b"jpsi: --after: one stands for 2 jobs; the new job waits for all of them\n"
            assert (result.returncode, result.stderr) == (0, many if len(ids) > 1 else b"")
            ids.append(result.stdout.decode().strip())
        local = run("submit", "--after", ids[0], "--", "true", env=here)
        script = run("script", "-x", "slurm", "--after", ids[0], "--", "true", env=here).stdout.decode()
        unknown = run("submit", "-x", "slurm", "--after", "nosuch", "--", "true", env=here)
        run("cancel", *ids, local.stdout.decode().strip(), env=here)

    assert "#SBATCH --dependency=afterok:1\n" in script
    assert local.stderr.decode().startswith(f"jpsi: local cannot wait for job {ids[0]}, so process ")
    assert unknown.returncode == 2
    assert (
        "nor is it a job that others submitted: 'nosuch' is no job id of Slurm's" in unknown.stderr.decode()
    )


def test_explain_names_the_job_for_which_the_batch_system_waits(
    shell: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    script = """
        first=$(jpsi submit -x slurm --name prep -- sleep 60)
        second=$(jpsi submit -x slurm --after $first -- true)
        jpsi explain $second
        jpsi cancel $first $second
    """

    done = shell(f"jpsi fake slurm -- sh -c {shlex.quote(script)}")

    assert re.search(
        r"^  - it depends on the job \S+ \(prep\), which is (QUEUED|ACTIVE)$", done.stdout, re.MULTILINE
    ), done


def test_jobs_that_wait_in_vain_are_noted_with_the_job_that_failed() -> None:
    """A batch system may drop them, and tell nobody who does not ask."""
    failed, pbs = encoded_end(jpsi.JobState.FAILED, 5, 4), Origin("pbs", "", Path("/spool/pbs"))
    jobs = [
        stored_job("bad", "prep", "3", final=failed),
        stored_job("vain", native_id="4", submitted=1, after=[{"job": "3", "kind": "ok"}]),
        stored_job("open", native_id="5", submitted=1, after=[{"job": "4", "kind": "ok"}]),
        stored_job("met", native_id="6", submitted=1, after=[{"job": "3", "kind": "any"}]),
        # it got the same native id later
        stored_job("new", native_id="3", submitted=2),
        stored_job("fine", native_id="7", submitted=3, after=[{"job": "3", "kind": "ok"}]),
        stored_job("other", native_id="8", submitted=1, after=[{"job": "3", "kind": "ok"}], origin=pbs),
        stored_job("newer", native_id="9", submitted=1, after=[{"job": "3", "kind": "unknown"}]),
    ]

    notes = describe_vain_waits(jobs, jobs)

    assert notes == {"vain": "it waits for prep, which is FAILED with exit code 4: jpsi ls --refresh"}


def test_the_note_about_a_vain_wait_is_in_the_list(
    shell: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    script = """
        mkfifo gate
        first=$(jpsi submit -x slurm --name prep -- sh -c 'read it <gate; exit 4')
        second=$(jpsi submit -x slurm --after $first -- true)
        echo >gate
        jpsi wait $first
        jpsi ls
    """

    done = shell(f"jpsi fake slurm -- sh -c {shlex.quote(script)}")

    assert "it waits for prep, which is FAILED with exit code 4: jpsi ls --refresh\n" in done.stdout, done


def test_of_many_jobs_that_another_waits_for_those_that_matter_are_named() -> None:
    kind = jpsi.DependencyKind.OK
    jobs = [stored_job(f"job{number}", native_id=f"1_{number}") for number in range(8)]
    ended = [
        stored_job("good", native_id="2", final=encoded_end(jpsi.JobState.COMPLETED, 5)),
        stored_job("bad", "prep", "3", final=encoded_end(jpsi.JobState.FAILED, 5, 4)),
    ]

    named = describe_awaited([(kind, it) for it in (*jobs, *ended)])

    assert named == [
        "it depends on the job bad (prep), which is FAILED with exit code 4",
        "it depends on the job job0, which is QUEUED",
        "it depends on the job job1, which is QUEUED",
        "it depends on 7 more jobs: 6 QUEUED, 1 COMPLETED",
    ]


def test_the_elements_for_which_jpsi_has_waited_are_one_word(
    run: Run, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words stand in the request: an array may have thousands of elements."""
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, environment[name])
    array = run("submit", "--hold", "--array", "4-6", "--", "true").stdout.decode().strip()
    single = run("submit", "--hold", "--", "true").stdout.decode().strip()
    awaited: list[str] = []
    # as if they had ended
    monkeypatch.setattr(
        "jpsi_cli.stored_jobs.await_dependencies", lambda wanted: awaited.extend(str(it.job) for it in wanted)
    )

    with jpsi.JobExecutor("local") as local:
        found = _await_foreign(read_dependencies([array, f"any:{single}"]), local, "local")

    assert len(awaited) == 4
    assert sorted(found.met) == [f"any:{single}", f"ok:{array}[4-6]"]
    assert run("cancel", array, single).returncode == 0
