"""The commands about jobs of this machine: any process finds jobs that another submitted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import jpsi

if TYPE_CHECKING:
    from conftest import Presence, Started

Run = Callable[..., subprocess.CompletedProcess[bytes]]
# Prints that it runs, and waits until the test writes to the fifo.
WAITING = ["sh", "-c", 'echo begun; echo oops >&2; read x <"$0"; echo done; exit 3']


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def submit(run: Run) -> Callable[..., str]:
    """Return a function that submits a job and returns its id."""

    def submit(*arguments: str, **options: Any) -> str:
        result = run("submit", *arguments, **options)
        assert (result.returncode, result.stderr) == (0, b"")
        (job_id,) = result.stdout.decode().split()
        return job_id

    return submit


def document(name: str, *command: str, **fields: Any) -> str:
    """Return a job document on one line."""
    spec = jpsi.JobSpec(command[0], list(command[1:]), name=name, **fields)
    return json.dumps(json.loads(jpsi.write_document(spec, as_json=True)))


def states(run: Run, *arguments: str) -> dict[str, str]:
    listed = json.loads(run("ls", "--json", *arguments).stdout)
    return {job["name"] or job["id"]: job["state"] for job in listed}


def test_a_job_is_submitted_found_waited_for_and_read(run: Run, submit: Callable[..., str]) -> None:
    job_id = submit("--name", "mine", "--", "sh", "-c", "echo out; echo err >&2; exit 7")

    waited = run("wait", job_id[:10])
    out, err = run("logs", "mine"), run("logs", "--stderr", job_id)
    (listed,) = json.loads(run("show", "mine", "--json").stdout)

    reason = f"jpsi: job {job_id} (mine): FAILED: the executable returned exit code 7\n".encode()
    assert (waited.returncode, waited.stdout, waited.stderr) == (7, b"", reason)
    assert (out.stdout, err.stdout) == (b"out\n", b"err\n")
    assert (listed["id"], listed["state"], listed["exit_code"]) == (job_id, "FAILED", 7)
    assert [it["state"] for it in listed["history"]] == ["NEW", "QUEUED", "ACTIVE", "FAILED"]
    assert listed["document"]["tasks"][0]["command"][:2] == ["sh", "-c"]


def test_show_prints_text_without_json(run: Run, submit: Callable[..., str]) -> None:
    job_id = submit("--name", "mine", "--", "sh", "-c", "echo 'a b'; exit 7")
    run("wait", job_id)

    text = run("show", "mine").stdout.decode()

    assert f"job:           {job_id}\n" in text
    assert "state:         FAILED\nexit code:     7\n" in text
    assert r"command:       sh -c 'echo '\''a b'\''; exit 7'" in text.splitlines()
    assert "(4 bytes)" in text


def test_every_command_reports_a_running_job(
    run: Run, submit: Callable[..., str], start: Callable[..., Started], fifo: Path
) -> None:
    job_id = submit("--", *WAITING, str(fifo))
    follower = start("logs", "-f", job_id)
    follower.wait_for(b"begun\n")

    assert states(run) == {job_id: "ACTIVE"}
    assert run("logs", job_id).stdout == b"begun\n"
    assert run("logs", "--stderr", job_id).stdout == b"oops\n"
    late = run("wait", "--timeout", "0.1", job_id)
    assert (late.returncode, late.stderr.decode()) == (
        124,
        f"jpsi: job {job_id} has not ended: it is ACTIVE\n",
    )

    fifo.write_text("go on\n")
    assert follower.end() == (0, b"begun\ndone\n", b"")
    assert run("wait", job_id).returncode == 3
    assert states(run) == {job_id: "FAILED"}


def test_a_job_is_cancelled_by_any_process(run: Run, submit: Callable[..., str], fifo: Path) -> None:
    job_id = submit("--name", "mine", "--", *WAITING, str(fifo))

    result = run("cancel", "mine", "--json")

    assert (result.returncode, result.stderr) == (0, b"")
    output = json.loads(result.stdout)
    assert (output["state"], output["remark"]) == ("CANCELED", None)
    assert states(run) == {"mine": "CANCELED"}
    assert b"CANCELED: jpsi cancelled it, after " in run("explain", job_id).stdout
    again = run("cancel", job_id)
    assert (again.returncode, again.stderr.decode()) == (
        0,
        f"jpsi: job {job_id} had already ended; there is nothing to cancel\n",
    )
    assert run("wait", job_id).returncode == 130


def test_problems_of_all_documents_are_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("version: 1\n")

    result = run("submit", "-f", "one.yaml", "-f", "missing.yaml", "-f", "-", input=b"{a")

    output = result.stderr.decode()
    assert (result.returncode, result.stdout) == (2, b"")
    for problem in ("one.yaml:1: tasks: is missing", "missing.yaml cannot be read", "standard input:1: "):
        assert problem in output
    assert states(run) == {}


def test_documents_are_submitted_together(run: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(document(name, "true"))

    result = run(
        "submit", "-f", "one.json", "-f", "-", "-f", "two.json", input=document("three", "false").encode()
    )
    ids = result.stdout.decode().split()

    assert (result.returncode, len(ids)) == (0, 3)
    waited = run("wait", *ids)
    assert (waited.returncode, waited.stderr.decode()) == (
        1,
        f"jpsi: job {ids[1]} (three): FAILED: the executable returned exit code 1\n",
    )
    assert states(run) == {"one": "COMPLETED", "three": "FAILED", "two": "COMPLETED"}


def test_each_line_is_a_job(run: Run) -> None:
    lines = "\n".join(document(f"job{number}", "sh", "-c", f"exit {number}") for number in range(3))

    result = run("submit", "--many", "-", "--json", input=f"{lines}\n\n".encode())

    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [job["name"] for job in found] == ["job0", "job1", "job2"]
    assert run("wait", "job0", "job1", "job2").returncode == 1


def test_no_job_is_submitted_if_one_line_is_wrong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "many").write_text(document("one", "true") + "\n{}\n" + document("two", "true") + "\n[]\n")

    result = run("submit", "--many", "many")

    assert (result.returncode, result.stdout) == (2, b"")
    assert b"many, line 2" in result.stderr
    assert b"many, line 4" in result.stderr
    assert states(run) == {}


def test_no_job_is_submitted_if_one_cannot_run(run: Run, tmp_path: Path) -> None:
    missing = document("two", "true", directory=tmp_path / "gone")
    lines = [document("one", "true"), "", missing, missing]

    result = run("submit", "--many", "-", input="\n".join(lines).encode())

    assert (result.returncode, result.stdout) == (2, b"")
    lines = result.stderr.decode().splitlines()
    assert lines[0] == "jpsi: 2 of 3 jobs can never run as they are; none was submitted:"
    assert lines[1].startswith("  - standard input, line 3; standard input, line 4: ")
    assert lines[1].endswith("make it, or set create_directory")
    assert len(lines) == 2
    assert states(run) == {}


def test_problems_name_the_options_of_the_command_line(run: Run) -> None:
    result = run("submit", "--dir", "gone", "--", "true")

    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.endswith(b"gone' does not exist; make it, or use --create-dir\n")


def test_script_shows_the_submission_and_submits_nothing(run: Run) -> None:
    text, content = run("script", "--", "echo", "it's"), run("script", "--json", "--", "echo", "it's")

    shown = json.loads(content.stdout)
    assert (text.returncode, text.stderr) == (0, b"")
    assert text.stdout.startswith(b"### /bin/sh /")
    assert (shown["script"], shown["command"]) == (None, ["/bin/sh", shown["path"]])
    assert "it'\\''s" in shown["run"]
    assert states(run) == {}


UNWRITABLE = {
    "full": (">/dev/full", b"jpsi: standard output cannot be written to: No space left on device\n"),
    "closed": (">&-", b"jpsi: standard output cannot be written to: Bad file descriptor\n"),
}


@pytest.mark.parametrize(("redirection", "message"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_output_that_cannot_be_written_is_reported_in_a_sentence(
    run: Run, start: Callable[..., Started], submit: Callable[..., str], redirection: str, message: bytes
) -> None:
    job_id = submit("--", "echo", "hello")
    run("wait", job_id)
    prefix = ("sh", "-c", f'exec "$@" {redirection}', "sh")

    assert start("ls", prefix=prefix).end() == (125, b"", message)
    assert start("logs", job_id, prefix=prefix).end() == (125, b"", message)


def test_ls_filters_jobs(run: Run, submit: Callable[..., str]) -> None:
    good, bad = submit("--name", "good", "--", "true"), submit("--name", "bad-1", "--", "false")
    run("wait", good, bad)

    assert states(run) == {"good": "COMPLETED", "bad-1": "FAILED"}
    assert states(run, "--state", "failed") == {"bad-1": "FAILED"}
    assert states(run, "--name", "b*") == {"bad-1": "FAILED"}
    assert states(run, "-x", "Local", "--name", "good") == {"good": "COMPLETED"}
    assert states(run, "-x", "slurm") == {}
    assert states(run, "--since", "0") == {}
    assert run("ls", "--ids", "--all").stdout.decode().split() == [good, bad]


def test_ls_counts_the_tasks_in_the_allocations_of_its_jobs(run: Run, submit: Callable[..., str]) -> None:
    fit = submit("--name", "fit", "--", "true")
    for _ in range(2):
        submit("--name", "fit.fit", "--attribute", f"jpsi.allocation={fit}", "--", "true")
    last = submit("--name", "last", "--", "true")

    assert run("ls", "--ids").stdout.decode().split() == [fit, last]
    assert run("ls").stderr == b"jpsi: 2 more run in the allocations of these: --members shows them\n"
    assert run("ls", "--limit", "1").stderr == b""
    members = run("ls", "--members")
    assert members.stdout.decode().count(f"in the allocation of {fit[:8]}") == 2
    assert members.stderr == b""
    assert run("ls", "fit.fit").stdout.decode().count("fit.fit") == 2


def test_two_terminals_show_the_same_jobs(
    run: Run, submit: Callable[..., str], start: Callable[..., Started], fifo: Path
) -> None:
    running, ended = submit("--", *WAITING, str(fifo)), submit("--", "true")
    run("wait", ended)

    others = [start("ls", "--json"), start("ls", "--json"), start("ls", "--json", "--refresh")]

    one, two, three = (json.loads(it.end()[1]) for it in others)
    assert one == two == three
    assert {job["id"]: job["state"] for job in one} == {running: "ACTIVE", ended: "COMPLETED"}
    run("cancel", running)


@pytest.mark.parametrize("command", [["ls", "--refresh"], ["explain"]], ids=" ".join)
def test_a_job_whose_process_was_killed_ends_on_refresh(
    run: Run, submit: Callable[..., str], fifo: Path, command: list[str]
) -> None:
    job_id = submit("--", *WAITING, str(fifo))
    fd = os.open(fifo, os.O_WRONLY)
    (listed,) = json.loads(run("ls", "--json").stdout)
    os.killpg(int(listed["native_id"].split(".")[0]), signal.SIGKILL)
    os.close(fd)

    explained = run(*command, *([job_id] if command == ["explain"] else []))

    assert b"FAILED" in explained.stdout
    result = json.loads(run("ls", "--json").stdout)
    assert [(job["id"], job["state"], job["reason"]) for job in result] == [(job_id, "FAILED", "lost")]


def test_a_table_fits_the_terminal(
    start_on_terminal: Callable[..., Started], submit: Callable[..., str]
) -> None:
    job_id = submit("--name", "mine", "--", "true")

    code, output, _ = start_on_terminal("ls").end()

    assert code == 0
    assert b"\x1b[1mSTATE" in output
    assert job_id[:8].encode() in output


def test_the_screen_is_drawn_until_ctrl_c(
    start_on_terminal: Callable[..., Started], submit: Callable[..., str]
) -> None:
    submit("--name", "mine", "--", "true")

    started = start_on_terminal("ls", "--watch")
    started.wait_for(b"mine")
    started.type(b"\x03")
    code, output, _ = started.end()

    assert code == 0
    assert output.endswith(b"\x1b[?25h\x1b[?1049l")
    assert b"Traceback" not in output


def test_a_bar_shows_how_many_have_ended(
    start_on_terminal: Callable[..., Started], submit: Callable[..., str], fifo: Path
) -> None:
    job_id = submit("--", *WAITING, str(fifo))

    started = start_on_terminal("wait", job_id)
    started.wait_for(b"0/1")
    fifo.write_text("go on\n")

    assert started.end()[0] == 3


def test_ctrl_c_stops_waiting_but_not_the_job(
    run: Run, start_on_terminal: Callable[..., Started], submit: Callable[..., str], fifo: Path
) -> None:
    job_id = submit("--", *WAITING, str(fifo))

    started = start_on_terminal("wait", job_id)
    started.wait_for(b"0/1")
    started.type(b"\x03")
    code, output, _ = started.end()

    assert code == 130
    assert b"Traceback" not in output
    assert states(run) == {job_id: "ACTIVE"}
    run("cancel", job_id)


def test_a_process_is_attached_to(run: Run, submit: Callable[..., str]) -> None:
    job_id = submit("--", "sh", "-c", "exit 7")
    (job,) = json.loads(run("show", "--json", job_id).stdout)

    result = run("attach", "-x", "local", job["native_id"], "--json")

    assert result.returncode == 7
    assert [json.loads(line)["state"] for line in result.stderr.splitlines()][-1] == "FAILED"


def test_an_executor_without_jobs_is_reported(run: Run, submit: Callable[..., str]) -> None:
    submit("--", "true")

    empty, unknown = run("ls", "-x", "LOCAL", "--name", "nosuch*"), run("ls", "-x", "nosuch")

    assert (empty.returncode, empty.stdout) == (0, b"")
    assert empty.stderr == b"jpsi: no job has the name 'nosuch*'\n"
    assert (unknown.returncode, unknown.stdout) == (2, b"")
    assert unknown.stderr.startswith(b"jpsi: there is no executor or target 'nosuch'; known are ")


USAGE_ERRORS = {
    "nothing to submit": (["submit"], 2, "no command to submit"),
    "two kinds of jobs": (
        ["submit", "-f", "a", "--", "true"],
        2,
        "-f a and the command 'true' are different jobs",
    ),
    "two time limits": (
        ["submit", "--time", "10", "-t", "20", "--", "true"],
        2,
        "--time and -t are one option",
    ),
    "a limit that is no number": (
        ["ls", "--limit", "x"],
        2,
        "invalid value for '--limit' / '-n': 'x' is not a whole number of at least 1",
    ),
    "two limits of a run": (["run", "--time", "10", "-t", "20", "true"], 2, "--time and -t are one option"),
    "standard input twice": (["submit", "-f", "-", "-f", "-"], 2, "standard input can be read once only"),
    "no such document": (["submit", "-f", "gone"], 2, "gone cannot be read: No such file or directory"),
    "no jobs in a file": (["submit", "--many", os.devnull], 2, "/dev/null has no job in it"),
    "no such executor": (["submit", "-x", "nosuch", "--", "true"], 2, "no executor 'nosuch'"),
    "no JOB": (["show"], 2, "name a job by its id, its native id or its name"),
    "no such JOB": (["cancel", "nosuch"], 2, "no job has the id, native id or name 'nosuch'"),
    "two forms": (["ls", "--json", "--ids"], 2, "--ids, --json and --watch exclude each other"),
    "no terminal": (["ls", "--watch"], 2, "--watch needs a terminal"),
    "no time": (["ls", "--since", "soon"], 2, "--since: 'soon' is not a time"),
    "no such state": (["ls", "--state", "DONE"], 2, "invalid value for '--state'"),
    "no native id": (["attach"], 2, "name a job by its native id"),
    "no such native id": (["attach", "-x", "local", "nonsense"], 125, "cannot follow nonsense on local: "),
}


@pytest.mark.parametrize(("arguments", "code", "message"), USAGE_ERRORS.values(), ids=USAGE_ERRORS)
def test_a_mistake_is_reported_in_a_sentence(run: Run, arguments: list[str], code: int, message: str) -> None:
    result = run(*arguments)

    assert (result.returncode, result.stdout) == (code, b"")
    assert result.stderr.decode().startswith(f"jpsi: {message}")
    assert b"Traceback" not in result.stderr


def test_a_killed_process_of_this_machine_is_not_advised_to_request_memory(
    run: Run, submit: Callable[..., str]
) -> None:
    job_id = submit("--", "sh", "-c", "kill -9 $$")
    run("wait", job_id)

    (advice,) = json.loads(run("explain", job_id, "--json").stdout)["advice"]

    assert advice.startswith(
        "the usual cause is that its machine had too little memory for it, and --memory has"
    )


def test_a_job_is_explained(run: Run, submit: Callable[..., str]) -> None:
    job_id = submit("--name", "mine", "--", "sh", "-c", "nosuchthing; exit 127")
    run("wait", job_id)

    output, text = json.loads(run("explain", "mine", "--json").stdout), run("explain", job_id).stdout.decode()

    assert (output["id"], output["state"]) == (job_id, "FAILED")
    assert output["sentence"].endswith(": the executable returned exit code 127")
    assert output["advice"][0].startswith("nosuchthing is not found on the node")
    assert text.startswith("FAILED: it failed, after ")
    assert "\n  | " in text


def test_the_interpreter_of_a_script_is_looked_for(
    run: Run, submit: Callable[..., str], tmp_path: Path
) -> None:
    """The shell says that the script is not found."""
    script = tmp_path / "crlf.sh"
    script.write_bytes(b"#!/bin/bash\r\necho hi\r\n")
    script.chmod(0o755)
    job_id = run("submit", "--", "./crlf.sh").stdout.decode().strip()
    run("wait", job_id)

    assert f"interpreter that does not: '/bin/bash\\r' (it has Windows line ends: dos2unix {script})\n" in (
        run("explain", job_id).stdout.decode()
    )
    # it was mended since
    script.write_bytes(b"#!/bin/sh\n")
    assert "Windows" not in run("explain", job_id).stdout.decode()


def test_several_jobs_are_explained(run: Run, submit: Callable[..., str]) -> None:
    """Jobs of one name are alike; others with the same exit code are not."""
    first, second = (submit("--name", name, "--", "sh", "-c", "exit 3") for name in ("one", "two"))
    again = submit("--name", "two", "--", "sh", "-c", "exit 3")
    waited = run("wait", first, second, again).stderr.decode().splitlines()

    explained = run("explain", first, "two").stdout.decode().splitlines()

    assert [it for it in explained if it.startswith("==>")] == [
        f"==> {first[:8]} (one) <==",
        f"==> {second[:8]} (two) and 1 more like it: {again[:8]} <==",
    ]
    assert waited[0] == f"jpsi: job {first} (one): FAILED: the executable returned exit code 3"


def test_processes_cannot_be_held(run: Run, submit: Callable[..., str], fifo: Path) -> None:
    job_id = submit("--", *WAITING, str(fifo))

    held, released = run("hold", job_id), run("release", job_id)
    run("cancel", job_id)
    ended = run("release", job_id)

    assert (held.returncode, released.returncode, ended.returncode) == (125, 0, 125)
    assert b"cannot be held" in held.stderr
    assert b"runs already; there is nothing to release" in released.stderr
    assert b"it has ended: CANCELED" in ended.stderr


def test_jobs_are_completed_by_the_shell(
    run: Run, submit: Callable[..., str], environment: dict[str, str]
) -> None:
    job_id = submit("--name", "mine", "--", "true")

    for word, expected in (("mi", "mine"), (job_id[:4], job_id)):
        environment |= {
            "_JPSI_COMPLETE": "bash_complete",
            "COMP_WORDS": f"jpsi show {word}",
            "COMP_CWORD": "2",
        }
        assert expected in run().stdout.decode()
    environment |= {"COMP_WORDS": "jpsi submit -x lo", "COMP_CWORD": "3"}
    assert "local" in run().stdout.decode()


def test_a_time_limit_is_kept_although_no_client_lives(run: Run, presence: Presence, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    job = run("submit", "--time", "0.1", "--", "sh", "-c", f"{presence.script}; echo >begun; sleep 1000")
    (tmp_path / "begun").read_text()
    while not presence.is_over():
        pass

    result = run("wait", job.stdout.decode().strip())

    assert (result.returncode, b"used up its duration" in result.stderr) == (124, True)


def test_several_jobs_are_listed_and_their_output_shown_by_their_names(run: Run) -> None:
    for name in ("one", "two", "three"):
        run(
            "run",
            "--name",
            name,
            "--stdout",
            f"{name}.txt",
            "--",
            "sh",
            "-c",
            f"echo {name}; test {name} != two",
        )

    assert run("logs", "one", "two").stdout.count(b" <==\n") == 2
    assert states(run, "one", "two") == {"one": "COMPLETED", "two": "FAILED"}
    assert states(run, "--state", "failed,canceled") == {"two": "FAILED"}
    assert run("ls", "nosuch").returncode == 2
    assert b"'WRONG' is not one of" in run("ls", "--state", "failed,wrong".upper()).stderr
    follows = run("logs", "-f", "one", "two")
    assert (follows.returncode, follows.stderr) == (
        2,
        b"jpsi: -f follows one job, and not 2: name one of them\n",
    )


def test_an_unsafe_work_directory_is_reported_once(
    run: Run, environment: dict[str, str], tmp_path: Path, submit: Callable[..., str]
) -> None:
    submit("true")
    unsafe = tmp_path / "unsafe"
    unsafe.mkdir()
    unsafe.chmod(0o777)
    config = Path(environment["XDG_CONFIG_HOME"], "jpsi", "config.yaml")
    config.parent.mkdir()
    config.write_text(f"executors: {{local: {{config: {{work_directory: {unsafe}}}}}}}\n")

    (job,) = run("ls", "--ids").stdout.decode().split()
    assert run("ls", job).stderr.count(b"not safe to use") == 1


def test_a_document_with_dependencies_for_this_machine_names_the_option(run: Run, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH --array=1-4%2 --time=1\ntrue\n")
    document = run("convert", "job.sh").stdout.decode()
    (tmp_path / "job.yaml").write_text(document.replace("    jpsi:\n", "    jpsi:\n      after: ['17']\n"))
    result = run("submit", "-x", "local", "-f", "job.yaml")

    assert result.returncode == 2
    assert result.stderr.decode().splitlines()[-1] == (
        "jpsi: job.yaml: local waits for no other job; jpsi does, with these in place of the document's: "
        "--after 17"
    )
