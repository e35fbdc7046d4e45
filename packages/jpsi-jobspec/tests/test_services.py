"""Services at the top: their readiness and their end; and watched output."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import begin_run, drive_run, found
from jpsi import Job, JobExecutor, JobSpec, JobState
from jpsi_jobspec.document.model import Attributes, Ready
from jpsi_jobspec.planning.plan import Entry, Kind
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.run_store.journal import Part
from jpsi_jobspec.running.driver import Driver, LiveOutput
from jpsi_jobspec.running.probes import is_ready

HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\ntasks:\n"
Log = Callable[[], list[str]]
#: A watched task, which writes to both streams.
TALKS = (
    "{name: t, command: 'echo said; echo wrong >&2; echo talked >>$LOG', resources: r,"
    " attributes: {watch: true}}"
)


@pytest.mark.parametrize("system", ["local", "slurm"], indirect=True)
def test_a_service_is_ended_once_all_tasks_have_ended(system: str, tmp_path: Path, log: Log) -> None:
    text = (
        f"{HEAD}- {{name: s, command: [sleep, '600'], service: true, resources: r}}\n"
        "- {name: a, command: ior, resources: r, depends_on: [s]}\n"
    )

    journal = drive_run(text, system, tmp_path)

    assert {name: it[0].state.value for name, it in journal.parts.items()} == {
        "s": "CANCELED",
        "a": "COMPLETED",
    }
    assert journal.parts["s"][0].reason == "no_longer_needed"


def test_services_alone_run_to_their_own_end(tmp_path: Path, log: Log) -> None:
    journal = drive_run(
        f"{HEAD}- {{name: s, command: ior, service: true, resources: r}}\n", "local", tmp_path
    )

    assert journal.states == {"s": [JobState.COMPLETED]}
    assert len(log()) == 2


def test_dependents_of_a_service_begin_once_it_is_ready(tmp_path: Path, log: Log) -> None:
    """The service is ready after two other tasks; without the probe its dependent would begin sooner."""
    up = tmp_path / "up"
    text = (
        f"{HEAD}- {{name: s, service: true, resources: r, ready: {{file: {up}}}, command: [sleep, '600']}}\n"
        f"- {{name: a, command: [test, -e, {up}], resources: r, depends_on: [s]}}\n"
        "- {name: first, command: ior, resources: r}\n"
        "- {name: second, command: ior, resources: r, depends_on: [first]}\n"
        f"- {{name: last, command: [touch, {up}], resources: r, depends_on: [second]}}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert journal.states["a"] == [JobState.COMPLETED]
    assert journal.parts["s"][0].is_ready


def test_dependents_of_a_service_that_ended_before_it_was_ready_never_run(tmp_path: Path, log: Log) -> None:
    text = (
        f"{HEAD}- {{name: s, command: 'true', service: true, ready: {{file: {tmp_path}/no}}, resources: r}}\n"
        "- {name: a, command: ior, resources: r, depends_on: [s]}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert (journal.parts["a"][0].state, journal.parts["a"][0].reason) == (
        JobState.CANCELED,
        "dependency_failed",
    )
    assert log() == []


def test_a_ready_service_is_not_probed_again_by_another_client(tmp_path: Path, log: Log) -> None:
    text = (
        f"{HEAD}- {{name: s, service: true, resources: r, ready: {{file: {tmp_path}/up}},"
        " command: [sleep, '600']}\n"
        f"- {{name: first, command: [sh, -c, 'rm {tmp_path}/up'], resources: r, depends_on: [s]}}\n"
        "- {name: a, command: ior, resources: r, depends_on: [s, first]}\n"
    )
    (tmp_path / "up").touch()
    journal = begin_run(text, "local", tmp_path)

    def killed(entry: Entry, state: JobState) -> None:
        if (entry.id, state) == ("first", JobState.COMPLETED):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Driver(journal, JobExecutor("local"), killed).run()
    journal.close()
    again = runs.read_run(journal.path)
    Driver(again, JobExecutor("local"), lambda *_: None).run()

    assert again.states["a"] == [JobState.COMPLETED]


def part(ready: Ready, **attributes: object) -> Part:
    given = Attributes(**attributes)  # type: ignore[arg-type]  # fields of attributes
    return Part(Entry(id="s", kind=Kind.SERVICE, ready=ready, attributes=given), 1)


def test_a_port_is_ready_once_a_process_listens() -> None:
    files = JobExecutor("local").files
    with socket.create_server(("127.0.0.1", 0)) as server:
        ready = Ready(tcp=f"localhost:{server.getsockname()[1]}")
        assert is_ready(part(ready), files)

    assert not is_ready(part(ready), files)


@pytest.mark.parametrize("host", ["a..b", "a" * 70, "no.such.host.invalid"])
def test_an_impossible_host_is_not_ready(host: str) -> None:
    """The probe goes on: a thread that ended would block all dependents."""
    assert not is_ready(part(Ready(tcp=f"{host}:80")), JobExecutor("local").files)


def test_the_exit_code_of_a_command_is_the_readiness_of_a_service(tmp_path: Path) -> None:
    """The command runs on the service's host, with its environment."""
    files = JobExecutor("local").files
    ready = Ready(command=("sh", "-c", 'test "$WORD" = yes && test -e here'))

    assert not is_ready(part(ready, cwd=str(tmp_path), environment={"WORD": "yes"}), files)
    (tmp_path / "here").touch()
    assert is_ready(part(ready, cwd=str(tmp_path), environment={"WORD": "yes"}), files)
    assert not is_ready(part(ready, cwd=str(tmp_path), environment={"WORD": "no"}), files)
    assert not is_ready(part(Ready(command=("/nowhere",))), files)


def test_a_probed_file_is_relative_to_the_directory_of_the_service(tmp_path: Path) -> None:
    files = JobExecutor("local").files

    assert not is_ready(part(Ready(file="up"), cwd=str(tmp_path)), files)
    (tmp_path / "up").touch()
    assert is_ready(part(Ready(file="up"), cwd=str(tmp_path)), files)


def test_a_port_without_a_number_is_reported_with_its_position() -> None:
    text = f"{HEAD}- {{command: a, resources: r, service: true, ready: {{tcp: here}}}}\n"

    assert [(it.code, it.at.line) for it in found(text)] == [("JS040", 5)]


@pytest.mark.clause("ng-watch")
def test_watched_output_is_shown_and_holds_back_later_tasks(tmp_path: Path, log: Log) -> None:
    text = (
        f"{HEAD}- name: a\n  resources: r\n  replicas: 2\n  attributes: {{watch: true}}\n"
        "  command: [sh, -c, 'echo said; echo wrong >&2; echo a >>$LOG']\n"
        "- {name: b, command: [sh, -c, 'echo unseen; echo b >>$LOG'], resources: r}\n"
    )
    output: list[tuple[bytes, str]] = []
    journal = begin_run(text, "local", tmp_path)

    Driver(
        journal,
        JobExecutor("local"),
        lambda *_: None,
        show=lambda data, stream: output.append((data, stream)),
    ).run()

    assert log() == ["a", "a", "b"]
    assert joined(output) == {"stdout": b"said\n" * 2, "stderr": b"wrong\n" * 2}


def joined(output: list[tuple[bytes, str]]) -> dict[str, bytes]:
    """Return all shown output, by its stream."""
    return {name: b"".join(it for it, stream in output if stream == name) for name in ("stdout", "stderr")}


@pytest.mark.clause("ng-watch")
@pytest.mark.parametrize("where", ["t", "g"], ids=["in a group", "in a group of a group"])
def test_only_watched_tasks_of_a_group_are_shown(where: str, tmp_path: Path, log: Log) -> None:
    text = (
        "version: 1\nresources: {g: {type: core, replicas: 2}, r: {type: core, count: 1}}\ngroups:\n"
        "- name: g\n  resources: g\n  tasks:\n"
        "  - {name: first, command: echo unseen, resources: r}\n"
        f"  - {'{group: h}' if where == 'g' else TALKS}\n"
        "  - {name: last, command: echo $(cat $LOG) >>$LOG, resources: r}\n"
        f"{'- name: h' + chr(10) + '  tasks:' + chr(10) + '  - ' + TALKS + chr(10) if where == 'g' else ''}"
    )
    output: list[tuple[bytes, str]] = []
    journal = begin_run(text, "local", tmp_path)

    Driver(
        journal,
        JobExecutor("local"),
        lambda *_: None,
        show=lambda data, stream: output.append((data, stream)),
    ).run()

    assert journal.states == {"g": [JobState.COMPLETED]}
    assert joined(output) == {"stdout": b"said\n", "stderr": b"wrong\n"}
    assert where == "g" or log() == ["talked", "talked"]


@pytest.mark.parametrize("watched", ["g", "h", "r"], ids=["group", "group in it", "resource"])
def test_all_tasks_of_a_watched_group_are_shown(watched: str, tmp_path: Path, log: Log) -> None:
    given = {name: "  attributes: {watch: true}\n" if name == watched else "" for name in "gh"}
    own = ", attributes: {watch: true}" if watched == "r" else ""
    text = (
        "version: 1\nresources:\n  g: {type: core, replicas: 2}\n  one: {type: core, count: 1}\n"
        f"  r: {{type: core, count: 1{own}}}\n"
        f"groups:\n- name: g\n  resources: g\n{given['g']}  tasks:\n"
        "  - {name: first, command: echo first, resources: one}\n  - {group: h}\n"
        f"- name: h\n  resources: r\n{given['h']}  commands: [echo local]\n"
        "  tasks:\n  - {name: last, command: echo last; echo wrong >&2}\n"
    )
    output: list[tuple[bytes, str]] = []
    journal = begin_run(text, "local", tmp_path)

    Driver(
        journal,
        JobExecutor("local"),
        lambda *_: None,
        show=lambda data, stream: output.append((data, stream)),
    ).run()

    lines = sorted(joined(output)["stdout"].decode().split())
    assert lines == ["first", "last", "local"][0 if watched == "g" else 1 :]
    assert joined(output)["stderr"] == b"wrong\n"


def test_output_is_shown_once_however_late_the_end_is_reported(log: Log) -> None:
    output: list[bytes] = []
    job = Job(JobSpec("/bin/sh", ["-c", "echo said"]))
    JobExecutor("local").submit(job)
    job.wait()
    watching = LiveOutput(lambda data, _: output.append(data))

    for _ in range(2):
        watching.begin(job)
        watching.update()

    assert output == [b"said\n"]


def test_a_watched_service_holds_back_later_tasks_until_it_has_started(tmp_path: Path, log: Log) -> None:
    text = (
        f"{HEAD}- name: s\n  resources: r\n  service: true\n  attributes: {{watch: true}}\n"
        "  command: [sh, -c, 'echo up; exec sleep 600']\n"
        "- {name: a, command: ior, resources: r}\n"
    )

    assert drive_run(text, "local", tmp_path).states["a"] == [JobState.COMPLETED]


def test_a_watched_task_in_a_group_holds_back_later_ones(tmp_path: Path, log: Log) -> None:
    text = (
        "version: 1\nresources: {g: {type: core, replicas: 4}, r: {type: core, count: 1}}\ngroups:\n"
        "- name: g\n  resources: g\n  tasks:\n"
        "  - {name: a, resources: r, attributes: {watch: true},"
        " command: [sh, -c, 'echo said; echo a >>$LOG']}\n"
        "  - {name: b, resources: r, command: [sh, -c, 'echo unseen; echo b >>$LOG']}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert log() == ["a", "b"]
    (job,) = JobExecutor("local").recall([str(journal.parts["g"][0].job_id)])
    assert "said\n" in written(job)
    assert "unseen" not in written(job)


def written(job: Job) -> str:
    streams = job.streams
    return "" if streams is None else streams.stdout.read_text()
