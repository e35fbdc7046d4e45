"""Staging by way of the job's folder: the program that submits carries files there and back."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from jpsi.model.spec import JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi_engine.transfer.remote_plan import (
    RemoteTransfer,
    local_target,
    pending_transfers,
    record_path,
    split_plan,
)
from jpsi_engine.transfer.staging_plan import plan
from runners import Ended, RunnerBench, shell_job


def run_with_transfers(bench: RunnerBench, spec: JobSpec) -> tuple[Ended, list[RemoteTransfer]]:
    """Return the end of a job with remote staging, and the files to fetch after it."""
    planned = split_plan(plan(spec), str(bench.folder), 1)
    for put in planned.puts:
        copy(put.local_path, put.remote_path)
    ended = bench.run(spec, plan=planned.runner)
    there = [get for get in planned.gets if Path(get.remote_path).exists()]
    for get in there:
        copy(get.remote_path, get.local_path)
    return ended, there


def copy(source: str, target: str) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    if Path(source).is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy(source, target)


def numbers(transfers: Iterable[RemoteTransfer]) -> list[int]:
    return [it.number for it in transfers]


@pytest.mark.parametrize("mode", StagingMode)
def test_transferred_files_are_staged_as_local_ones(
    bench: RunnerBench, tmp_path: Path, mode: StagingMode
) -> None:
    here = tmp_path / "here"
    (here / "tree").mkdir(parents=True)
    (here / "tree/a").write_text("text")
    (here / "b").write_text("more")
    (bench.directory / "into").mkdir(parents=True)
    spec = shell_job(
        "cat tree/a into/b >out",
        stage_in=[
            StageIn(str(here / "tree"), Path("tree"), mode),
            StageIn(str(here / "b"), Path("into"), mode),
        ],
        stage_out=[StageOut(Path("out"), str(here / "results/out"), mode=mode)],
        cleanup=[Path("into")],
    )

    ended, _ = run_with_transfers(bench, spec)

    assert ended.markers == ["exit.run.0"]
    assert (here / "results/out").read_text() == "textmore"
    assert (here / "tree/a").exists()
    assert not (bench.directory / "into").exists()


def test_stage_out_fetches_only_files_that_the_outcome_selects(bench: RunnerBench, tmp_path: Path) -> None:
    flags = (StageOutFlags.ON_SUCCESS, StageOutFlags.ON_ERROR, StageOutFlags.ALWAYS)
    spec = shell_job(
        "echo >out; exit 3",
        stage_out=[
            *(StageOut(Path("out"), str(tmp_path / "got" / str(flag.value)), flag) for flag in flags),
            StageOut(Path("missing"), str(tmp_path / "got/missing"), StageOutFlags.ALWAYS),
        ],
    )

    ended, got = run_with_transfers(bench, spec)

    assert ended.markers == ["exit.run-stage_out.3"]
    assert numbers(got) == [2, 3]


def test_a_recorded_transfer_is_not_repeated() -> None:
    spec = JobSpec("x", stage_out=[StageOut(Path("a"), f"/{name}") for name in "abc"])
    gets = split_plan(plan(spec), "/remote/jobs/a1", 2).gets

    names = [Path(record_path("/here/jobs/a1", 2, number)).name for number in (1, 3)]

    assert names == ["got.2.1", "got.2.3"]
    assert numbers(pending_transfers(gets, [*names, "got.1.2", "get.2"], 2)) == [2]


def test_a_file_for_a_directory_keeps_its_remote_name(tmp_path: Path) -> None:
    spec = JobSpec("x", stage_out=[StageOut(Path("a/out"), str(tmp_path)), StageOut(Path("~"), "/b")])
    into, home = split_plan(plan(spec), "/remote/staged/a1", 1).gets

    assert into.remote_path == "/remote/staged/a1/out.1.1/out"
    assert home.remote_path == "/remote/staged/a1/out.1.2/files"
    assert local_target(into, is_directory=False) == f"{tmp_path}/out"
    assert local_target(into, is_directory=True) == str(tmp_path)
    assert local_target(home, is_directory=False) == "/b"


def test_no_links_are_made(tmp_path: Path) -> None:
    spec = JobSpec(
        "x",
        stage_in=[StageIn("/a", Path("a"), StagingMode.LINK)],
        stage_out=[
            StageOut(Path("b"), "/b", mode=StagingMode.LINK),
            StageOut(Path("c"), "/c", mode=StagingMode.MOVE),
        ],
    )
    runner = split_plan(plan(spec), str(tmp_path), 1).runner

    modes = [it.mode for it in (*runner.stage_in, *runner.stage_out)]
    assert modes == [StagingMode.COPY, StagingMode.COPY, StagingMode.MOVE]


@pytest.mark.parametrize(
    ("here", "there"), [("/a/b", "b"), ("/", "files"), ("/a/..", "files"), ("/a/b/", "b")]
)
def test_remote_names_are_in_the_folder_of_the_job(here: str, there: str) -> None:
    planned = split_plan(plan(JobSpec("x", stage_in=[StageIn(here, Path("t"))])), "/remote/jobs/a1", 2)

    assert [put.remote_path for put in planned.puts] == [f"/remote/jobs/a1/in.2.1/{there}"]
    assert [it.source for it in planned.runner.stage_in] == [f"/remote/jobs/a1/in.2.1/{there}"]
