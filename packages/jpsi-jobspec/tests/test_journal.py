"""The files of a run, which are whole at every instant and are found by any path."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from jobspec_support import begin_run
from jpsi import ConfigError, SubmitException
from jpsi_jobspec.planning.site import Limit, Machine, Mapped, Site
from jpsi_jobspec.planning.subsystems import SubsystemNode
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.run_store.journal import Journal

DOCUMENT = "version: 1\ntasks: [{name: a, command: ior}]\n"


@pytest.fixture
def run(tmp_path: Path, log: Callable[[], list[str]]) -> Journal:
    return begin_run(DOCUMENT, "local", tmp_path)


def test_a_run_is_planned_for_the_site_that_it_began_on(
    run: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(
        target="slurm",
        subsystems={"hardware": (SubsystemNode("n", {"gpu": "a100"}, {"a": "b"}),)},
        is_missing_error=True,
        is_remote=True,
        is_heterogeneous=True,
        machine=Machine(gpus=1),
        default_duration=timedelta(minutes=3),
        constraints={"hardware.gpu": Mapped(option="slurm.constraint", join="&")},
        limits=(Limit(queue="short", nodes=2, seconds=60.0),),
    )
    sites = []
    make_plan = runs.make_plan
    monkeypatch.setattr(runs, "make_plan", lambda *them: sites.append(them[1]) or make_plan(*them))

    runs.create_run(run.plan.source, DOCUMENT, site, {})

    assert sites == [site]


def test_a_cancel_request_appears_together_with_its_reason(
    run: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    rename = Path.rename

    def renamed(path: Path, target: Path) -> Path:
        seen.append((run.is_cancelled, path.read_text()))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", renamed)
    run.cancel(reason="timeout")
    run.cancel(reason="interrupted")

    assert seen == [(False, "timeout")]
    assert (run.is_cancelled, run.cancel_reason) == (True, "timeout")


@pytest.mark.parametrize("entries", [(), ("a",)])
def test_a_failed_write_of_a_cancel_request_is_reported(run: Journal, entries: tuple[str, ...]) -> None:
    shutil.rmtree(run.path)

    with pytest.raises(SubmitException, match="cancel cannot be made: No such file"):
        run.cancel(*entries)
    with pytest.raises(SubmitException, match="lock cannot be opened: No such file"), run.lock():
        pass


def test_a_cancel_is_requested_for_an_entry_by_name_or_with_the_whole_run(run: Journal) -> None:
    run.cancel("g/b.c")
    assert [run.is_cancel_requested(it) for it in ("a", "g", "g/b.c")] == [False, False, True]

    run.cancel()
    assert run.is_cancel_requested("a")


def test_the_name_of_a_journal_outlives_a_crash_of_the_machine(
    run: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    fsync = os.fsync

    def watched(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").readlink())
        fsync(file)

    monkeypatch.setattr(os, "fsync", watched)
    for _ in range(2):
        run.append([{"entry": "a", "replica": 1, "job": "x"}], is_synced=True)

    assert synced == [run.path, run.path / "journal", run.path / "journal"]


def test_a_document_has_the_same_runs_by_any_path_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    monkeypatch.chdir(tmp_path)

    ways = ["there/flow.yaml", "./there/../there/flow.yaml", "link/flow.yaml", f"{tmp_path}/link/flow.yaml"]

    assert len({runs.runs_folder(it) for it in ways}) == 1
    assert runs.runs_folder("there/other.yaml") != runs.runs_folder("there/flow.yaml")


@pytest.mark.parametrize("umask", [0o000, 0o177], ids="{:03o}".format)
def test_files_of_runs_are_private_under_any_umask(
    tmp_path: Path, log: Callable[[], list[str]], umask: int
) -> None:
    before = os.umask(umask)
    try:
        run = begin_run(DOCUMENT, "local", tmp_path)
        run.cancel("a")
        run.cancel(reason="it is late")
        run.record_life("1")
        with run.lock():
            run.append([{"entry": "a", "replica": 1, "job": "x"}], is_synced=True)
    finally:
        os.umask(before)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (run.path, *run.path.rglob("*"))}
    expected = {name: 0o700 if name == run.path.name else 0o600 for name in modes}
    assert modes == expected
    assert {"journal", "lock", "cancel", "cancel.a", "life", "run.json", "document.yaml"} <= modes.keys()


def test_run_that_others_can_change_is_not_driven(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    run = begin_run(DOCUMENT, "local", tmp_path)
    run.path.parent.chmod(0o777)

    with pytest.raises(ConfigError, match=r"the directory of runs .* can be written by others"):
        runs.read_run(run.path)


DAMAGED_REQUESTS = {
    "no JSON": "{",
    "no keys": "{}",
    "no mapping": "[]",
    "a part of the keys": '{"source":1}',
    "no text": "null",
    "no site": '{"source": "flow.yaml", "parameters": {}, "site": {}}',
    "no parameters": '{"source": "flow.yaml", "parameters": [], "site": SITE}',
    "a site without a key": '{"source": "flow.yaml", "parameters": {}, "site": {"target": "local"}}',
    "a site of other types": '{"source": "flow.yaml", "parameters": {}, "site": ["local"]}',
}


@pytest.mark.parametrize("text", DAMAGED_REQUESTS.values(), ids=DAMAGED_REQUESTS)
def test_a_damaged_request_is_reported(text: str, run: Journal) -> None:
    path = run.path / "run.json"
    path.write_text(text.replace("SITE", json.dumps(json.loads(path.read_text())["site"])))

    with pytest.raises(
        SubmitException, match=r"the run in .* cannot be read: its run\.json is not as jpsi.*--again"
    ):
        runs.read_run(run.path)


@pytest.mark.parametrize(
    "line",
    ["[]", "null", "1", "{}", '{"entry":"a","replica":"x"}', '{"entry":[],"replica":1}', '{"entry":"b"}'],
)
def test_a_damaged_journal_is_reported(line: str, run: Journal) -> None:
    (run.path / "journal").write_text(f"{line}\n")

    with pytest.raises(SubmitException, match=r"the journal .* cannot be read.*--again"):
        runs.read_run(run.path)
