"""Documents run to their end on this machine and on every fake batch system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jobspec_support import SYSTEMS, begin_run, drive_run
from jpsi import Job, JobExecutor, JobState, Reason
from jpsi_engine import job_store
from jpsi_jobspec.reporting import explain_failure
from jpsi_jobspec.run_store import journal as journals
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.running.driver import Driver

HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\ntasks:\n"
GROUP = (
    "version: 1\nresources: {g: {type: core, replicas: 4}, r: {type: core, count: 1}}\n"
    "groups:\n- name: g\n  resources: g\n  tasks:\n"
)


@pytest.mark.clause("ng-environment")
@pytest.mark.parametrize("system", SYSTEMS, indirect=True)
def test_each_task_has_its_own_variables(system: str, tmp_path: Path, log: Callable[[], list[str]]) -> None:
    text = (
        "version: 1\nresources:\n"
        "  r: {type: core, count: 1, attributes: {environment: {pasta: labasta}}}\n"
        "  loose: {type: core, count: 1, environment: {pasta: loose}}\n"
        "tasks:\n- {name: a, command: 'spack a $pasta', resources: r}\n"
        "- {name: b, command: 'spack b $pasta', resources: loose, depends_on: [a]}\n"
        "groups:\n- name: g\n  resources: r\n  depends_on: [b]\n  tasks:\n"
        "  - {local: true, command: 'spack c $pasta'}\n  - {command: 'spack d $pasta'}\n"
    )

    drive_run(text, system, tmp_path)

    commands = [line.split(" spack ")[1].split(" of ")[0] for line in log() if line.startswith("begin")]
    assert commands == ["a labasta", "b loose", "c labasta", "d labasta"]


@pytest.mark.parametrize("system", SYSTEMS, indirect=True)
def test_dependents_of_a_failure_never_run_and_report_it(
    system: str, tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    text = (
        f"{HEAD}- {{name: bad, command: 'false', resources: r}}\n"
        "- {name: never, command: ior, resources: r, depends_on: [bad]}\n"
        "- {name: neither, command: ior, resources: r, depends_on: [never]}\n"
        "- {name: mend, command: spack, resources: r, depends_on: [{name: bad, when: failed}]}\n"
        "- {name: after all, command: spack, resources: r}\n".replace("after all", "other")
    )

    journal = drive_run(text, system, tmp_path)

    assert {name: parts[0].state.value for name, parts in journal.parts.items()} == {
        "bad": "FAILED",
        "never": "CANCELED",
        "neither": "CANCELED",
        "mend": "COMPLETED",
        "other": "COMPLETED",
    }
    assert journal.parts["bad"][0].exit_code == 1
    assert {name: explain_failure(journal.parts[name][0]) for name in ("never", "neither")} == {
        "never": "dependency_failed: bad has not completed",
        "neither": "dependency_failed: never has not completed",
    }
    stored = {it.name: it.status for it in job_store.jobs()}
    if "never" in stored:
        assert stored["never"].reason is Reason.DEPENDENCY
    assert {line.split()[1] for line in log()} == {"mend", "other"}


@pytest.mark.parametrize("system", ["local", "slurm"], indirect=True)
def test_dependents_wait_for_the_last_attempt_of_a_job(
    system: str, tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    text = (
        f"{HEAD}- {{name: first, command: 'mkdir tried || exit 0; exit 7', resources: r,"
        f" attributes: {{cwd: '{tmp_path}', retry: {{'7': 1}}}}}}\n"
        "- {name: then, command: spack, resources: r, depends_on: [first]}\n"
    )

    journal = drive_run(text, system, tmp_path)

    states = {name: parts[0].state.value for name, parts in journal.parts.items()}
    assert states == {"first": "COMPLETED", "then": "COMPLETED"}
    assert [line.split()[1] for line in log() if line.startswith("begin")] == ["then"]


@pytest.mark.parametrize("system", ["local", "slurm", "flux"], indirect=True)
def test_an_entry_that_runs_after_a_failure_waits_for_the_first_failure_only(
    system: str, tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    """One replica has failed; the other ends well, and only after the dependent entry."""
    gate = tmp_path / "gate"
    some = (
        f"test $JPSI_REPLICA = 2 && exit 1; for n in $(seq 300); do test -e {gate} && exit; sleep 0.1; done"
    )
    text = (
        f"{GROUP}  - {{name: some, command: [sh, -c, '{some}'], resources: r, replicas: 2}}\n"
        f"  - {{name: mend, command: [touch, {gate}], resources: r,"
        " depends_on: [{name: some, when: failed}]}\n"
    )

    journal = drive_run(text, system, tmp_path)

    inside = journals.inner_journal(journal.path, journal.plan.entries[0])
    assert [it.value for it in inside.states["g/some"]] == ["COMPLETED", "FAILED"]
    assert inside.states["g/mend"] == [JobState.COMPLETED]


@pytest.mark.clause("ng-depends")
@pytest.mark.parametrize("system", SYSTEMS, indirect=True)
def test_all_replicas_have_ended_before_their_dependents_begin(
    system: str, tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    text = (
        f"{HEAD}- {{name: many, command: ior, resources: r, replicas: 3}}\n"
        "- {name: last, command: spack, resources: r, depends_on: [many]}\n"
    )

    journal = drive_run(text, system, tmp_path)

    lines = log()
    assert {it.value for states in journal.states.values() for it in states} == {"COMPLETED"}
    assert sorted(line.split()[2] for line in lines if line.startswith("begin many")) == ["1", "2", "3"]
    assert [line.split()[:2] for line in lines[-2:]] == [["begin", "last"], ["end", "last"]]


def test_each_replica_may_depend_on_the_one_of_its_number(
    tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    text = (
        f"{GROUP}  - {{name: a, command: exit $((JPSI_REPLICA - 1)), resources: r, replicas: 2}}\n"
        "  - {name: b, command: ior, resources: r, replicas: 2, depends_on: [{name: a, each: true}]}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    inside = journals.inner_journal(journal.path, journal.plan.entries[0])
    assert [it.value for it in inside.states["g/b"]] == ["COMPLETED", "CANCELED"]


def test_steps_write_and_stage_files_before_the_command_runs(
    tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    text = (
        f"{HEAD}- name: a\n  resources: r\n  command: [grep, -q, it is there, {tmp_path}/made/file]\n"
        f"  steps: [{{name: write, path: {tmp_path}/made/file, content: it is there}},"
        f" {{name: stage, path: {tmp_path}}}]\n"
        f"- {{name: b, steps: [{{name: stage, path: {tmp_path}/nowhere}}]}}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert journal.states == {"a": [JobState.COMPLETED], "b": [JobState.FAILED]}
    assert journal.parts["b"][0].reason == "staging"
    assert "it is to be staged, and does not exist on this machine" in str(journal.parts["b"][0].message)


def test_words_of_a_command_are_passed_unchanged(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    text = f"{HEAD}- {{name: a, command: [ior, '${{HOME}} $x \"q\" *'], resources: r}}\n"

    drive_run(text, "local", tmp_path)

    assert log()[0].startswith('begin a 1 ior ${HOME} $x "q" * of ')


def test_jobs_of_another_process_are_recovered_and_not_run_twice(
    tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    text = (
        f"{HEAD}- {{name: a, command: ior, resources: r}}\n"
        "- {name: b, command: spack, resources: r, depends_on: [a]}\n"
    )
    journal = begin_run(text, "local", tmp_path)
    first = Driver(journal, JobExecutor("local"), lambda *_: None)
    first._proceed(first._entries)  # the client is killed here
    journal.close()

    again = runs.read_run(journal.path)
    Driver(again, JobExecutor("local"), lambda *_: None).run()

    assert again.is_over
    assert [line.split()[1] for line in log() if line.startswith("begin")] == ["a", "b"]


def test_a_journaled_job_that_was_never_submitted_is_submitted_once(
    tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    journal = begin_run(f"{HEAD}- {{name: a, command: ior, resources: r}}\n", "local", tmp_path)
    journal.append([{"entry": "a", "replica": 1, "job": Job().id}], is_synced=True)
    journal.close()

    again = runs.read_run(journal.path)
    Driver(again, JobExecutor("local"), lambda *_: None).run()

    assert again.states == {"a": [JobState.COMPLETED]}
    assert len(log()) == 2


def test_a_submitted_job_that_cannot_be_found_is_not_run_again(
    tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    journal = begin_run(f"{HEAD}- {{name: a, command: ior, resources: r}}\n", "local", tmp_path)
    journal.append([{"entry": "a", "replica": 1, "job": Job().id}])
    journal.append([{"entry": "a", "replica": 1, "is_submitted": True}])

    Driver(journal, JobExecutor("local"), lambda *_: None).run()

    assert (journal.parts["a"][0].state, journal.parts["a"][0].reason) == (JobState.FAILED, "lost")
    assert log() == []


def test_an_incomplete_journal_line_is_ignored(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    journal = begin_run(f"{HEAD}- {{name: a, command: ior, resources: r}}\n", "local", tmp_path)
    (journal.path / "journal").write_text('{"entry":"a","repl')

    assert runs.read_run(journal.path).states == {"a": [JobState.NEW]}


def test_a_run_that_is_cancelled_ends_with_everything_cancelled(
    tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    text = (
        f"{HEAD}- {{name: a, command: [sleep, '600'], resources: r}}\n"
        "- {name: b, command: spack, resources: r, depends_on: [a]}\n"
    )
    journal = begin_run(text, "local", tmp_path)

    def cancel(_: object, state: JobState) -> None:
        if state is JobState.ACTIVE:
            journal.cancel()

    Driver(journal, JobExecutor("local"), cancel).run()

    assert [parts[0].state.value for parts in journal.parts.values()] == ["CANCELED", "CANCELED"]
    assert log() == []


def test_only_one_process_drives_a_run(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    journal = begin_run(f"{HEAD}- {{name: a, command: ior, resources: r}}\n", "local", tmp_path)

    with journal.lock() as first, journal.lock() as second:
        assert (first, second) == (True, False)


def test_a_task_that_is_ending_is_not_cancelled_again_with_the_next_one(
    tmp_path: Path, log: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{HEAD}- {{name: a, command: [sleep, '60']}}\n- {{name: b, command: [sleep, '60']}}\n"
    journal, executor = begin_run(text, "local", tmp_path), JobExecutor("local")
    names: list[list[str]] = []
    ending: list[Job] = []
    cancel_many = executor.cancel_many

    def cancel(jobs: Sequence[Job], *, unmet: str) -> None:
        names.append([str(it.spec and it.spec.name) for it in jobs])
        ending.extend(jobs)
        if len(names) == 1:
            journal.cancel("b")
        else:
            cancel_many(dict.fromkeys(ending), unmet=unmet)

    monkeypatch.setattr(executor, "cancel_many", cancel)
    Driver(journal, executor, lambda *_: journal.cancel("a")).run()

    assert names == [["a"], ["b"]]


def test_steps_alone_run_after_a_failure_only_if_they_say_so(
    tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    path = tmp_path / "mend"
    text = (
        f"{HEAD}- {{name: good, command: 'true', resources: r}}\n"
        f"- {{name: mend, steps: [{{name: write, path: {path}, content: x}}], when: on_failure,"
        " depends_on: [good]}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert journal.states["mend"] == [JobState.CANCELED]
    assert not path.exists()
