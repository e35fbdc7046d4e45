from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from conftest import Started

Run = Callable[..., subprocess.CompletedProcess[bytes]]
PRINT_ARGUMENTS = ["sh", "-c", r'printf "%s\0" "$@"', "sh"]

CODES = {
    "success": (["true"], 0, b""),
    "failure": (["sh", "-c", "exit 7"], 7, b""),
    "no such executable": (
        ["nosuchthing"],
        127,
        b"jpsi: job failed: the executable was not found: nosuchthing\n",
    ),
    "not executable": (
        ["/"],
        126,
        b"jpsi: job failed: the executable may not be executed: /\n",
    ),
}


@pytest.mark.parametrize(("command", "code", "errors"), CODES.values(), ids=CODES)
def test_the_exit_code_is_the_jobs(run: Run, command: list[str], code: int, errors: bytes) -> None:
    result = run("run", "--", *command)

    assert (result.returncode, result.stdout, result.stderr) == (code, b"", errors)


SCRIPTS = {
    "pre_launch fails": (
        "--pre-launch",
        "exit 3",
        3,
        b"jpsi: job failed: pre_launch failed, so that nothing was launched: script\n",
    ),
    "pre_launch ends the shell": (
        "--pre-launch",
        "exit 0",
        125,
        b"jpsi: job failed: pre_launch failed, so that nothing was launched: script\n",
    ),
    "post_launch fails": ("--post-launch", "exit 3", 0, b"jpsi: warning: post_launch failed\n"),
}


@pytest.mark.parametrize(("option", "text", "code", "errors"), SCRIPTS.values(), ids=SCRIPTS)
def test_failed_pre_and_post_launch_are_reported(
    run: Run, tmp_path: Path, option: str, text: str, code: int, errors: bytes
) -> None:
    (tmp_path / "script").write_text(text)

    result = run("run", option, "script", "--", "true")

    assert (result.returncode, result.stderr) == (code, errors)


def test_run_stages_files_in_and_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    where = ("--dir", "there", "--create-dir", "--stage-in", "a:in/b", "--cleanup", "in")

    result = run("run", *where, "--stage-out", "c:out/d", "--", "cp", "in/b", "c")

    assert (result.returncode, result.stderr) == (0, b"")
    assert (tmp_path / "out/d").read_text() == "text"
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["c"]


@pytest.mark.parametrize(
    ("code", "expected", "errors"),
    [
        (
            0,
            125,
            b"jpsi: job failed: the executable returned exit code 0; stage_out failed: a: there is no",
        ),
        (3, 3, b""),
    ],
)
def test_a_failed_stage_out_is_no_success(run: Run, code: int, expected: int, errors: bytes) -> None:
    result = run("run", "--stage-out", "a:b", "--", "sh", "-c", f"exit {code}")

    assert result.returncode == expected
    assert result.stderr.startswith(errors)
    assert bool(result.stderr) is bool(errors)


def test_a_missing_stage_in_file_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    result = run("run", "--stage-in", "a", "--", "true")

    assert result.returncode == 2
    assert f"stage_in[0].source: '{tmp_path}/a' does not exist".encode() in result.stderr


def test_a_signal_is_128_more_than_its_number(run: Run) -> None:
    result = run("run", "--", "sh", "-c", "kill -9 $$")

    assert result.returncode == 137
    assert result.stderr == b"jpsi: job failed: ended by SIGKILL\n"


def test_a_job_that_exceeds_its_duration_fails(run: Run) -> None:
    result = run("run", "--time", "0.2", "--", "sleep", "60")

    assert result.returncode == 124
    assert result.stderr == b"jpsi: job failed: the job used up its duration and was ended\n"


def test_streams_arrive_unchanged_and_complete(run: Run, tmp_path: Path) -> None:
    data = os.urandom(5_000_000) + b"no line end"
    (tmp_path / "data").write_bytes(data)

    result = run("run", "--", "sh", "-c", "cat data; cat data >&2")

    assert result.returncode == 0
    assert result.stdout == data
    assert result.stderr == data


# All characters but surrogates, which encode bytes here, and NUL, which ends an argument.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).map(os.fsencode)
HOSTILE = st.text(alphabet="${}A_b'\"\\`!* \n\t-=;&|<>()~#%").map(os.fsencode)
BYTES = st.binary(max_size=8).map(lambda data: data.replace(b"\0", b""))


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(TEXT | HOSTILE | BYTES, min_size=100, max_size=200))
@example(
    [b"", b"--", b"-x", b"--help", b"${HOME}", b"$${HOME}", b"$HOME", b"$(id)", b"`id`", b"\xff", b"\n", b""]
)
def test_arguments_after_the_dashes_arrive_unchanged(run: Run, arguments: list[bytes]) -> None:
    result = run("run", "--", *PRINT_ARGUMENTS, *arguments)

    assert result.returncode == 0, result.stderr
    assert result.stdout.split(b"\0")[:-1] == arguments


def test_the_command_needs_no_dashes(run: Run) -> None:
    result = run("run", "--name", "x", *PRINT_ARGUMENTS, "--name", "--", "-f")

    assert result.stdout.split(b"\0")[:-1] == [b"--name", b"--", b"-f"]


def test_expand_replaces_references_where_the_job_runs(run: Run) -> None:
    arguments = ["--env", "A=1", "--env", "B=<${A}>", "--", *PRINT_ARGUMENTS, "${B}", "$${B}", "$B"]

    expanded = run("run", "--expand", *arguments)
    plain = run("run", *arguments[:-3], "${B}", "$${B}", "$B")

    assert expanded.stdout.split(b"\0")[:-1] == [b"<1>", b"${B}", b"$B"]
    assert plain.stdout.split(b"\0")[:-1] == [b"${B}", b"$${B}", b"$B"]


def test_directory_environment_and_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "in").write_text("from the file\n", encoding="utf-8")
    options = ["--dir", "place", "--stdin", "in", "--stdout", "out", "--env", "A=1 ${NO_SUCH}2"]

    result = run("run", *options, "--", "sh", "-c", 'cat; echo "$A"; pwd; echo seen >&2')

    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"seen\n")
    assert (tmp_path / "place" / "out").read_text(
        encoding="utf-8"
    ) == f"from the file\n1 2\n{tmp_path}/place\n"


def test_the_file_with_the_errors_is_named_when_errors_explain(run: Run, tmp_path: Path) -> None:
    result = run("run", "--stderr", "err", "--stdin", "nosuch", "--", "cat")

    assert result.returncode == 125
    assert b"\njpsi: job failed: the file for standard input could not be opened: nosuch" in result.stderr


REFUSED = {
    "executor": (["-x", "nosuch"], 2, ["no executor 'nosuch'", "installed: "]),
    "launcher": (["--launcher", "nosuch"], 2, ["no launcher 'nosuch'"]),
    "directory": (["--dir", "nosuch"], 2, ["directory ", "nosuch' does not exist"]),
    "options": (
        ["--memory", "4X", "--time", "x", "--env", "A", "--nodes", "-1"],
        2,
        ["--memory: '4X' is", "--time: 'x' is", "--env: 'A' is", "--nodes: '-1' is"],
    ),
    "spec": (["--env", "1A=2", "--nodes", "3", "--processes", "2"], 2, ["1A", "cannot occupy 3 nodes"]),
    "document missing": (["-f", "nosuch.yaml"], 2, ["nosuch.yaml cannot be read: No such file or directory"]),
    "document is a directory": (["-f", "."], 2, [". cannot be read: Is a directory"]),
}


@pytest.mark.parametrize(("options", "code", "sentences"), REFUSED.values(), ids=REFUSED)
def test_refusals_give_the_reason(run: Run, options: list[str], code: int, sentences: list[str]) -> None:
    command = [] if "-f" in options else ["--", "touch", "it-ran"]

    result = run("run", *options, *command)

    text = result.stderr.decode()
    assert (result.returncode, result.stdout) == (code, b"")
    assert text.startswith("jpsi: ")
    assert [sentence for sentence in sentences if sentence not in text] == []
    assert "Traceback" not in text


CONFIGURATION = """\
targets:
  quick: {executor: local, defaults: {duration: 0.2}}
  away: {executor: local, url: "nosuch://cluster"}
  wrong: {executor: local, config: {kill_delai: 3}}
  gone: {executor: nosuch}
  empty: {defaults: {queue_name: q}}
"""


@pytest.fixture
def configured(environment: dict[str, str]) -> None:
    folder = Path(environment["XDG_CONFIG_HOME"], "jpsi")
    (folder / "overrides").mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIGURATION, encoding="utf-8")


def test_a_target_of_the_configuration_is_an_executor(run: Run, configured: None) -> None:
    result = run("run", "-x", "Quick", "--", "sleep", "60")

    assert result.returncode == 124


def test_the_configured_default_runs_jobs_without_an_executor(
    run: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["JPSI_CONFIG"] = "mine.yaml"
    (tmp_path / "mine.yaml").write_text(f"default_executor: quick\n{CONFIGURATION}", encoding="utf-8")

    result = run("run", "--", "sleep", "60")

    assert result.returncode == 124


MISCONFIGURED = {
    "away": "jpsi: no transport 'nosuch'; installed: ",
    "wrong": "jpsi: the configuration is wrong:\n  - ",
    "gone": "jpsi: no executor 'nosuch'; installed: ",
    "empty": "jpsi: the target 'empty' is configured without its executor",
}


@pytest.mark.parametrize(("target", "sentence"), MISCONFIGURED.items(), ids=MISCONFIGURED)
def test_a_mistake_in_the_configuration_is_reported_in_a_sentence(
    run: Run, configured: None, target: str, sentence: str
) -> None:
    result = run("run", "-x", target, "--", "true")

    text = result.stderr.decode()
    assert (result.returncode, result.stdout) == (125, b"")
    assert text.startswith(sentence)
    assert "Traceback" not in text


def test_a_broken_override_is_reported_in_a_sentence(
    run: Run, configured: None, environment: dict[str, str]
) -> None:
    override = Path(environment["XDG_CONFIG_HOME"], "jpsi", "overrides", "local.py")
    override.write_text("1 // 0\n", encoding="utf-8")

    result = run("run", "--", "true")

    assert (result.returncode, result.stdout) == (125, b"")
    assert result.stderr.startswith(f"jpsi: the override {override} cannot be loaded: ".encode())
    assert b"Traceback" not in result.stderr


DOCUMENT = """\
version: 1
resources:
  - {type: slot, label: task, count: 1, with: [{type: core, count: 1}]}
tasks:
  - {command: [sh, -c, 'echo "$A $B"; exit 4'], slot: task, count: {total: 1}}
attributes:
  system:
    duration: 60
    environment: {A: one, B: two}
"""


def test_a_document_runs_and_options_override_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(DOCUMENT, encoding="utf-8")

    as_it_is = run("run", "-f", "job.yaml")
    overridden = run("run", "-f", "-", "--env", "B=zwei", input=DOCUMENT.encode())

    assert (as_it_is.returncode, as_it_is.stdout, as_it_is.stderr) == (4, b"one two\n", b"")
    assert (overridden.returncode, overridden.stdout) == (4, b"one zwei\n")


@pytest.mark.parametrize("command", ["run", "submit", "script", "validate"])
def test_unknown_keys_of_a_document_are_errors_unless_the_user_means_them(run: Run, command: str) -> None:
    document = f"{DOCUMENT}    enviroment: 3\n".encode()

    refused = run(command, "-f", "-", input=document)
    accepted = run(command, "--lenient", "-f", "-", input=document)

    sentence = (
        "standard input:10: attributes.system.enviroment: is not known and has no effect; did you mean "
    )
    assert refused.returncode == 2
    assert refused.stderr.decode() == f"jpsi: {sentence}'environment'? (--lenient ignores it)\n"
    assert accepted.returncode == (4 if command == "run" else 0)
    assert accepted.stderr.decode() == f"jpsi: warning: {sentence}'environment'?\n"


@pytest.mark.parametrize("command", ["run", "submit", "script", "validate"])
def test_mistakes_in_retry_are_found_in_a_document_with_all_others(run: Run, command: str) -> None:
    retry = "retry:\n        timout: 2\n        lost: -1\n        '300': 1\n"
    document = f"{DOCUMENT}    jpsi:\n      queue_name: 3\n      {retry}".encode()

    done = run(command, "-f", "-", input=document)

    found = [it.partition("attributes.system.jpsi.")[2] for it in done.stderr.decode().splitlines()]
    assert done.returncode == 2
    assert b"standard input:13: attributes.system.jpsi.retry.timout: is none of out_of_memory" in done.stderr
    places = ["queue_name", "retry.timout", "retry.lost", "retry['300']"]
    assert [it.partition(": ")[0] for it in found[-4:]] == places
    assert found[-3].endswith("; did you mean 'timeout'?")


def test_options_complete_the_retry_of_a_document(run: Run) -> None:
    document = f"{DOCUMENT}    jpsi: {{retry: {{grow_memory: 2}}}}\n".encode()

    done = run("run", "-f", "-", "--retry", "oom=1", "--memory", "1G", input=document)

    warning = b"jpsi: warning: local is no batch system: --memory has no effect\n"
    assert (done.returncode, done.stderr) == (4, warning)
    alone = run("validate", "-f", "-", input=document)
    assert alone.returncode == 2
    assert b"standard input: attributes.retry: grow_memory needs a first request, resources" in alone.stderr


def test_unknown_keys_on_a_line_of_many_are_errors(run: Run, tmp_path: Path) -> None:
    document = yaml.safe_load(f"{DOCUMENT}    muonts: 3\n")
    (tmp_path / "many.jsonl").write_text(f"{json.dumps(document)}\n")

    refused = run("submit", "--many", "many.jsonl")

    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr.startswith(b"jpsi: many.jsonl, line 1: attributes.system.muonts: is not known")
    assert run("submit", "--lenient", "--many", "many.jsonl").returncode == 0


WORKFLOW = "version: 1\ntasks:\n  - {name: a, command: [x]}\n  - {name: b, command: [x], depend_on: [a]}\n"


@pytest.mark.parametrize("command", ["run", "submit", "script", "validate"])
def test_a_document_of_another_language_names_the_command_that_takes_it(run: Run, command: str) -> None:
    workflow = run(command, "-f", "-", input=WORKFLOW.encode())
    request = run(command, "-f", "-", input=b"command: [x]\nmuonts: {}\n")

    expected = "jpsi: standard input:1: is no job document; `{}` takes it\n"
    assert (workflow.returncode, workflow.stderr.decode()) == (2, expected.format("jpsi workflow run"))
    assert (request.returncode, request.stderr.decode()) == (2, expected.format("jpsi request run"))


BAD_DOCUMENTS = {
    "no YAML": (b"a: [", ["standard input:1: ", "YAML"]),
    "no text": (b"a: \xff", ["standard input is not text in UTF-8: byte 4 is 0xff"]),
    "empty": (b"", ["standard input"]),
    "everything wrong": (
        DOCUMENT.replace("version: 1", "version: 7").replace("slot: task", "slot: tusk").encode()
        + b"extra: 1\n",
        ["version", "tusk", "extra"],
    ),
}


@pytest.mark.parametrize(("document", "sentences"), BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS)
def test_a_bad_document_is_refused_with_all_its_mistakes(
    run: Run, document: bytes, sentences: list[str]
) -> None:
    result = run("run", "-f", "-", input=document)

    text = result.stderr.decode()
    assert (result.returncode, result.stdout) == (2, b"")
    assert [sentence for sentence in sentences if sentence not in text] == []
    assert "Traceback" not in text


def test_json_writes_each_state_on_a_line(run: Run) -> None:
    result = run("run", "--json", "--", "sh", "-c", "echo out; printf 'no line end' >&2; exit 3")

    *first, last = [json.loads(line) for line in result.stderr.splitlines() if line.startswith(b"{")]
    assert (result.returncode, result.stdout) == (3, b"out\n")
    assert [status["state"] for status in first] == ["QUEUED", "ACTIVE"]
    assert (last["state"], last["exit_code"], last["reason"]) == ("FAILED", 3, "exit_code")
    assert last["native_id"] == first[0]["native_id"]
    assert b"no line end\n{" in result.stderr


CLOSED = {
    "full": (">/dev/full", b"jpsi: standard output cannot be written to: No space left on device"),
    "closed": (">&-", b"jpsi: standard output cannot be written to: Bad file descriptor"),
}


@pytest.mark.parametrize(("redirection", "message"), CLOSED.values(), ids=CLOSED)
def test_output_that_cannot_be_written_is_a_failure(
    start: Callable[..., Started], redirection: str, message: bytes
) -> None:
    started = start("run", "--", "echo", "x", prefix=("sh", "-c", f'exec "$@" {redirection}', "sh"))

    code, _, errors = started.end()

    assert code == 125
    assert message in errors
    assert b"Traceback" not in errors


def test_a_closed_error_stream_changes_nothing(start: Callable[..., Started]) -> None:
    started = start(
        "run", "--", "sh", "-c", "echo x; exit 3", prefix=("sh", "-c", 'exec "$@" 2>&- <&-', "sh")
    )

    assert started.end() == (3, b"x\n", b"")


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_document_without_its_option_is_told_from_a_program(
    run: Callable[..., subprocess.CompletedProcess[bytes]], tmp_path: Path, command: str
) -> None:
    (tmp_path / "job.yaml").write_text("version: 1\n")

    result = run(command, "job.yaml")

    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"jpsi: job.yaml is no program; if it is a job document: -f job.yaml\n")


def test_a_document_that_is_no_lines_of_json_is_told_at_once(
    run: Callable[..., subprocess.CompletedProcess[bytes]], tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text("version: 1\nresources:\n  - {type: slot}\n")

    result = run("submit", "--many", "job.yaml")

    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr == (
        b"jpsi: job.yaml has no job document in JSON on any line; if it is one document: -f job.yaml\n"
    )
