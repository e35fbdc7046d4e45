"""Staging to nodes that share no files: files are there before a process of a task begins."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobspec_support import SYSTEMS, drive_run, entries, planned
from jpsi import JobState
from jpsi_jobspec.commands import WORKFLOW
from jpsi_jobspec.planning.site import Site
from jpsi_jobspec.reporting.plan_text import render_plan
from jpsi_jobspec.running.staging import archive_path, is_shared_with_nodes, pack, staging_command
from jpsi_testing.fake import FakeScheduler

Log = Callable[[], list[str]]
HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\n  g: {type: core, replicas: 2}\n"
FLOW = HEAD + (
    "tasks:\n- {name: setup, steps: [{name: stage, path: /data/x}]}\n"
    "- {name: a, command: ior, resources: r, depends_on: [setup]}\n"
    "- {name: b, command: ior, resources: r, depends_on: [a], steps: [{name: stage, path: /data/y}]}\n"
    "- {name: c, command: ior, resources: r}\n"
    "groups:\n- name: g\n  resources: g\n  depends_on: [setup]\n  tasks:\n"
    "  - {name: own, steps: [{name: stage, path: /data/z}]}\n"
    "  - {name: t, command: ior, resources: r, depends_on: [own]}\n"
    "  - {name: u, command: ior, local: true}\n"
)


def run_on_node(paths: Sequence[str], folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    words = staging_command(paths, folder, command or ("echo", "it runs", "a  b"))
    return subprocess.run(words, check=False, capture_output=True, text=True)


@pytest.mark.clause("ng-stage")
def test_each_process_stages_files_before_its_command() -> None:
    found = {name: it.staged for name, it in entries(planned(FLOW, Site(target="slurm"))).items()}

    assert found == {
        "setup": ("/data/x",),
        "a": ("/data/x",),
        "b": ("/data/x", "/data/y"),
        "c": (),
        "g": ("/data/x",),
        "g/own": ("/data/x", "/data/z"),
        "g/t": ("/data/x", "/data/z"),
        "g/u": ("/data/x", "/data/z"),
    }


def test_on_one_machine_nothing_is_copied() -> None:
    plan = planned(FLOW, Site(is_one_machine=True))

    assert {it.staged for it in entries(plan).values()} == {()}


@pytest.mark.clause("ng-stage-transformer")
@pytest.mark.parametrize(
    ("site", "message"),
    [
        (Site(is_one_machine=True), "/data/x has to be on this machine"),
        (
            Site(target="slurm"),
            "/data/x is looked for by each process on its node, and copied there if it is missing",
        ),
        (
            Site(target="remote", is_remote=True),
            "/data/x is put on 'remote', and looked for by each process on its node",
        ),
    ],
    ids=["local", "a batch system", "another machine"],
)
def test_the_plan_shows_the_staging_of_files(site: Site, message: str) -> None:
    text = f"{HEAD}tasks: [{{name: setup, steps: [{{name: stage, path: /data/x}}]}}]\n"

    assert f"    file: {message}" in list(render_plan(planned(text, site)))


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_node_extracts_only_missing_files_from_the_archive(kind: str, tmp_path: Path) -> None:
    path, folder = tmp_path / "it's a place" / "x y", tmp_path / "staged"
    path.parent.mkdir()
    if kind == "directory":
        (path / "in").mkdir(parents=True)
        (path / "in/file").write_text("a")
        (path / "link").symlink_to("nowhere")
    else:
        path.write_text("a")
        path.chmod(0o700)
    before = [(it.name, it.lstat().st_mode) for it in sorted(path.parent.rglob("*"))]
    pack(str(path), folder)
    shutil.rmtree(path.parent)

    done = run_on_node([str(path)], folder)

    assert (done.returncode, done.stdout, done.stderr) == (0, "it runs a  b\n", "")
    assert [(it.name, it.lstat().st_mode) for it in sorted(path.parent.rglob("*"))] == before


def test_a_node_gets_the_target_of_a_link(tmp_path: Path) -> None:
    """On the node the link would lead nowhere."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("a")
    (tmp_path / "link").symlink_to("real")
    pack(str(tmp_path / "link"), tmp_path / "staged")
    shutil.rmtree(tmp_path / "real")
    (tmp_path / "link").unlink()

    assert run_on_node([str(tmp_path / "link")], tmp_path / "staged").returncode == 0
    assert (tmp_path / "link/file").read_text() == "a"


def test_a_dangling_link_on_the_node_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a")
    pack(str(path), tmp_path / "staged")
    path.unlink()
    path.symlink_to("nowhere")

    done = run_on_node([str(path)], tmp_path / "staged")

    assert (done.returncode, done.stdout) == (125, "")
    assert f"jpsi: {path} could not be staged on " in done.stderr
    assert sorted(it.name for it in tmp_path.iterdir()) == ["staged", "x"]


@pytest.mark.parametrize("system", ["slurm", "local"], indirect=True)
def test_a_link_that_leads_nowhere_cannot_be_staged(system: str, tmp_path: Path, log: Log) -> None:
    (tmp_path / "x").symlink_to("nowhere")
    text = f"{HEAD}tasks: [{{name: s, steps: [{{name: stage, path: {tmp_path}/x}}]}}]\n"

    journal = drive_run(text, system, tmp_path)

    (part,) = journal.parts["s"]
    assert (part.state, part.reason) == (JobState.FAILED, "staging")
    assert "it is to be staged, and does not exist on this machine" in str(part.message)


@pytest.mark.parametrize(("number", "code"), [("TERM", 143), ("INT", 130), ("HUP", 129)])
def test_an_interrupted_copy_leaves_no_files(
    number: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example by a cancel; the signal comes in the middle of the copy."""
    path, tar = tmp_path / "x", tmp_path / "bin/tar"
    path.write_text("a")
    pack(str(path), tmp_path / "staged")
    path.unlink()
    tar.parent.mkdir()
    tar.write_text(f'#!/bin/sh\necho half >"$4/half"\nkill -{number} "$PPID"\n')
    tar.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tar.parent}:{os.environ['PATH']}")

    done = run_on_node([str(path)], tmp_path / "staged")

    assert (done.returncode, done.stdout) == (code, "")
    assert sorted(it.name for it in tmp_path.iterdir()) == ["bin", "staged"]


def test_signals_reach_the_command_after_the_copy(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a")
    pack(str(path), tmp_path / "staged")
    path.unlink()

    done = run_on_node([str(path)], tmp_path / "staged", "sh", "-c", "kill -TERM $$; echo it runs on")

    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")


def test_a_path_that_looks_like_an_option_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("--", "-n"):
        Path(name).write_text(name)
        pack(name, tmp_path / "staged")
        Path(name).unlink()

    assert run_on_node(["--", "-n"], tmp_path / "staged").returncode == 0
    assert [Path(it).read_text() for it in ("--", "-n")] == ["--", "-n"]


def test_an_existing_file_of_the_node_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    pack(str(path), tmp_path / "staged")
    path.write_text("own")

    assert run_on_node([str(path)], tmp_path / "staged").returncode == 0
    assert path.read_text() == "own"


def test_a_missing_file_is_reported_and_the_command_does_not_run(tmp_path: Path) -> None:
    done = run_on_node([str(tmp_path / "x")], tmp_path / "staged")

    assert (done.returncode, done.stdout) == (125, "")
    assert f"jpsi: {tmp_path}/x is to be staged, and is neither on " in done.stderr


def test_concurrent_processes_all_find_the_complete_file(tmp_path: Path) -> None:
    path, folder = tmp_path / "x", tmp_path / "staged"
    path.mkdir()
    for number in range(50):
        (path / str(number)).write_text("a" * 1000)
    pack(str(path), folder)
    shutil.rmtree(path)
    words = staging_command([str(path)], folder, ["sh", "-c", f"ls '{path}' | wc -l"])

    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(8)]

    assert [it.communicate()[0].strip() for it in processes] == ["50"] * 8
    assert sorted(it.name for it in tmp_path.iterdir()) == ["staged", "x"]


def test_a_path_below_the_home_directory_is_found_in_that_of_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    (tmp_path / "here").mkdir()
    (tmp_path / "here/x").write_text("a")
    pack("~/x", tmp_path / "staged")
    monkeypatch.setenv("HOME", str(tmp_path / "there"))

    assert run_on_node(["~/x"], tmp_path / "staged").returncode == 0
    assert (tmp_path / "there/x").read_text() == "a"


def test_an_incomplete_archive_is_removed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pack(str(tmp_path / "nowhere"), tmp_path / "staged")

    assert list((tmp_path / "staged").iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "path", "is_seen"),
    [
        ("home/state/1/staged", "home/x", True),
        ("home/state/1/staged", "x", False),
        ("1/staged", "home/x", False),
    ],
    ids=["both", "outside", "another state"],
)
def test_nodes_share_the_directory_of_runs_below_the_home_directory(
    folder: str, path: str, is_seen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / folder).parent.mkdir(parents=True)
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).touch()

    assert is_shared_with_nodes(tmp_path / folder, tmp_path / path) is is_seen


@pytest.mark.clause("ng-stage", "ng-stage-transformer")
@pytest.mark.parametrize("system", [it for it in SYSTEMS if it != "local"], indirect=True)
@pytest.mark.parametrize("where", ["task", "group"])
def test_a_job_gets_files_of_the_submit_host_on_its_node(
    where: str, system: str, tmp_path: Path, log: Log
) -> None:
    """The test simulates the node by removing the file once it was staged."""
    path = tmp_path / "only here"
    path.write_text("staged\n")
    stage = f"{{name: setup, steps: [{{name: stage, path: '{path}'}}]}}"
    gone = f"{{name: gone, command: [rm, '{path}'], resources: r, depends_on: [setup]}}"
    reads = f"{{name: t, command: [cat, '{path}'], resources: r, depends_on: [setup, gone]}}"
    text = f"{HEAD}tasks:\n- {stage}\n- {gone}\n- {reads}\n"
    if where == "group":
        text = f"{HEAD}groups:\n- name: g\n  resources: g\n  tasks:\n  - {stage}\n  - {gone}\n  - {reads}\n"

    journal = drive_run(text, system, tmp_path)

    assert {it.value for states in journal.states.values() for it in states} == {"COMPLETED"}
    assert archive_path(str(path), journal.staging).exists()
    assert path.read_text() == "staged\n"


def test_archives_are_removed_once_a_run_has_ended(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake_commands("slurm")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text("staged\n")
    stage = f"steps: [{{name: stage, path: {tmp_path}/x}}]"
    Path("flow.yaml").write_text(
        f"{HEAD}tasks: [{{name: a, command: cat x, resources: r, {stage},"
        f" attributes: {{cwd: {tmp_path}}}}}]\n"
    )

    result = CliRunner().invoke(WORKFLOW, ["run", "-x", "slurm", "flow.yaml"], standalone_mode=False)

    assert (result.exception, result.return_value) == (None, 0)
    assert list((tmp_path / "state").rglob("*.tar")) == []
    assert list((tmp_path / "state").rglob("staged")) == []


@pytest.mark.parametrize("system", ["slurm"], indirect=True)
def test_a_group_stages_files_from_its_submit_directory(system: str, tmp_path: Path, log: Log) -> None:
    """The file no longer exists there when the group runs."""
    path = tmp_path / "only here"
    path.write_text("staged\n")
    text = (
        f"{HEAD}tasks:\n- {{name: first, command: 'true', resources: r}}\n"
        "groups:\n- name: g\n  resources: g\n"
        f"  tasks:\n  - {{local: true, command: [mv, '{path}', '{path}.gone']}}\n"
        f"  - {{name: t, command: [cat, '{path}'], resources: r, steps: [{{name: stage, path: '{path}'}}]}}\n"
    )

    journal = drive_run(text, system, tmp_path)

    assert {name: it[0] for name, it in journal.states.items()} == dict.fromkeys(
        ["first", "g"], JobState.COMPLETED
    )
    assert path.read_text() == "staged\n"
