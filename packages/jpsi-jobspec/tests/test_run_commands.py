"""Runs by commands: begun once, left, continued, ended, and their exit codes."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobspec_support import Log, Run, begin_run, drive_run, flow
from jpsi import JobState
from jpsi_engine import job_store
from jpsi_jobspec.commands import WORKFLOW
from jpsi_jobspec.planning.plan import Entry, Kind
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.run_store.journal import Journal, Part
from jpsi_jobspec.running.outcome import exit_code_of
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.waiting import eventually
from workflow_clients import client

HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\ntasks:\n"
LONG = (
    f"{HEAD}- {{name: a, command: [sh, -c, 'echo a >>$LOG; until test -e $LOG.gate; do sleep 0.05; done'],"
    " resources: r}\n"
    "- {name: b, command: [sh, -c, 'echo b >>$LOG'], resources: r, depends_on: [a]}\n"
)
MISSPELT = (
    f"{HEAD}- {{name: a, command: ['true'], resources: r}}\n"
    "- {name: b, command: ['true'], resources: r, attributes: {queue_name: debgu}, depends_on: [a]}\n"
)
DRIVEN = "jpsi: another process drives the last run of flow.yaml; waiting for its end\n"
CANCEL_REQUESTED = "jpsi: another process drives the last run of flow.yaml; it will cancel"


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_queue_that_the_batch_system_does_not_list_is_named_before_the_first_submission(
    run: Run, fake_commands: Callable[..., FakeScheduler], command: str
) -> None:
    fake = fake_commands("slurm")

    _, _, err = run(command, "-x", "slurm", flow(MISSPELT))

    assert err.startswith(
        "jpsi: warning: flow.yaml: b: the queue debgu is none of those that slurm lists: main, debug; "
        "did you mean debug?\n"
    )
    assert err.count("debgu is none") == 1
    assert fake.log.count("sinfo") == 1


ATTRIBUTES = (
    f"{HEAD}- {{name: a, command: ['true'], resources: r, attributes: {{queue_name: main}}}}\n"
    "- {name: b, command: ['true'], resources: r, attributes: {duration: 2, qos: high}}\n"
)


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_time_limit_that_the_batch_system_rounds_up_is_reported_once(
    run: Run, fake_commands: Callable[..., FakeScheduler], command: str
) -> None:
    fake_commands("slurm")

    _, _, err = run(command, "-x", "slurm", flow(ATTRIBUTES))

    sentence = "jpsi: warning: flow.yaml: slurm rounds the time limit 0:00:02 up to 0:01:00\n"
    assert err.startswith(sentence)
    assert err.count("rounds") == 1
    assert "no effect" not in err


@pytest.mark.parametrize("command", ["plan", "run"])
def test_attributes_without_effect_on_this_machine_are_reported_once(run: Run, command: str) -> None:
    code, _, err = run(command, flow(ATTRIBUTES))

    sentence = "jpsi: warning: flow.yaml: local is no batch system: queue_name and qos have no effect\n"
    assert code == 0
    assert err.startswith(sentence)
    assert err.count("no effect") == 1
    assert "rounds" not in err


def test_a_task_that_no_queue_can_ever_start_is_refused_before_the_first_submission(
    run: Run, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake = fake_commands("slurm")
    file = flow(
        "version: 1\nresources:\n  one: {type: node, count: 1}\n  seven: {type: node, count: 7}\n"
        "  thick: {type: node, count: 1, with: [{type: core, count: 99}]}\ntasks:\n"
        "- {name: a, command: ior, resources: one}\n"
        "- {name: b, command: ior, resources: seven, depends_on: [a]}\n"
        "- {name: c, command: ior, resources: seven, replicas: 9, depends_on: [a]}\n"
        "- {name: d, command: ior, resources: thick}\n"
    )

    code, out, err = run("run", "-x", "slurm", file)

    assert (code, out) == (2, "")
    assert err == (
        "jpsi: b, c: it asks for 7 nodes and can never start; the queue main has 2, the queue debug has 2\n"
        "jpsi: d: it asks for 99 cores on one node and can never start; "
        "the queue main has 8, the queue debug has 8\n"
    )
    assert not fake.jobs
    # a plan that cannot run is shown all the same
    code, out, warnings = run("plan", "-x", "slurm", file)
    assert (code, out.splitlines()[0]) == (0, "flow.yaml on slurm: 4 jobs")
    assert warnings == err.replace("jpsi: ", "jpsi: warning: flow.yaml: ")


def test_a_time_that_replicas_add_up_to_is_refused_with_how_it_comes_about(
    run: Run, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake_commands("slurm")
    task = "attributes: {duration: 40m, queue_name: debug}"
    file = flow(
        "version: 1\nresources:\n  one: {type: core, count: 1}\n  two: {type: slot, count: 2, with: "
        "[{type: core, count: 1}]}\ntasks:\n"
        f"- {{name: a, command: ior, resources: one, replicas: 3, {task}}}\n"
        f"- {{name: b, command: ior, resources: two, replicas: 2, {task}}}\n"
    )

    code, _, err = run("run", "-x", "slurm", file)
    _, plan, _ = run("plan", "--explain", "-x", "slurm", file)

    why = (
        "its 3 replicas run in one allocation, 1 at a time, each for up to 0:40:00, and a minute to end them"
    )
    assert (code, err) == (
        2,
        (
            "jpsi: flow.yaml is not valid: a: it asks for 2:01:00 and can never start; the queue debug has "
            f"1:00:00; {why}; with more slots, more run at a time\n"
        ),
    )
    assert f"because {why}; with more" in plan


def test_all_problems_of_all_jobs_are_reported_before_the_first_submission(
    run: Run, log: Log, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake = fake_commands("slurm")
    file = flow(
        f"{HEAD}- {{name: good, command: ior, resources: r}}\n"
        "- {name: one, command: ior, resources: r, attributes: {cwd: /nowhere}, replicas: 2}\n"
        "- {name: two, command: ior, resources: r, attributes: {cwd: /not/there}}\n"
    )

    code, out, err = run("run", "-x", "slurm", file)

    assert (code, out) == (2, "")
    assert [line.split(": ")[1] for line in err.splitlines()] == ["one", "two"]
    assert "create_directory" not in err
    assert not fake.jobs
    assert run("status", file)[2] == f"jpsi: {file} was never run; `jpsi workflow run {file}` runs it\n"


def test_two_clients_that_begin_at_once_begin_one_run(run: Run, log: Log) -> None:
    file = flow(f"{HEAD}- {{command: ior, resources: r, replicas: 3}}\n")

    clients = [client("run", file) for _ in range(3)]
    ends = [it.communicate() for it in clients]

    assert [it.returncode for it in clients] == [0, 0, 0], ends
    assert len([line for line in log() if line.startswith("begin")]) == 3
    assert len(list(runs.runs_folder(file).glob("*/run.json"))) == 1


def test_of_two_clients_that_choose_a_run_to_continue_one_waits(tmp_path: Path, log: Log) -> None:
    lock = runs.runs_folder("flow.yaml") / "lock"
    with runs.locked_runs("flow.yaml"), lock.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_one_client_drives_a_run_and_another_waits(run: Run, log: Log) -> None:
    file = flow(LONG)
    first = client("run", file)
    assert eventually(lambda: log() == ["a"])
    second = client("wait", file)
    assert second.stderr is not None
    line = second.stderr.readline().decode()
    Path(os.environ["LOG"] + ".gate").touch()
    first.communicate()
    second.communicate()

    assert line == DRIVEN
    assert (first.returncode, second.returncode) == (0, 0)
    assert log() == ["a", "b"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_client_exits_and_the_jobs_run_on(number: signal.Signals, run: Run, log: Log) -> None:
    file = str(Path(flow(LONG)).rename("my flow.yaml"))
    first = client("run", file)
    assert eventually(lambda: log() == ["a"])
    first.send_signal(number)
    _, err = first.communicate()

    assert first.returncode == 130
    assert (
        err.decode()
        == "jpsi: interrupted; jobs run on, and `jpsi workflow wait 'my flow.yaml'` continues the run\n"
    )
    assert (
        run("status", file)[2] == "jpsi: no process drives the last run of my flow.yaml; "
        "`jpsi workflow wait 'my flow.yaml'` continues it\n"
    )
    Path(os.environ["LOG"] + ".gate").touch()
    assert run("wait", file)[0] == 0
    assert log() == ["a", "b"]


def test_a_new_run_begins_once_the_last_one_has_ended(run: Run, log: Log) -> None:
    file = flow(LONG)
    with client("run", file) as first:
        assert eventually(lambda: log() == ["a"])
        first.kill()

    refused = run("run", "--again", file)
    changed = run("run", flow(LONG.replace("name: b", "name: c")))
    run("cancel", file)

    assert (refused[0], changed[0]) == (2, 2)
    assert "the last run of flow.yaml has not ended; `jpsi workflow wait flow.yaml` goes on" in refused[2]
    assert "`jpsi workflow cancel flow.yaml` ends it, before --again begins a new one" in changed[2]
    Path(os.environ["LOG"] + ".gate").touch()
    assert run("run", "--again", file)[0] == 0
    assert log() == ["a", "a", "b"]


def test_a_wait_with_a_timeout_exits_after_it(run: Run, log: Log) -> None:
    file = flow(LONG)
    with client("run", file) as first:
        assert eventually(lambda: log() == ["a"])
        waiting = run("wait", "--timeout", "0.2s", file)
        first.kill()

    assert waiting[0] == 124
    assert waiting[2].endswith(
        f"--timeout is over; jobs run on, and `jpsi workflow wait {file}` continues the run\n"
    )
    assert run("wait", "--timeout", "0.2s", file)[0] == 124
    assert run("wait", "--timeout", "soon", file)[0] == 2
    assert run("cancel", file)[0] == 0
    assert run("wait", file)[0] == 130


def test_runs_are_reported_as_json(run: Run) -> None:
    file = flow(
        f"{HEAD}- {{name: a, command: [sh, -c, echo x; exit 3], resources: r, attributes: {{watch: true}}}}\n"
    )

    first = run("run", "--json", file)
    again = run("wait", "--json", file)

    assert (first[0], again[0]) == (3, 3)
    assert json.loads(first[1]) == json.loads(again[1]) == json.loads(run("status", "--json", file)[1])
    assert [(it["id"], it["state"], it["exit_code"]) for it in json.loads(first[1])] == [("a", "FAILED", 3)]


def test_one_task_is_waited_for_and_the_others_run_on(run: Run, log: Log) -> None:
    file = flow(LONG + "- {name: c, command: [sh, -c, exit 5], resources: r}\n")

    assert run("wait", file)[0] == 2
    with client("run", file) as first:
        assert eventually(lambda: "a" in log())
        assert run("wait", file, "c")[0] == 5
        first.kill()
    code, _, err = run("wait", file, "c")
    assert (code, "c: FAILED: exit code 5 (job " in err) == (5, True)
    Path(os.environ["LOG"] + ".gate").touch()
    assert run("wait", file, "a")[0] == 0
    assert run("wait", file)[0] == 5
    assert log() == ["a", "b"]


def test_one_task_is_cancelled_with_its_dependents_and_the_others_run_on(run: Run, log: Log) -> None:
    file = flow(
        LONG
        + "- {name: c, command: [sh, -c, 'until test -e $LOG.gate; do sleep 0.05; done'], resources: r}\n"
    )
    with client("run", file) as first:
        assert eventually(lambda: log() == ["a"])
        result = run("cancel", file, "a")
        Path(os.environ["LOG"] + ".gate").touch()
        first.communicate()

    assert result == (0, "", f"{CANCEL_REQUESTED} a\njpsi: cancelled: a\n")
    assert first.returncode == 130
    states = {it["id"]: (it["state"], it["reason"]) for it in json.loads(run("status", "--json", file)[1])}
    assert states == {
        "a": ("CANCELED", "cancelled"),
        "b": ("CANCELED", "dependency_failed"),
        "c": ("COMPLETED", None),
    }
    ended = "jpsi: c, a: nothing is left to cancel in the last run of flow.yaml\n"
    assert run("cancel", file, "c", "a") == (0, "", ended)
    over = "jpsi: the last run of flow.yaml is over; nothing is left to cancel\n"
    assert run("cancel", file) == (0, "", over)
    assert run("cancel", file, "d")[2] == "jpsi: there is no task 'd'; known are: a, b, c\n"


def test_tasks_in_a_group_that_is_cancelled_by_its_name_were_cancelled(run: Run, log: Log) -> None:
    """Otherwise a batch system could requeue the group."""
    file = flow(
        "version: 1\nresources:\n  r: {type: core, count: 1}\ngroups:\n- name: g\n  resources: r\n  tasks:\n"
        "  - {name: long, command: [sh, -c, 'echo long >>$LOG; sleep 600']}\n"
        "  - {name: clean, local: true, command: [sh, -c, 'echo clean >>$LOG']}\n"
        "tasks:\n- name: a\n  resources: r\n"
        "  command: [sh, -c, 'until test -e $LOG.gate; do sleep 0.05; done']\n"
    )
    with client("run", file) as first:
        assert eventually(lambda: log() == ["long"])
        assert run("cancel", file, "g")[0] == 0
        Path(os.environ["LOG"] + ".gate").touch()
        first.communicate()

    states = {it["id"]: (it["state"], it["reason"]) for it in json.loads(run("status", "--json", file)[1])}
    assert states == {
        "g": ("CANCELED", "cancelled"),
        "a": ("COMPLETED", None),
        "g/long": ("CANCELED", "cancelled"),
        "g/clean": ("COMPLETED", None),
    }


#: A group with two tasks that end after a file appears, and a dependent of the first.
GROUP = (
    "version: 1\nresources: {r: {type: core, count: 1}, g: {type: core, replicas: 3}}\n"
    "groups:\n- name: g\n  resources: g\n  depends_on: [first]\n  tasks:\n"
    "  - {name: a, command: [sh, -c, 'echo a >>$LOG; until test -e $LOG.a; do sleep 0.05; done'],"
    " resources: r}\n"
    "  - {name: b, command: [sh, -c, 'echo b >>$LOG; until test -e $LOG.b; do sleep 0.05; done; exit 3'],"
    " resources: r}\n"
    "  - {name: after a, command: [sh, -c, 'echo after >>$LOG'], resources: r, depends_on: [a]}\n"
    "  - group: h\n"
    "  - {name: clean, local: true, command: [sh, -c, 'echo clean >>$LOG']}\n"
    "- name: h\n  tasks:\n"
    "  - {name: x, command: [sleep, '600'], resources: r}\n"
    "  - {name: y, command: [sh, -c, 'echo y >>$LOG'], resources: r, depends_on: [x]}\n"
    "tasks:\n- name: first\n  resources: r\n"
    "  command: [sh, -c, 'echo first >>$LOG; until test -e $LOG.first; do sleep 0.05; done']\n"
).replace("after a,", "after,")


def touch(*names: str) -> None:
    for name in names:
        Path(f"{os.environ['LOG']}.{name}").touch()


def states_of(run: Run, file: str) -> dict[str, tuple[str, str | None]]:
    records = json.loads(run("status", "--json", file)[1])
    return {it["id"]: (it["state"], it["reason"]) for it in records}


CANCELLED, UNMET = ("CANCELED", "cancelled"), ("CANCELED", "dependency_failed")


def test_tasks_in_a_group_are_cancelled_by_their_names_and_the_others_run_on(run: Run, log: Log) -> None:
    """The name of a nested group means all its tasks."""
    file = flow(GROUP)
    with client("run", file) as first:
        touch("first")
        assert eventually(lambda: {"a", "b"} <= set(log()))
        result = run("cancel", file, "g/h", "g/a")
        during = states_of(run, file)
        ended = "jpsi: g/a: nothing is left to cancel in the last run of flow.yaml\n"
        assert run("cancel", file, "g/a") == (0, "", ended)
        touch("b")
        assert run("wait", file, "g/b")[0] == 3
        first.communicate()

    assert result == (0, "", f"{CANCEL_REQUESTED} g/h, g/a\njpsi: cancelled: g/a, g/h/x, g/h/y\n")
    assert {name: during[name] for name in ("g/a", "g/after", "g/h/x", "g/h/y")} == {
        "g/a": CANCELLED,
        "g/after": UNMET,
        "g/h/x": CANCELLED,
        "g/h/y": CANCELLED,
    }
    assert (during["g"][0], during["g/b"][0]) == ("ACTIVE", "ACTIVE")
    assert first.returncode == 3
    assert states_of(run, file) == {
        **during,
        "g": ("FAILED", "exit_code"),
        "g/b": ("FAILED", "exit_code"),
        "g/clean": ("COMPLETED", None),
    }
    assert (sorted(log()[:3]), log()[3:]) == (["a", "b", "first"], ["clean"])


def test_a_group_with_a_cancelled_task_has_not_completed(run: Run, log: Log) -> None:
    file = flow(GROUP.replace("; exit 3", ""))
    touch("first", "b")
    with client("run", file) as first:
        assert eventually(lambda: {"a", "b"} <= set(log()))
        run("cancel", file, "g/h", "g/a")
        first.communicate()

    assert first.returncode == 130
    assert states_of(run, file)["g"] == CANCELLED


def test_a_task_that_is_cancelled_before_its_group_begins_never_begins(run: Run, log: Log) -> None:
    file = flow(GROUP)
    with client("run", file) as first:
        assert eventually(lambda: log() == ["first"])
        message = "jpsi: g has not begun; once it does, what was cancelled does not run in it\n"
        assert run("cancel", file, "g/h", "g/a") == (0, "", message)
        touch("first", "b")
        first.communicate()

    assert [states_of(run, file)[it] for it in ("g/a", "g/after", "g/h/x")] == [CANCELLED, UNMET, CANCELLED]
    assert log() == ["first", "b", "clean"]


def test_a_wait_for_a_task_in_a_group_drives_the_run_if_no_other_process_does(run: Run, log: Log) -> None:
    file = flow(GROUP)
    with client("run", file) as first:
        assert eventually(lambda: log() == ["first"])
        first.kill()
    touch("first", "a", "b")

    assert run("wait", file, "g/after")[0] == 0
    assert "g/h/x" in states_of(run, file)
    assert run("wait", file, "g/b")[0] == 3
    assert states_of(run, file)["g"][0] == "ACTIVE"
    assert run("wait", file, "g/c")[2].startswith("jpsi: there is no task 'g/c'; did you mean 'g/")
    assert run("cancel", file)[0] == 0


def test_the_output_of_all_replicas_is_shown_with_their_names(run: Run) -> None:
    file = flow(f"{HEAD}- {{name: a, command: [sh, -c, echo $JPSI_REPLICA], resources: r, replicas: 2}}\n")
    run("run", file)

    assert run("logs", file, "a")[1] == "==> a.1 <==\n1\n==> a.2 <==\n2\n"
    assert run("logs", file, "a.2")[1] == "2\n"


def test_the_output_of_all_tasks_is_shown(run: Run) -> None:
    file = flow(
        f"{HEAD}- {{name: a, command: [sh, -c, echo $JPSI_REPLICA], resources: r, replicas: 2}}\n"
        "- {name: b, command: [sh, -c, echo b; exit 3], resources: r}\n"
        "- {name: c, command: [echo, c], resources: r, depends_on: [b]}\n"
        "groups: [{name: g, resources: r, tasks: [{name: d, command: [sh, -c, echo d]}]}]\n"
    )
    assert run("run", file)[0] == 3

    assert run("logs", file)[1] == ("==> a.1 <==\n1\n==> a.2 <==\n2\n==> b <==\nb\n==> g/d <==\nd\n")
    assert run("logs", file, "b", "a.1")[1] == "==> b <==\nb\n==> a.1 <==\n1\n"


@pytest.mark.parametrize("system", ["local", "slurm"], indirect=True)
def test_logs_of_silent_tasks_and_of_those_that_never_began_are_the_same_everywhere(
    run: Run, system: str
) -> None:
    file = flow(
        f"{HEAD}- {{name: a, command: [sh, -c, echo a], resources: r}}\n"
        "- {name: b, command: [sh, -c, exit 3], resources: r}\n"
        "- {name: c, command: [echo, c], resources: r, depends_on: [b]}\n"
    )
    assert run("run", "-x", system, file)[0] == 3

    silent = "jpsi: b has written nothing to standard output; --stderr shows standard error\n"
    never = "jpsi: c has written nothing: it is CANCELED\n"
    shown = "==> a <==\na\n==> b <==\n"
    # c is shown if it was submitted before b had failed
    assert run("logs", file) in [(0, shown, silent), (0, f"{shown}==> c <==\n", silent + never)]
    assert run("logs", file, "b", "c") == (0, "==> b <==\n==> c <==\n", silent + never)
    assert run("logs", file, "c") == (0, "", never)
    assert run("logs", file, "c", "--stderr") == (0, "", never)
    assert run("logs", file, "b", "--stderr") == (
        0,
        "",
        "jpsi: b has written nothing to standard error\n",
    )


def test_a_failure_names_the_job_and_the_tasks_of_a_group(run: Run) -> None:
    file = flow(
        "version: 1\nresources: {r: {type: core, count: 1}}\ntasks:\n"
        "- {name: b, command: exit 3, resources: r}\n"
        "groups: [{name: g, resources: r, tasks: [{name: d, command: exit 4}, {name: e, command: exit 0}]}]\n"
    )

    lines = sorted(run("run", file)[2].splitlines())

    job = next(it.id for it in job_store.jobs() if it.name == "b")
    assert lines == [f"b: FAILED: exit code 3 (job {job[:8]})", "g: FAILED: d: exit code 4"]


ENTRY = Entry(id="a", kind=Kind.JOB)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Part(ENTRY, 1, JobState.COMPLETED), 0),
        (Part(ENTRY, 1, JobState.FAILED, exit_code=7, reason="exit_code"), 7),
        (Part(ENTRY, 1, JobState.FAILED, exit_code=143, reason="signal"), 143),
        (Part(ENTRY, 1, JobState.FAILED, exit_code=2, reason="exit_code"), 1),
        (Part(ENTRY, 1, JobState.FAILED, exit_code=130, reason="exit_code"), 1),
        (
            Part(Entry(id="a", kind=Kind.ALLOCATION), 1, JobState.FAILED, exit_code=124, reason="exit_code"),
            124,
        ),
        (Part(ENTRY, 1, JobState.FAILED, exit_code=137, reason="timeout"), 124),
        (Part(ENTRY, 1, JobState.FAILED, reason="lost"), 125),
        (Part(ENTRY, 1, JobState.FAILED, exit_code=0, reason="node_fail"), 125),
        (Part(ENTRY, 1, JobState.CANCELED, reason="cancelled"), 130),
        (Part(ENTRY, 1, JobState.CANCELED, reason="dependency_failed"), 0),
        (Part(ENTRY, 1, JobState.CANCELED, reason="no_longer_needed"), 0),
    ],
    ids=lambda it: f"{it.state.value}-{it.reason}" if isinstance(it, Part) else str(it),
)
def test_the_exit_code_of_a_run_is_that_of_its_failed_task(
    part: Part, expected: int, tmp_path: Path, log: Log
) -> None:
    plan = begin_run(f"{HEAD}- {{name: a, command: ior, resources: r}}\n", "local", tmp_path).plan

    assert exit_code_of(Journal(tmp_path, plan, {"a": [part]}).all_parts()) == expected


def test_a_job_that_ended_before_its_recovery_keeps_its_end(tmp_path: Path, log: Log) -> None:
    """The journal has the end with its exit code, which counts."""
    journal = drive_run(f"{HEAD}- {{name: a, command: [sh, -c, exit 7], resources: r}}\n", "local", tmp_path)
    text = (journal.path / "journal").read_text().splitlines(keepends=True)
    (journal.path / "journal").write_text("".join(it for it in text if "exit_code" not in it))

    words = ["wait", str(tmp_path / "flow.yaml")]
    again = CliRunner().invoke(WORKFLOW, words, standalone_mode=False).return_value

    assert again == 7
    assert runs.read_run(journal.path).parts["a"][0].exit_code == 7


COUNT = (
    f"parameters: {{n: 4, who: '', is_fast: false}}\n{HEAD}"
    "- {name: a, command: [echo, '${n} ${who}'], resources: r}\n"
)
CHOICES = (
    "`jpsi workflow wait flow.yaml` goes on with that one as it was,"
    " and `jpsi workflow cancel flow.yaml` ends it, before --again begins a new one\n"
)


def set_options(*values: str) -> list[str]:
    return [word for it in values for word in ("--set", it)]


@pytest.mark.parametrize(
    ("values", "differences"),
    [
        (["n=9"], "n=8, not n=9"),
        (["n=9", "who=me too"], "n=8 and who='', not n=9 and who='me too'"),
        (["n=8", "is_fast=true"], "is_fast=false, not is_fast=true"),
        ([], "n=8, not n=4"),
    ],
)
def test_a_run_that_is_over_does_not_stand_for_other_values(
    values: list[str], differences: str, run: Run
) -> None:
    file = flow(COUNT)
    run("run", "--set", "n=8", file)

    other = run("run", *set_options(*values), file)

    message = f"jpsi: the last run of {file} has {differences}; --again begins a new run\n"
    assert other == (2, "", message)
    assert run("run", "--again", *set_options(*values), file)[0] == 0
    assert run("run", *set_options(*values), file)[0] == 0


@pytest.mark.parametrize("values", [["n=8"], ["n=0x8"], ["n=8", "who=", "is_fast=no"]])
def test_the_same_values_in_other_words_stand_for_the_run(values: list[str], run: Run) -> None:
    file = flow(COUNT)
    run("run", "--set", "n=8", file)

    code, _, err = run("run", *set_options(*values), file)

    assert code == 0
    assert err.startswith("jpsi: the last run of flow.yaml is over; ")


@pytest.mark.parametrize("value", ["8", "0x8"])
def test_a_value_that_only_the_run_has_is_kept_and_named_as_it_was_typed(value: str, run: Run) -> None:
    task = "{name: a, command: [echo, 'n=${n}'], resources: r}"
    file = flow(f"parameters: {{n: {{type: integer}}}}\n{HEAD}- {task}\n")
    run("run", "--set", f"n={value}", file)

    code, _, err = run("run", file)

    assert code == 0
    assert err.splitlines()[0] == f"jpsi: the last run of {file} began with --set n={value}, which it keeps"


@pytest.fixture(params=["interrupted", "driven"])
def unended(request: pytest.FixtureRequest, run: Run, log: Log) -> Iterator[str]:
    """The document of a run with n=8 that has not ended: no process drives it, or another one does."""
    task = "{name: c, command: [sh, -c, 'echo n=${n} >>$LOG'], resources: r, depends_on: [b]}"
    file = flow(f"parameters: {{n: 4}}\n{LONG}- {task}\n")
    with client("run", "--set", "n=8", file) as first:
        assert eventually(lambda: log() == ["a"])
        if request.param == "interrupted":
            first.kill()
            first.wait()
        yield file
        Path(os.environ["LOG"] + ".gate").touch()
        run("wait", file)


def test_a_run_that_has_not_ended_does_not_go_on_with_another_value(unended: str, run: Run) -> None:
    other = run("run", "--set", "n=9", unended)

    assert other == (2, "", f"jpsi: the last run of {unended} has n=8, not n=9; {CHOICES}")


def test_a_run_that_has_not_ended_goes_on_with_its_values_and_names_them(unended: str, log: Log) -> None:
    with client("run", unended) as second:
        assert second.stderr is not None
        line = second.stderr.readline().decode()
        Path(os.environ["LOG"] + ".gate").touch()
        second.communicate()

    assert line == f"jpsi: the last run of {unended} began with --set n=8, which it keeps\n"
    assert second.returncode == 0
    assert log() == ["a", "b", "n=8"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "x=1"], "JS003: parameters has no 'x'"),
        (["--set", "n=many"], "JS003: parameters.n must be an integer, not 'many'"),
        (["--set", "n"], "'n' is not NAME=VALUE"),
        (["--strict"], "JS002: it has no version"),
        (["--strict", "--lenient"], "--strict and --lenient exclude each other"),
        (["--missing", "fail"], "nothing is known of 'hw'"),
        (["--constraint", "hw.gpu=x.y"], "began without --constraint hw.gpu=x.y; --again begins a new run"),
        (["--constraint", "hw.gpu"], "'hw.gpu' is not SUBSYSTEM.FIELD=OPTION"),
        (["--subsystems", "hw"], "began with other subsystems than --subsystems hw has; --again begins"),
        (["--subsystems", "nowhere"], "nowhere is no directory with subsystems"),
    ],
)
def test_no_option_is_ignored_since_there_is_a_run(options: list[str], message: str, run: Run) -> None:
    task = "{name: a, command: [echo, 'n=${n}'], resources: r, requires: gpus}"
    needs = "requires: {gpus: [{name: hw, field: gpu, match: a100}]}\n"
    file = flow(f"parameters: {{n: 4}}\n{needs}{HEAD.removeprefix('version: 1')}- {task}\n")
    Path("hw").mkdir()
    Path("hw/hw.json").write_text(json.dumps({"graph": {"nodes": {"g": {"metadata": {"gpu": "a100"}}}}}))
    assert run("run", file)[0] == 0

    code, _, err = run("run", *options, file)

    assert code == 2
    assert message in err


def test_the_same_options_go_on_with_the_run(run: Run) -> None:
    file = flow(COUNT)
    Path("hw").mkdir()
    Path("hw/hw.json").write_text(json.dumps({"graph": {"nodes": {"g": {"metadata": {"gpu": "a100"}}}}}))
    options = ["--strict", "--missing", "fail", "--constraint", "hw.gpu=x.y", "--subsystems", "hw"]
    assert run("run", *options, file)[0] == 0

    assert run("run", *options, file)[0] == 0
    assert run("run", file)[0] == 0


def test_logs_of_a_run_without_a_job_name_the_document(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    file = flow(f"{HEAD}- {{name: a, command: [sh, -c, 'exit 0'], resources: r}}\n")
    monkeypatch.setattr("jpsi_jobspec.commands.run_commands.drive_run", lambda *_: 0)
    assert run("run", file)[0] == 0

    assert run("logs", file) == (0, "", "jpsi: no task of flow.yaml has begun\n")
