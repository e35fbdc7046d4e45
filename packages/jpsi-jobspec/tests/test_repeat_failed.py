"""`run --failed`: a new run in which nothing that completed runs again, unless it has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobspec_support import Log, Run, drive_run, flow, planned
from jpsi import JobState
from jpsi_jobspec.planning.site import Site
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.run_store.completed import find_completed
from jpsi_jobspec.run_store.journal import Journal, Part, inner_journal
from jpsi_testing.waiting import eventually
from workflow_clients import client

HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\n"


def task(name: str, command: str = "true", after: str = "", more: str = "") -> str:
    shell = f"echo {name} >>$LOG; {command}"
    return f"- {{name: {name}, command: [sh, -c, '{shell}'], resources: r, depends_on: [{after}]{more}}}\n"


# `fit` fails until the file exists
FLOW = (
    f"{HEAD}tasks:\n" + task("prepare", "echo p") + task("fit", "test -e mended", "prepare") + task("check")
) + task("report", after="fit, check")


@pytest.fixture
def failed(run: Run, log: Log) -> str:
    """A document of whose last run prepare and check completed, and fit failed."""
    file = flow(FLOW)
    assert run("run", file)[0] == 1
    assert sorted(log()) == ["check", "fit", "prepare"]
    return file


def test_only_what_did_not_complete_runs_again(failed: str, run: Run, log: Log) -> None:
    Path("mended").touch()

    code, _, err = run("run", "--failed", failed)

    assert (code, err) == (0, "jpsi: completed in the run before, and not run again: prepare, check\n")
    assert log()[3:] == ["fit", "report"]
    assert [line.split(maxsplit=2) for line in run("status", failed)[1].splitlines()] == [
        ["COMPLETED", "prepare", "completed in the run before"],
        ["COMPLETED", "fit"],
        ["COMPLETED", "check", "completed in the run before"],
        ["COMPLETED", "report"],
    ]
    assert run("logs", failed, "prepare") == (
        0,
        "p\n",
        "jpsi: prepare completed in the run before, and wrote this there\n",
    )
    assert run("logs", failed, "check") == (
        0,
        "",
        "jpsi: check completed in the run before, and wrote nothing to standard output there\n",
    )
    assert run("logs", failed, "check", "prepare", "--stderr") == (
        0,
        "==> check <==\n==> prepare <==\n",
        "".join(
            f"jpsi: {it} completed in the run before, and wrote nothing to standard error there\n"
            for it in ("check", "prepare")
        ),
    )
    records = {it["id"]: (it["reason"], it["job"]) for it in json.loads(run("status", "--json", failed)[1])}
    assert records["prepare"][0] == "completed_before"
    assert records["fit"][0] is None
    assert all(job for _, job in records.values())
    # a run that is over is only reported
    assert run("run", failed)[0] == 0
    assert run("run", "--failed", failed)[2] == (
        "jpsi: all tasks completed in the last run of flow.yaml;"
        " --again begins a new one, in which all tasks run again\n"
    )
    assert len(log()) == 5
    assert run("run", "--again", failed)[0] == 0
    assert len(log()) == 9


def test_what_completed_two_runs_ago_still_counts(failed: str, run: Run, log: Log) -> None:
    assert run("run", "--failed", failed)[0] == 1
    Path("mended").touch()
    assert run("run", "--failed", failed)[0] == 0

    assert log()[3:] == ["fit", "fit", "report"]


def test_a_changed_task_runs_again_with_all_that_depend_on_it(failed: str, run: Run, log: Log) -> None:
    Path("mended").touch()
    flow("# another line\n" + FLOW.replace("; echo p", "; echo q"))

    assert run("run", "--failed", failed)[0] == 0

    assert log()[3:] == ["prepare", "fit", "report"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--again"], "--again and --failed exclude each other"),
        (["-x", "slurm"], "the last run of flow.yaml is on local; --again begins a new run"),
        (["--set", "n=9"], "the last run of flow.yaml has n=8, not n=9; --again begins a new run"),
    ],
)
def test_another_target_or_value_is_refused(options: list[str], message: str, run: Run, log: Log) -> None:
    file = flow(f"parameters: {{n: 4}}\n{HEAD}tasks:\n{task('a', 'exit ${n}')}")
    assert run("run", "--set", "n=8", file)[0] == 8

    assert run("run", "--failed", *options, file) == (2, "", f"jpsi: {message}\n")
    code, _, err = run("run", "--failed", file)
    assert code == 8
    assert err.splitlines()[0] == "jpsi: --failed keeps --set n=8 of the last run of flow.yaml"


def test_a_default_that_has_changed_is_refused(run: Run, log: Log) -> None:
    text = f"parameters: {{n: 4}}\n{HEAD}tasks:\n{task('a', 'exit ${n}')}"
    run("run", flow(text))

    other = run("run", "--failed", flow(text.replace("n: 4", "n: 5")))

    assert other == (2, "", "jpsi: the last run of flow.yaml has n=4, not n=5; --again begins a new run\n")


def test_a_document_without_a_run_that_is_over_has_nothing_to_repeat(run: Run, log: Log) -> None:
    file = flow(f"{HEAD}tasks:\n{task('a', 'until test -e gate; do sleep 0.05; done')}")
    never = run("run", "--failed", file)
    with client("run", file):
        assert eventually(lambda: log() == ["a"])
        unended = run("run", "--failed", file)
        Path("gate").touch()

    assert never == (2, "", "jpsi: flow.yaml was never run; `jpsi workflow run flow.yaml` runs it\n")
    assert unended[0] == 2
    assert "the last run of flow.yaml has not ended" in unended[2]


def test_a_killed_client_of_such_a_run_loses_and_repeats_nothing(failed: str, run: Run, log: Log) -> None:
    Path("mended").touch()
    text = FLOW.replace("test -e mended", "until test -e gate; do sleep 0.05; done")
    with client("run", "--failed", flow(text)) as first:
        assert eventually(lambda: len(log()) == 4)
        first.kill()
    Path("gate").touch()

    assert run("run", failed)[0] == 0

    assert log()[3:] == ["fit", "report"]


@pytest.mark.parametrize("last_file", ["document.yaml", "journal", "run.json.new"])
def test_a_run_that_could_not_be_written_as_a_whole_is_none(
    last_file: str, failed: str, run: Run, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is killed between two files leaves the same."""

    def write(path: Path, content: bytes) -> None:
        if path.name == last_file:
            raise InterruptedError
        path.write_bytes(content)

    Path("mended").touch()
    with monkeypatch.context() as patched:
        for module in ("runs", "completed"):
            patched.setattr(f"jpsi_jobspec.run_store.{module}.write_synced", write)
        assert run("run", "--failed", failed)[0] == 125

    assert run("status", failed)[1].splitlines()[1].startswith("FAILED     fit")
    assert run("run", "--failed", failed)[0] == 0
    assert log()[3:] == ["fit", "report"]


GROUPS = (
    f"{HEAD}groups:\n- name: one\n  resources: r\n  tasks:\n"
    "  - {name: a, command: [sh, -c, 'echo one.a >>$LOG; echo x'], resources: r}\n"
    "  - {name: b, command: 'true', resources: r, depends_on: [{name: a, when: failed}]}\n"
    "- name: two\n  resources: r\n  tasks:\n"
    "  - {name: a, command: [sh, -c, 'echo two.a >>$LOG'], resources: r}\n"
    "  - {name: b, command: [sh, -c, 'test -e mended'], resources: r, depends_on: [a]}\n"
)


def test_a_group_runs_again_as_a_whole_or_not_at_all(run: Run, log: Log) -> None:
    file = flow(GROUPS)
    assert run("run", file)[0] == 1
    Path("mended").touch()

    assert run("run", "--failed", file)[0] == 0

    assert sorted(log()) == ["one.a", "two.a", "two.a"]
    lines = [line.split(maxsplit=2) for line in run("status", file)[1].splitlines()]
    assert ["COMPLETED", "one/a", "completed in the run before"] in lines
    assert ["CANCELED", "one/b", "dependency_failed: one/a has not failed"] in lines
    assert ["COMPLETED", "two/a"] in lines
    assert run("logs", file, "one/a")[1] == "x\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (task("a", "exit 1"), task("b", after="a").replace("[a]", "[{name: a, when: any}]")),
        (task("a", more=", steps: [{name: write, path: ~/f, content: x}]"), task("b", after="a")),
        ("- {name: a, steps: [{name: write, path: ~/f, content: x}]}\n", task("b", after="a")),
        (task("a", more=", service: true"), task("b", after="a")),
    ],
    ids=["it failed", "it writes a file", "it has only files", "a service"],
)
def test_what_depends_on_something_that_runs_again_does_so_too(
    first: str, second: str, tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = f"{HEAD}tasks:\n{first}{second}{task('c')}"
    last = drive_run(text, "local", tmp_path)
    assert last.states["b"] == [JobState.COMPLETED]

    assert find_completed(last, last.plan).names == ("c",)


def test_all_replicas_run_again_if_one_did_not_complete(run: Run, log: Log) -> None:
    file = flow(
        f"{HEAD}tasks:\n- {{name: a, command: [sh, -c, 'echo $JPSI_REPLICA >>$LOG; test -e mended"
        " -o $JPSI_REPLICA = 1'], resources: r, replicas: 2}\n"
    )
    assert run("run", file)[0] == 1
    Path("mended").touch()

    assert run("run", "--failed", file)[0] == 0

    assert sorted(log()) == ["1", "1", "2", "2"]


@pytest.mark.parametrize("state", list(JobState))
def test_only_a_recorded_completion_counts(state: JobState, tmp_path: Path) -> None:
    plan = planned(f"{HEAD}tasks:\n{task('a')}", Site(is_one_machine=True))
    last = Journal(tmp_path, plan, {"a": [Part(plan.entries[0], 1, state)]})

    assert find_completed(last, plan).names == (("a",) if state is JobState.COMPLETED else ())


def test_a_group_with_a_task_whose_end_is_not_recorded_runs_again(tmp_path: Path, log: Log) -> None:
    last = drive_run(GROUPS, "local", tmp_path)
    assert find_completed(last, last.plan).names == ("one",)

    (last.path / "inside/one/journal").unlink()

    assert find_completed(last, last.plan).names == ()


def test_the_output_that_a_pilot_keeps_is_found_from_the_next_run(tmp_path: Path, log: Log) -> None:
    last = drive_run(GROUPS, "local", tmp_path)
    (last.path / "inside/one/work").mkdir()
    request = runs.read_request(last.path)

    new = runs.create_run(request.source, request.text, request.site, {}, find_completed(last, last.plan))

    (entry, _) = new.plan.entries
    assert inner_journal(new.path, entry).work.samefile(last.path / "inside/one/work")


def test_a_task_that_was_not_to_run_counts_as_done(run: Run, log: Log) -> None:
    needless = task("h", after="{name: a, when: failed}") + task("k", after="h")
    text = f"{HEAD}tasks:\n{task('a')}{task('b', 'test -e mended')}{needless}"
    file = flow(text)
    assert run("run", file)[0] == 1
    Path("mended").touch()

    mended = run("run", "--failed", file)

    message = "jpsi: completed in the run before, and not run again: a"
    assert (mended[0], mended[2].splitlines()[0]) == (0, message)
    assert sorted(log()) == ["a", "b", "b"]
    lines = [line.split(maxsplit=2) for line in run("status", file)[1].splitlines()]
    assert ["CANCELED", "h", "dependency_failed: a has not failed"] in lines
    advice = "--again begins a new one, in which all tasks run again\n"
    assert run("run", file)[2].startswith(f"jpsi: the last run of flow.yaml is over; {advice}")
    for _ in range(2):
        everything = run("run", "--failed", file)
        assert everything[2].startswith(f"jpsi: all tasks completed in the last run of flow.yaml; {advice}")
        assert everything[0] == 0


def test_a_task_whose_dependency_failed_runs_again(run: Run, log: Log) -> None:
    file = flow(f"{HEAD}tasks:\n{task('a', 'test -e mended')}{task('b', after='a')}{task('c', after='b')}")
    assert run("run", file)[0] == 1
    Path("mended").touch()

    assert "--failed one" in run("run", file)[2]
    assert run("run", "--failed", file)[0] == 0

    assert log() == ["a", "a", "b", "c"]


def test_the_value_of_a_parameter_that_was_removed_is_dropped(run: Run, log: Log) -> None:
    text = f"parameters: {{n: 4, m: 1}}\n{HEAD}tasks:\n{task('a', 'exit ${n}')}"
    assert run("run", "--set", "n=8", "--set", "m=2", flow(text))[0] == 8
    file = flow(text.replace("n: 4, ", "").replace("${n}", "0"))

    typed = run("run", "--failed", "--set", "n=8", file)
    code, _, err = run("run", "--failed", file)

    assert typed[0] == 2
    assert "parameters has no 'n'" in typed[2]
    assert (code, err) == (0, "jpsi: --failed keeps --set m=2 of the last run of flow.yaml\n")
