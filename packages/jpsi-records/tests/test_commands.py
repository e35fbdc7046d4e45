"""The command `jpsi request`."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from fake_dispatcher import spec
from forked_jpsi import run_as_text, start_jpsi
from jpsi_records import formatting
from jpsi_records.model.entities import ExecutionState
from jpsi_records.records.records import Records
from jpsi_testing.forks import ForkedProcess
from jpsi_testing.waiting import eventually

#: The lease of a dispatcher whose end other dispatchers cannot detect.
LEASE_SECONDS = 60
Run = Callable[..., subprocess.CompletedProcess[str]]
WORDS = """\
command: [sort, "${JPSI_ROOT}/words"]
environment: {LC_ALL: C}
mounts:
  /words: {kind: text, content: "b\\na\\n"}
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "words.yaml").write_text(WORDS)

    def run_(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = run_as_text("request", *arguments, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done

    return run_


def test_listing_loads_no_database_before_anything_was_recorded(tmp_path: Path) -> None:
    program = "import sys; sys.modules['sqlalchemy'] = None; from jpsi_cli.main import main; main()"
    command = [sys.executable, "-c", program, "request", "ls", "--records", "nowhere"]

    table, document = (
        subprocess.run([*command, *more], check=True, capture_output=True, text=True, cwd=tmp_path).stdout
        for more in ([], ["--json"])
    )

    assert table.startswith("REQUEST")
    assert json.loads(document) == []
    assert not (tmp_path / "nowhere").exists()


def test_an_existing_result_is_shown_and_not_recomputed(run: Run, tmp_path: Path) -> None:
    first, second = run("run", "words.yaml"), run("run", "words.yaml")

    assert first.stdout == second.stdout == "a\nb\n"
    assert re.fullmatch(r"jpsi: computed by execution (\S+): complete with exit code 0\n", first.stderr)
    execution = first.stderr.split()[4].removesuffix(":")
    reused = (
        rf"jpsi: reused the result of execution {execution} of [-\d]+ [:\d]+: complete with exit code 0\n"
    )
    assert re.fullmatch(reused, second.stderr)
    (one, other) = json.loads(run("ls", "--json").stdout)
    assert one["execution"] == other["execution"]
    heading, *rows = run("ls").stdout.splitlines()
    assert heading.split() == ["REQUEST", "STATE", "PRIORITY", "OWNER", "EXECUTION", "RESULT", "COMMAND"]
    assert [execution in it for it in rows] == [True, True]
    assert [re.search(r"(computed|reused): complete", it)[1] for it in rows] == ["computed", "reused"]


def test_a_long_command_is_cut_to_the_width_of_a_terminal(tmp_path: Path) -> None:
    command = spec("sh", "-c", "x" * 200)
    with Records(tmp_path / "records") as records:
        request = records.submit(command)

    (_, whole), (_, cut), (_, least) = (
        formatting.requests([request], {}, (), width).splitlines() for width in (None, 120, 40)
    )

    assert whole.endswith("x" * 200)
    assert (len(cut), cut[-1]) == (120, "…")
    assert least.endswith("  sh -c xxxxx…")


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (160, "REQUEST STATE PRIORITY OWNER EXECUTION RESULT COMMAND"),
        (120, "REQUEST STATE PRIORITY OWNER RESULT COMMAND"),
        (100, "REQUEST STATE RESULT COMMAND"),
        (80, "REQUEST STATE RESULT COMMAND"),
    ],
)
def test_requests_fit_the_width_of_a_terminal(tmp_path: Path, width: int, headings: str) -> None:
    with Records(tmp_path / "records") as records:
        request = attrs.evolve(records.submit(spec("sh", "-c", "x" * 200)), owner="ada")
        execution = records.execution(str(request.execution))
        ended = attrs.evolve(execution, state=ExecutionState.COMPLETE, exit_code=0)

    lines = formatting.requests([request], {ended.id: ended}, {request.id}, width).splitlines()

    assert lines[0].split() == headings.split()
    assert all(len(it) <= width for it in lines)
    assert lines[1].startswith(f"{request.id}  ")
    assert "  computed: comp" in lines[1]


def test_the_output_of_an_old_request_is_shown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "both.yaml").write_text('command: [sh, -c, "echo out; echo err >&2"]\n')
    request = json.loads(run("run", "both.yaml", "--json").stdout)["request"]["id"]

    assert run("logs", request).stdout == "out\n"
    assert run("logs", "--stderr", request).stdout == "err\n"
    execution = json.loads(run("show", request, "--json").stdout)["execution"]["id"]
    assert run("logs", execution).stdout == "out\n"


def test_a_request_without_output_says_so(run: Run) -> None:
    draft = json.loads(run("draft", "words.yaml", "--json").stdout)["id"]
    queued = json.loads(run("submit", "words.yaml", "--json").stdout)["id"]

    assert run("logs", draft, code=2).stderr == f"jpsi: request {draft} has no execution: it is draft\n"
    assert "has not begun" in run("logs", queued, code=2).stderr


def test_a_preview_can_be_submitted_as_long_as_it_holds(run: Run) -> None:
    plan = json.loads(run("preview", "words.yaml", "--json").stdout)
    assert (plan["hit"], plan["runs"]) == (None, True)
    run("find", "words.yaml", code=1)

    run("submit", "words.yaml", "--plan", plan["plan"])
    result = run("submit", "words.yaml", "--plan", plan["plan"], code=125)

    assert "something has changed" in result.stderr
    assert "would run" not in run("preview", "words.yaml").stdout


def test_a_miss_is_explained_by_its_differences(run: Run, tmp_path: Path) -> None:
    run("run", "words.yaml")
    (tmp_path / "other.yaml").write_text(WORDS.replace("LC_ALL: C", "LC_ALL: de"))

    result = run("preview", "other.yaml")
    assert '  environment.LC_ALL: "de", there "C"' in result.stdout.splitlines()

    request = json.loads(run("submit", "other.yaml", "--json").stdout)["id"]
    assert '    environment.LC_ALL: "de", there "C"' in run("explain", request).stdout.splitlines()


def test_a_preview_and_an_explanation_show_the_closest_executions_alone(run: Run, tmp_path: Path) -> None:
    def request(*values: str) -> str:
        variables = dict(zip("ABC", values, strict=False))
        (tmp_path / "a.yaml").write_text(json.dumps({"command": ["true"], "environment": variables}))
        return "a.yaml"

    for values in (("1", "2"), ("1", "3"), ("1", "4"), ("1", "5"), ("7", "7", "7")):
        run("submit", request(*values))
    run("dispatch", "--until-idle")

    shown = run("preview", request("1", "6")).stdout
    explained = run("explain", run("submit", "a.yaml").stdout.strip()).stdout
    run("submit", request("9", "9"))
    nearest = run("preview", request("9", "8")).stdout

    there = r'B: "6", there "(\d)"'
    assert re.findall(there, shown) == re.findall(there, explained) == ["5", "4", "3"]
    assert shown.count("close: execution") == explained.count("is close") == 3
    assert shown.endswith("\n\nand 2 more, which --json lists\n")
    assert len(json.loads(run("preview", request("1", "8"), "--json").stdout)["near_misses"]) == 5
    assert nearest.count("close: execution") == 1
    assert nearest.endswith("\n\nand 4 more, which --json lists\n")


@pytest.mark.parametrize(
    ("mount", "changes", "explanation"),
    [
        (
            {"kind": "collection", "name": "mine", "writable": False},
            {},
            "the collection mine; changed: a; only here: d, e, f and 2 more; only there: c",
        ),
        ({"kind": "collection_file", "name": "mine", "path": "/a"}, {}, "the file /a of the collection mine"),
        ({"kind": "text", "content": "1"}, {"content": "2"}, "the content in the request"),
        ({"kind": "json", "content": 1}, {"content": 2}, "the content in the request"),
    ],
    ids=lambda it: it.get("kind", "") if isinstance(it, dict) else "",
)
def test_a_difference_of_inputs_names_the_collection_and_the_files(
    run: Run, tmp_path: Path, mount: dict[str, object], changes: dict[str, object], explanation: str
) -> None:
    def write(files: dict[str, str], mount: dict[str, object]) -> None:
        document = {"command": ["cat", "${JPSI_ROOT}/in"], "mounts": {"/in": mount}}
        (tmp_path / "a.yaml").write_text(json.dumps(document))
        (tmp_path / files["folder"]).mkdir()
        for file in files["names"]:
            (tmp_path / files["folder"] / file).write_text(files["a"] if file == "a" else "same")
        run("put", files["folder"], "--name", "mine")

    write({"folder": "old", "names": "abc", "a": "1"}, mount)
    run("submit", "a.yaml")
    write({"folder": "new", "names": "abdefgh", "a": "2"}, {**mount, **changes})

    shown = run("preview", "a.yaml").stdout
    request = run("submit", "a.yaml").stdout.strip()
    run("put", "old", "--name", "mine")
    explained = run("explain", request).stdout

    is_file = mount["kind"] != "collection"
    digests = (
        [digest("2"), digest("1")] if is_file else [run("put", it).stdout.strip() for it in ("new", "old")]
    )
    expected = 'mounts./in.digest: "{}", there "{}" (here that of {})'.format(*digests, explanation)
    assert shown.splitlines()[-1] == f"  {expected}"
    then = expected.replace("the collection mine", "the collection that was mine at the time")
    assert explained.splitlines()[-1] == f"    {then}"


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def test_a_difference_of_directories_of_collections_is_known_before_the_request(
    run: Run, tmp_path: Path
) -> None:
    """The digest of a directory in a collection is one that no command has printed."""
    mount = {"kind": "collection", "name": "mine", "path": "/sub", "writable": False}
    (tmp_path / "a.yaml").write_text(json.dumps({"command": ["ls"], "mounts": {"/in": mount}}))
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for text in ("1", "2"):
        (tmp_path / "in" / "sub" / "a").write_text(text)
        run("put", "in", "--name", "mine")
        shown = run("preview", "a.yaml").stdout
        run("submit", "a.yaml")

    assert shown.endswith(" (here that of the directory /sub of the collection mine; changed: a)\n")


def test_names_in_differences_cannot_control_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = "evil\033[31m\nclose: execution forged"
    mount = {"kind": "collection", "name": evil, "writable": False}
    document = {"command": ["ls"], "mounts": {f"/in{evil}": mount}}
    (tmp_path / "a.yaml").write_text(json.dumps(document))
    (tmp_path / "in").mkdir()
    for text in ("1", "2"):
        (tmp_path / "in" / evil).write_text(text)
        run("put", "in", "--name", evil)
        shown = run("preview", "a.yaml").stdout
        request = run("submit", "a.yaml").stdout.strip()
    explained = run("explain", request).stdout

    for found in (shown, explained):
        assert not any(it.startswith("close: execution forged") for it in found.splitlines())
        assert found.count(r"evil\x1b[31m\nclose: execution forged") == 3


def test_a_difference_of_inputs_that_are_gone_is_shown_by_digests(run: Run, tmp_path: Path) -> None:
    mount = {"kind": "collection", "name": "mine", "writable": False}
    (tmp_path / "a.yaml").write_text(json.dumps({"command": ["ls"], "mounts": {"/in": mount}}))
    for text in ("1", "2"):
        (tmp_path / "in").write_text(text)
        found = run("put", "in", "--name", "mine", "--records", "rec").stdout.strip().partition(":")[2]
        if text == "1":
            old = found
            run("submit", "a.yaml", "--records", "rec")
    (next((tmp_path / "rec").rglob(old[2:]))).unlink()

    shown = run("preview", "a.yaml", "--records", "rec").stdout

    assert shown.endswith(f'there "sha256:{old}" (here that of the collection mine)\n')


def test_a_preview_that_shows_all_executions_counts_none(run: Run, tmp_path: Path) -> None:
    run("run", "words.yaml")
    (tmp_path / "other.yaml").write_text(WORDS.replace("LC_ALL: C", "LC_ALL: de"))

    assert "--json" not in run("preview", "other.yaml").stdout


def test_a_failure_is_the_exit_code(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fails.yaml").write_text("command: [sh, -c, 'echo no >&2; exit 3']")

    done = run("run", "fails.yaml", code=3)

    assert done.stderr.endswith(": failed with exit code 3\nno\n")
    again = run("run", "fails.yaml", code=3)
    assert again.stderr.startswith("jpsi: computed by execution ")


def test_run_writes_json_for_programs(run: Run) -> None:
    first, second = run("run", "--json", "words.yaml"), run("run", "--json", "words.yaml")

    computed, reused = json.loads(first.stdout), json.loads(second.stdout)
    assert (computed["is_reused"], reused["is_reused"]) == (False, True)
    assert computed["execution"]["id"] == reused["execution"]["id"] == reused["request"]["execution"]
    assert (reused["request"]["outcome"], reused["execution"]["exit_code"]) == ("complete", 0)
    assert first.stderr.endswith("\na\nb\n")


def test_the_executor_and_the_time_limit_are_options(run: Run, tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text("command: [sleep, '60']\nattempts: 1\n")

    assert "no executor 'nosuch'" in run("run", "-x", "nosuch", "words.yaml", code=2).stderr
    assert "--time: 'soon' is not a time" in run("run", "--time", "soon", "words.yaml", code=2).stderr
    submitted = json.loads(run("submit", "-x", "local", "--time", "1m", "--json", "words.yaml").stdout)
    assert submitted["request_spec"]["placement"] == {"executor": "local", "duration": 60.0}
    assert run("run", "-x", "local", "--time", "1", "slow.yaml", code=124).stdout == ""


def test_a_request_whose_job_is_cancelled_has_no_result(run: Run, tmp_path: Path) -> None:
    script = f'{shlex.quote(sys.executable)} -m jpsi_cli cancel "$JPSI_JOB_ID"; sleep 60'
    (tmp_path / "cancelled.yaml").write_text(json.dumps({"command": ["/bin/sh", "-c", script]}))

    assert "the job was cancelled\n" in run("run", "cancelled.yaml", code=130).stderr


def test_a_placement_without_effect_is_reported_and_that_of_the_only_request_has_effect(run: Run) -> None:
    first = json.loads(run("submit", "-x", "local", "--json", "words.yaml").stdout)
    draft = json.loads(run("draft", "words.yaml", "--json").stdout)["id"]
    warning = (
        "jpsi: warning: the time limit (--time) has no effect, because the computation already waits on "
        f"local for request {first['id']}\n"
    )

    second = run("submit", "--time", "1h", "--json", "words.yaml")
    assert second.stderr == warning
    assert "warning" not in run("commit", draft).stderr

    for request in (first["id"], json.loads(second.stdout)["id"], draft):
        run("cancel", request)
    done = run("run", "--time", "1m", "--json", "words.yaml")
    assert "warning" not in done.stderr
    execution = json.loads(done.stdout)["execution"]
    assert (execution["id"], execution["placement"]) == (first["execution"], {"duration": 60.0})
    assert f"jpsi: computed by execution {execution['id']}: complete" in done.stderr
    request = json.loads(done.stdout)["request"]["id"]
    assert "waited for requests that were cancelled" in run("explain", request).stdout
    assert "computed: complete" in next(it for it in run("ls").stdout.splitlines() if request in it)


def test_a_job_that_reported_a_failure_does_not_count_as_success(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fails.yaml").write_text("command: [sh, -c, 'echo failure no input >$JPSI_PROGRESS']")

    done = run("run", "fails.yaml", code=1)

    assert "failed with exit code 0\njpsi: no input\n" in done.stderr


@pytest.mark.parametrize(("mode", "code"), [(None, 127), (0o644, 126)], ids=["missing", "not executable"])
def test_a_program_that_cannot_be_started_has_failed(
    run: Run, tmp_path: Path, mode: int | None, code: int
) -> None:
    program = tmp_path / "program"
    if mode is not None:
        program.touch(mode)
    (tmp_path / "missing.yaml").write_text(f"command: ['{program}']\nattempts: 1\n")

    done = run("run", "missing.yaml", code=code)

    assert "failed (executable)\n" in done.stderr
    assert "computed" not in done.stderr
    assert "cancelled" not in done.stderr


def test_every_command_says_that_a_request_without_a_result_has_failed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "missing.yaml").write_text(f"command: ['{tmp_path}/program']\n")
    request = run("submit", "missing.yaml").stdout.strip()
    run("dispatch", "--until-idle")

    (row,) = run("ls", "--state", "failed").stdout.splitlines()[1:]
    assert row.split()[1] == "failed"
    assert "failed (executable)" in row
    assert len(run("ls", "--state", "cancelled").stdout.splitlines()) == 1
    waited = run("wait", request, code=1).stdout
    assert waited.startswith(f"request {request}: failed (executable): ")
    assert "program" in waited
    preview = run("preview", "missing.yaml").stdout
    again = run("submit", "missing.yaml").stdout.strip()
    others = [preview, run("show", request).stdout, run("explain", again).stdout]
    assert all("failed (executable)" in it for it in others)
    assert not [it for it in [*others, waited] if "cancelled" in it]


def test_invalid_progress_is_reported(run: Run) -> None:
    execution = json.loads(run("submit", "words.yaml", "--json").stdout)["execution"]

    for wrong in ("nan", "1.5"):
        assert "0" in run("progress", execution, wrong, code=2).stderr


def test_a_request_that_can_never_run_is_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fails.yaml").write_text("command: ['false']")
    failed = json.loads(run("submit", "fails.yaml", "--json").stdout)["id"]
    (tmp_path / "after.yaml").write_text(f"command: ['true']\nafter: [{failed}]")

    done = run("run", "after.yaml", code=125)

    why = f"request {failed} was to complete first, but it is failed with exit code 1\n"
    assert done.stderr.endswith(f"has no execution: {why}")
    after = done.stderr.split()[2]
    assert run("explain", after).stdout.endswith(f"is dependency_failed and has no execution: {why}")
    assert f"warning: it would never run: {why}" in run("preview", "after.yaml").stdout


@pytest.mark.clause("records-use-cases")
def test_every_use_case_of_a_request_that_was_made(run: Run) -> None:
    request = json.loads(run("submit", "words.yaml", "--priority", "0", "--label", "a=b", "--json").stdout)
    execution = request["execution"]
    assert request["labels"] == {"a": "b"}

    run("dispatch", "--until-idle")
    assert "queued, priority 0" in run("show", request["id"]).stdout
    run("priority", request["id"], "2.5")
    run("dispatch", "--until-idle")
    assert "complete with exit code 0" in run("show", execution).stdout

    again = json.loads(run("rerun", execution, "--json").stdout)
    assert again["execution"] != execution
    run("cancel", again["id"])
    attached = json.loads(run("attach", "words.yaml", execution, "--json").stdout)
    assert attached["execution"] == execution
    run("invalidate", execution, "--why", "wrong input")
    assert "wrong input" in run("show", execution).stdout
    assert {it["priority"] for it in json.loads(run("usage", "--json").stdout)} >= {0, 2.5}
    assert "queued" in run("usage", "--execution", execution).stdout


def test_a_collection_is_stored_and_retrieved(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "a").write_text("1")

    digest = run("put", "in", "--name", "mine").stdout.strip()
    run("get", digest, "out")
    run("get", "mine", "again")

    assert (tmp_path / "out" / "deep" / "a").read_text() == "1"
    assert (tmp_path / "again" / "deep" / "a").read_text() == "1"


def test_the_output_of_a_request_is_written_to_a_directory(run: Run, tmp_path: Path) -> None:
    command = ["sh", "-c", "echo 1 >a"]
    made = {
        "command": command,
        "cwd": "/out",
        "output_path": "/out",
        "mounts": {"/out": {"kind": "collection", "writable": True}},
    }
    (tmp_path / "a.yaml").write_text(json.dumps(made))
    request = run("submit", "a.yaml").stdout.strip()
    early = run("get", request, "early", code=2)
    run("dispatch", "--until-idle")

    run("get", request[:-1], "out")

    execution = json.loads(run("show", request, "--json").stdout)["execution"]["id"]
    assert early.stderr == f"jpsi: execution {execution} has no output: it is queued, priority 1\n"
    assert not (tmp_path / "early").exists()
    assert [it.read_text() for it in (tmp_path / "out").rglob("a")] == ["1\n"]


def test_get_overwrites_nothing_and_says_what_is_wrong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("command: [echo, hi]\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("mine")
    digest = run("put", "a.yaml").stdout.strip()
    request = run("submit", "a.yaml").stdout.strip()
    run("dispatch", "--until-idle")

    full, file = run("get", digest, "full", code=2), run("get", digest, "a.yaml", code=2)
    none = run("get", request, "out", code=2)

    assert full.stderr == "jpsi: full is not empty: name a directory that is new or empty\n"
    assert file.stderr == "jpsi: a.yaml cannot be written: Not a directory\n"
    assert "has no output: it is complete with exit code 0; `output_path` names what is kept" in none.stderr
    assert (tmp_path / "full" / "a").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("put", "nothere.txt", "--name", "q"), "nothere.txt does not exist"),
        (("put", "nothere.txt/a"), "nothere.txt/a does not exist"),
        (("get", "mine", "words.yaml/out"), "words.yaml/out cannot be written: Not a directory"),
        (("ls", "--records", "words.yaml"), "--records words.yaml is no directory"),
        (("put", "words.yaml", "--records", "words.yaml"), "--records words.yaml is no directory"),
        (("submit", "nothere.yaml"), "nothere.yaml cannot be read: No such file or directory"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else "",
)
def test_a_wrong_path_in_the_command_line_is_an_error_in_it(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    run("put", "words.yaml", "--name", "mine")

    assert run(*arguments, code=2).stderr == f"jpsi: {message}\n"


def test_a_file_that_cannot_be_read_is_an_error_in_the_command_line(run: Run) -> None:
    """Linux lets no user read the beginning of this file, not even root."""
    expected = "jpsi: /proc/self/mem cannot be read: Input/output error\n"

    assert run("put", "/proc/self/mem", code=2).stderr == expected


def test_a_wait_that_takes_too_long_says_what_has_not_ended(run: Run) -> None:
    request = run("submit", "words.yaml").stdout.strip()

    waited = run("wait", "--timeout", "0", request, code=124)

    lacks, left = waited.stderr.splitlines()
    assert lacks.startswith("jpsi: no dispatcher runs, without which no request ends; start one by ")
    assert left == f"jpsi: request {request} has not ended: it is committed"


def test_new_requests_print_their_ids_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("command: [echo, hi]\n")

    made, draft = run("submit", "a.yaml"), run("draft", "a.yaml")

    found = {it["id"] for it in json.loads(run("ls", "--json").stdout)}
    assert {made.stdout.strip(), draft.stdout.strip()} == found
    assert re.fullmatch(r"jpsi: execution \S+, queued, priority 1\n", made.stderr)
    assert draft.stderr == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("command: [", "cannot be read"),
        ("[]", "a request is a mapping"),
        ("comand: [a]\ncwd: /..", "command is missing"),
        ("command: [a]\nmounts: {/in: {kind: file, path: /a}}", "one of yours with `jpsi request put`"),
    ],
    ids=["no YAML", "no request", "a wrong one", "a file of one's own"],
)
def test_a_usage_error_is_reported_and_changes_nothing(
    run: Run, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "wrong.yaml").write_text(text)

    done = run("submit", "wrong.yaml", code=2)

    assert message in done.stderr
    assert json.loads(run("ls", "--json").stdout) == []


def test_unknown_keys_are_errors_unless_the_user_means_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("command: [echo, hi]\nmuonts: {}\nplacement:\n  durration: 3\n")

    refused, accepted = run("run", "a.yaml", code=2), run("run", "--lenient", "a.yaml")

    problems = [
        "a.yaml:2: muonts is not a key of a request; did you mean 'mounts'?",
        "a.yaml:4: placement.durration is not a key of a request; did you mean 'duration'?",
    ]
    assert refused.stderr.splitlines()[1:] == [f"  - {it} (--lenient ignores it)" for it in problems]
    assert accepted.stdout == "hi\n"
    assert accepted.stderr.splitlines()[:2] == [f"jpsi: warning: {it}" for it in problems]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("tasks: [{command: [a], slot: s}]", "jpsi run -f"),
        ("tasks: [{command: [a], depend_on: [b]}]", "jpsi workflow run"),
    ],
)
def test_a_document_of_another_language_names_the_command_that_takes_it(
    run: Run, tmp_path: Path, text: str, command: str
) -> None:
    (tmp_path / "a.yaml").write_text(text)

    expected = f"jpsi: the request is not valid: a.yaml:1: this is no request; `{command}` takes it\n"
    assert run("run", "a.yaml", code=2).stderr == expected


@pytest.mark.parametrize(
    ("text", "line", "end"),
    [
        ("command: [a]\nmounts:\n\t/in: x\n", 3, "write blanks instead of tabs"),
        ("command: [a]\ncwd: b: c\n", 2, "put a blank after the `:` of a key, above as well"),
        ("command: [a]\ncwd: !!python/name:a b\n", 2, "for the tag 'tag:yaml.org,2002:python/name:a'"),
    ],
    ids=["a tab", "two keys", "a tag"],
)
def test_text_that_is_no_yaml_is_reported_with_its_line_and_what_to_do(
    run: Run, tmp_path: Path, text: str, line: int, end: str
) -> None:
    (tmp_path / "a.yaml").write_text(text)

    (sentence,) = run("run", "a.yaml", code=2).stderr.splitlines()

    assert sentence.startswith(f"jpsi: a.yaml:{line}: cannot be read as YAML: ")
    assert sentence.endswith(end)


OUT_OF_RANGE = ": cannot be read as YAML: an escape or a version in it is out of range"


@pytest.mark.parametrize(
    ("file", "text", "end"),
    [
        ("a.yaml", 'command: ["\\UFFFFFFFF"]', OUT_OF_RANGE),
        ("a.yaml", 'command: ["\\U00110000"]', OUT_OF_RANGE),
        ("a.yaml", f"%YAML {'1' * 5000}.1\n--- a", OUT_OF_RANGE),
        ("a.yaml", "[" * 3000 + "]" * 3000, ": is nested too deeply"),
        ("a.json", "[" * 90_000 + "]" * 90_000, ": is nested too deeply"),
        ("a.yaml", "expires: 2026-13-45", " cannot be read: month must be in 1..12"),
        ("a.json", "[1,", " cannot be read: Expecting value: line 1 column 4 (char 3)"),
    ],
    ids=["an escape", "an escape beyond Unicode", "a version", "deep", "deep JSON", "a date", "JSON"],
)
def test_text_that_yaml_does_not_expect_is_reported_in_one_sentence(
    run: Run, tmp_path: Path, file: str, text: str, end: str
) -> None:
    (tmp_path / file).write_text(text)

    assert run("preview", file, code=2).stderr == f"jpsi: {file}{end}\n"


def test_each_problem_of_a_request_has_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "command: [a]\ncwd: /..\nmounts:\n  /a:\n    kind: tmp\n  /b: {kind: tmp, capacity: x}\n"
        "placement:\n  duration: x\n"
    )

    stderr = run("preview", "a.yaml", code=2).stderr

    assert re.findall(r"a.yaml:(\d+): (\S+ \S+)", stderr) == [
        ("2", "cwd: '/..'"),
        ("6", "mounts: /b:"),
        ("8", "placement: duration"),
    ]


def test_a_missing_id_is_reported(run: Run) -> None:
    expected = "no request or execution has the id x; jpsi request ls shows the requests"
    assert expected in run("show", "x", code=2).stderr


def test_an_ambiguous_id_is_reported(run: Run) -> None:
    for _ in range(2):
        run("submit", "words.yaml")

    assert "several requests begin with 0" in run("show", "0", code=2).stderr


WAITING = "command: [sh, -c, 'echo ran >>{0}/runs; while [ ! -e {0}/go ]; do sleep 0.05; done']"


def run_in_background(tmp_path: Path) -> ForkedProcess:
    """Start a command that runs a request whose job waits for a signal of the test."""
    (tmp_path / "waits.yaml").write_text(WAITING.format(tmp_path))
    running = start_jpsi("request", "run", "waits.yaml", cwd=tmp_path)

    def is_running() -> bool:
        with Records(tmp_path / "state" / "jpsi" / "records") as records:
            return any(it.state is ExecutionState.RUNNING for it in records.newest_executions(1))

    assert eventually(is_running, seconds=60)
    return running


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_next_dispatcher_continues_immediately_after_an_interrupted_one(
    run: Run, tmp_path: Path, number: signal.Signals
) -> None:
    running = run_in_background(tmp_path)
    running.send_signal(number)
    _, printed = running.communicate(timeout=60)
    (tmp_path / "go").touch()
    assert (b"a job that was submitted runs on" in printed) is (number != signal.SIGKILL)

    begin = time.monotonic()
    done = run("run", "waits.yaml")

    assert time.monotonic() - begin < LEASE_SECONDS / 2
    assert "another dispatcher" not in done.stderr
    assert (tmp_path / "runs").read_text() == "ran\n"
    assert running.returncode == (-number if number == signal.SIGKILL else 130)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_cancelling_ends_the_job_that_a_dispatcher_has_left(
    run: Run, tmp_path: Path, number: signal.Signals
) -> None:
    running = run_in_background(tmp_path)
    running.send_signal(number)
    running.communicate(timeout=60)
    (request,) = json.loads(run("ls", "--json").stdout)
    waits = run("submit", "words.yaml").stdout.strip()

    done = run("cancel", request["id"])

    execution = request["execution"]
    assert done.stdout == f"request {request['id']}: execution {execution}, cancelled\n"
    assert done.stderr == ""
    assert "cancelled (cancelled)" in run("show", execution).stdout
    assert run("wait", request["id"], code=1).stdout == f"request {request['id']}: cancelled\n"
    assert "attempt" not in run("show", waits).stdout


def test_waiting_for_another_dispatcher_is_reported_once(run: Run, tmp_path: Path) -> None:
    running = run_in_background(tmp_path)
    with start_jpsi("request", "run", "waits.yaml", cwd=tmp_path) as waits:
        assert waits.stderr is not None
        line = waits.stderr.readline().decode()
        (tmp_path / "go").touch()
        rest = waits.stderr.read().decode()

    assert f"another dispatcher, process {running.pid} on " in line
    assert "another dispatcher" not in rest
    running.communicate(timeout=60)
    assert (waits.returncode, running.returncode) == (0, 0)
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_a_cancelled_request_is_reported(run: Run) -> None:
    one, other = (json.loads(run("submit", "words.yaml", "--json").stdout) for _ in range(2))

    first = run("cancel", one["id"]).stdout
    assert "cancelled; another request still wants this execution; `jpsi request priority" in first
    shown = run("show", one["id"]).stdout.splitlines()
    assert {"state      cancelled", "priority   0"} <= set(shown)
    assert json.loads(run("show", one["id"], "--json").stdout)["request"]["state"] == "cancelled"
    assert "queued, priority 1" in run("show", other["execution"]).stdout

    (row,) = run("ls", "--state", "cancelled").stdout.splitlines()[1:]
    assert row.split()[:6] == [one["id"], "cancelled", "0", one["owner"], one["execution"], "-"]
    assert run("wait", one["id"], code=1).stdout == f"request {one['id']}: cancelled\n"

    assert "another" not in run("cancel", other["id"]).stdout
    assert "queued, priority 0" in run("show", other["execution"]).stdout
    run("dispatch", "--until-idle")
    run("priority", other["id"], "1")
    run("dispatch", "--until-idle")
    assert [it["outcome"] for it in json.loads(run("ls", "--json").stdout)] == ["complete"] * 2
    for state in ("complete", "final"):
        assert len(run("ls", "--state", state).stdout.splitlines()) == 1 + 2
    assert len(run("ls", "--state", "failed").stdout.splitlines()) == 1
    assert run("cancel", one["id"]).stdout == f"request {one['id']} is over already: complete\n"


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "not the only one"])
def test_waiting_for_a_request_ends_when_it_is_cancelled(run: Run, tmp_path: Path, others: int) -> None:
    running = run_in_background(tmp_path)
    (mine,) = json.loads(run("ls", "--json").stdout)
    for _ in range(others):
        run("submit", "waits.yaml")

    run("cancel", mine["id"])

    _, stderr = running.communicate(timeout=60)
    assert (running.returncode, b"another request still wants" in stderr) == (130, bool(others))
    state = "running" if others else "cancelled ("
    assert state in run("show", mine["execution"]).stdout
    (tmp_path / "go").touch()
    run("dispatch", "--until-idle")
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_help_lists_each_exit_code_of_run(run: Run) -> None:
    help_text = run("run", "--help").stdout

    assert "  130  the request or its job was cancelled" in help_text
    assert "the exit code of the computation" in help_text


@pytest.mark.parametrize("command", ["submit", "run"])
def test_an_uninstalled_executor_is_refused_once(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "nowhere.yaml").write_text("command: ['true']\nplacement: {executor: no-such}")

    done = run(command, "nowhere.yaml", code=2)

    assert done.stderr.count("no-such") == 1
    assert json.loads(run("ls", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["ls", "--records", "{long}"], "--records {long} cannot be used"),
        (["ls", "--records", "{long}/in"], "--records {long}/in cannot be used"),
        (["put", "{long}"], "{long} cannot be read"),
        (["get", "mine", "{long}"], "{long} cannot be"),
    ],
)
def test_a_name_that_no_file_can_have_is_a_mistake_in_the_command_line(
    run: Run, tmp_path: Path, arguments: list[str], start: str
) -> None:
    (tmp_path / "in").touch()
    run("put", "in", "--name", "mine")
    long = "a" * 300

    result = run(*(it.format(long=long) for it in arguments), code=2)

    assert result.stderr.startswith(f"jpsi: {start.format(long=long)}")
    assert result.stderr.endswith("File name too long\n")
    assert result.stderr.count("\n") == 1
