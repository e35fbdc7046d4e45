"""Workflows whose jobs run on a remote host, with other files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import found, run_workflow
from jpsi_jobspec.planning.site import Site
from jpsi_jobspec.run_store import runs
from jpsi_testing import RemoteTransport
from jpsi_testing.fake import FakeScheduler

HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\ntasks:\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def remote_home(tmp_path: Path) -> Path:
    """Return the home directory of the remote host."""
    return RemoteTransport(tmp_path / "remote home").home


@pytest.fixture
def run(
    tmp_path: Path,
    remote_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: object,
    fake_commands: Callable[..., FakeScheduler],
) -> Run:
    """Return a function that runs commands; the target `remote` is a batch system on the remote host."""
    config = tmp_path / "config.yaml"
    config.write_text(f"targets:\n  remote: {{executor: slurm, url: '{RemoteTransport(remote_home).url}'}}\n")
    monkeypatch.setenv("JPSI_CONFIG", str(config))
    monkeypatch.chdir(tmp_path)
    fake_commands("slurm")

    return run_workflow


def flow(text: str) -> str:
    Path("flow.yaml").write_text(text)
    return "flow.yaml"


def test_steps_put_files_where_the_jobs_run(run: Run, remote_home: Path, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").write_text("a tree\n")
    file = flow(
        f"{HEAD}- name: a\n  resources: r\n  command: [sh, -c, 'cat made/file tree/file']\n"
        '  steps: [{name: write, path: ~/made/file, content: "written\\n"}, {name: stage, path: ~/tree}]\n'
    )
    # `~` is the local home here, and the remote home there
    (tmp_path / "tree").rename(tmp_path / "home/tree")

    code, _, err = run("run", "-x", "remote", file)

    assert (code, err) == (0, "")
    assert run("logs", file, "a")[1] == "written\na tree\n"
    assert (remote_home / "made/file").read_text() == "written\n"
    assert (remote_home / "tree/file").exists()


def test_a_failed_transfer_fails_the_task_with_a_message(run: Run, remote_home: Path) -> None:
    (remote_home / "in").touch()
    file = flow(f"{HEAD}- {{name: a, steps: [{{name: write, path: ~/in/the/way, content: x}}]}}\n")

    code, _, err = run("run", "-x", "remote", file)

    assert code == 125
    assert err.startswith("a: FAILED: staging: ")


def test_a_remote_directory_is_checked_on_the_remote_host(run: Run, remote_home: Path) -> None:
    (remote_home / "only there").mkdir()
    file = flow(
        f"{HEAD}- {{name: a, command: pwd, resources: r, attributes: {{cwd: '{remote_home}/only there'}}}}\n"
    )

    assert run("run", "-x", "remote", file)[0] == 0
    assert run("logs", file, "a")[1] == f"{remote_home}/only there\n"


def test_remote_output_is_shown_locally(run: Run) -> None:
    command = "command: [sh, -c, echo x]"
    file = flow(f"{HEAD}- {{name: a, {command}, resources: r, attributes: {{watch: true}}}}\n")

    assert run("run", "-x", "remote", file)[:2] == (0, "x\n")


def test_a_remote_service_is_ready_once_its_file_exists(run: Run, remote_home: Path) -> None:
    file = flow(
        f"{HEAD}- {{name: s, command: [sh, -c, 'touch up; exec sleep 600'], service: true, resources: r,"
        " ready: {file: up}}\n"
        "- {name: a, command: [test, -e, up], resources: r, depends_on: [s]}\n"
    )

    assert run("run", "-x", "remote", file)[0] == 0


GROUP = """\
version: 1
resources: {r: {type: core, count: 1}}
groups:
- {name: g, resources: r, tasks: [{command: a}]}
"""


def test_a_group_on_a_remote_host_is_refused(run: Run) -> None:
    file = flow(GROUP)

    code, out, err = run("plan", "-x", "remote", file)

    assert (code, out) == (2, "")
    assert err.startswith("jpsi: flow.yaml:4:3: JS093: groups[0] is a group, and 'remote' is a remote host")
    assert run("run", "-x", "remote", file)[0] == 2
    assert runs.latest_run(file) is None


def test_a_port_or_command_of_a_remote_service_cannot_be_probed() -> None:
    text = (
        f"{HEAD}- {{name: a, command: a, service: true, resources: r, ready: {{tcp: 'localhost:80'}}}}\n"
        "- {name: b, command: a, service: true, resources: r, ready: {file: up}}\n"
    )

    assert [(it.code, it.at.line) for it in found(text, site=Site(target="remote", is_remote=True))] == [
        ("JS093", 5)
    ]
