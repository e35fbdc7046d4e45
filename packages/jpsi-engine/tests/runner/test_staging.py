"""Staging by the runner's script in real shells: the places of files, and the reported outcome."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jpsi.model.spec import JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi_engine.runner.claim_and_markers import BatchFrame, ProcessFrame
from jpsi_engine.runner.script import render_runner
from jpsi_engine.runner.script_input import Run
from jpsi_engine.runner.staging import log_file
from runners import PATH, SINGLE, RunnerBench, script, shell_job

COPY, LINK, MOVE = StagingMode.COPY, StagingMode.LINK, StagingMode.MOVE
ALWAYS, IF_PRESENT = StageOutFlags.ALWAYS, StageOutFlags.IF_PRESENT
ON_SUCCESS, ON_ERROR, ON_CANCEL = StageOutFlags.ON_SUCCESS, StageOutFlags.ON_ERROR, StageOutFlags.ON_CANCEL
#: A name that a shell or a command could take for something else.
HOSTILE = "-a $b 'c\n*"
TRUE = "/bin/true"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Return the directory of files on the submitting host."""
    path = tmp_path / "here"
    path.mkdir()
    return path


def log_text(bench: RunnerBench) -> str:
    return Path(log_file(str(bench.folder), 1)).read_text()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def terminate(
    bench: RunnerBench, written: Path, up: Path, path: str = PATH, stop: Mapping[str, str] | None = None
) -> int:
    """Send TERM to a script once a process writes to `up`, and return its exit code.

    `local` signals all processes, a batch system may signal the runner alone. A client writes `stop` before.
    """
    process = subprocess.Popen(
        [bench.shell, str(written)],
        env={"PATH": path, "JOB_ID": "17"},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with up.open() as ready:
        ready.read()
    if stop is not None:
        (bench.folder / "stop.1.json").write_text(json.dumps(stop))
    try:
        (os.kill if isinstance(bench.frame, BatchFrame) else os.killpg)(process.pid, signal.SIGTERM)
        return process.wait(60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


# ---------------------------------------------------------------------------------------------- the text


def test_jobs_without_staging_have_the_script_that_they_would_have_without_it() -> None:
    run = {"job_id": "a", "attempt": 1, "folder": "/f", "events": "/e", "directory": "/d", "launch": SINGLE}

    text = render_runner(
        Run(spec=JobSpec(TRUE, stage_in=[], stage_out=[], cleanup=[]), frame=ProcessFrame(), **run)
    )

    assert "stage" not in text
    assert "_jpsi_signalled" not in text


# ------------------------------------------------------------------------------------------------ stage in


@pytest.mark.parametrize("mode", StagingMode)
def test_files_are_staged_in_before_the_job_starts(bench: RunnerBench, here: Path, mode: StagingMode) -> None:
    """Standard input and pre_launch may be staged in, too."""
    (here / HOSTILE).write_text("text")
    (here / "pre.sh").write_text("export PRE=here")
    spec = shell_job(
        'cat; echo "$PRE"; cat "$1"',
        Path("a/b", HOSTILE),
        stdin_path=Path("in"),
        pre_launch=Path("pre.sh"),
        stage_in=[
            StageIn(str(here / "pre.sh"), Path("pre.sh"), mode),
            StageIn(str(here / HOSTILE), Path("a/b", HOSTILE)),
            StageIn(str(here / HOSTILE), Path("in"), mode),
        ],
    )

    ended = bench.run(spec)

    assert (ended.code, ended.markers) == (0, ["exit.run.0"])
    assert ended.stdout == b"texthere\ntext"
    assert (here / HOSTILE).exists() is (mode is not MOVE)
    assert (bench.directory / "in").is_symlink() is (mode is LINK)
    assert names(bench.directory) == ["a", "in", "pre.sh"]


def test_modes_and_links_below_a_directory_are_kept(simple: RunnerBench, here: Path) -> None:
    tree = here / "tree"
    script(tree / "bin" / "run", "", 0o754)
    (tree / "link").symlink_to("bin/run")

    simple.run(JobSpec(TRUE, stage_in=[StageIn(str(tree), Path("got"))]))

    assert (simple.directory / "got/bin/run").stat().st_mode & 0o777 == 0o754
    assert (simple.directory / "got/link").readlink() == Path("bin/run")


def test_a_copy_follows_a_link(simple: RunnerBench, here: Path) -> None:
    (here / "file").write_text("text")
    (here / "link").symlink_to("file")

    simple.run(JobSpec(TRUE, stage_in=[StageIn(str(here / "link"), Path("got"))]))

    assert not (simple.directory / "got").is_symlink()
    assert (simple.directory / "got").read_text() == "text"


@pytest.mark.parametrize("mode", StagingMode)
def test_an_existing_file_is_replaced(bench: RunnerBench, here: Path, mode: StagingMode) -> None:
    """A file that has other names is not changed."""
    bench.directory.mkdir()
    (bench.directory / "got").write_text("old")
    (bench.directory / "other").hardlink_to(bench.directory / "got")
    (here / "a").write_text("new")

    bench.run(JobSpec(TRUE, stage_in=[StageIn(str(here / "a"), Path("got"), mode)]))

    assert (bench.directory / "got").read_text() == "new"
    assert (bench.directory / "other").read_text() == "old"


@pytest.mark.parametrize("mode", StagingMode)
def test_a_file_is_copied_into_an_existing_directory(
    bench: RunnerBench, here: Path, mode: StagingMode
) -> None:
    (bench.directory / "into").mkdir(parents=True)
    (here / "a").write_text("text")
    (here / "b").write_text("other")

    bench.run(
        JobSpec(
            TRUE, stage_in=[StageIn(str(here / "a"), Path("into"), mode), StageIn(str(here / "b"), Path())]
        )
    )

    assert (bench.directory / "into/a").read_text() == "text"
    assert (bench.directory / "b").read_text() == "other"


@pytest.mark.parametrize("mode", [COPY, MOVE])
def test_a_directory_is_merged_into_an_existing_one(
    bench: RunnerBench, here: Path, mode: StagingMode
) -> None:
    (bench.directory / "got").mkdir(parents=True)
    for path, text in ((bench.directory / "got/kept", "kept"), (bench.directory / "got/both", "old")):
        path.write_text(text)
    (here / "tree").mkdir()
    (here / "tree/both").write_text("new")

    ended = bench.run(JobSpec(TRUE, stage_in=[StageIn(str(here / "tree"), Path("got"), mode)]))

    assert ended.markers == ["exit.run.0"]
    assert names(bench.directory / "got") == ["both", "kept"]
    assert (bench.directory / "got/both").read_text() == "new"
    assert (here / "tree").exists() is (mode is COPY)


@pytest.mark.parametrize("mode", StagingMode)
def test_a_file_staged_onto_itself_is_unchanged(bench: RunnerBench, mode: StagingMode) -> None:
    bench.directory.mkdir()
    (bench.directory / "a").write_text("text")
    (bench.directory / "tree").mkdir()
    (bench.directory / "tree/b").write_text("text")

    ended = bench.run(
        JobSpec(TRUE, stage_in=[StageIn(str(bench.directory / it), Path(it), mode) for it in ("a", "tree")])
    )

    assert ended.markers == ["exit.run.0"] or (mode is LINK and log_text(bench)), log_text(bench)
    assert (bench.directory / "a").read_text() == "text"
    assert (bench.directory / "tree/b").read_text() == "text"
    assert not (bench.directory / "a").is_symlink()


def test_a_stage_in_that_fails_ends_the_job_before_anything_runs(bench: RunnerBench, here: Path) -> None:
    pre = script(bench.root / "pre.sh", f"echo ran >{bench.proof}")
    (here / "after").write_text("")
    spec = shell_job(
        'echo ran >"$1"',
        bench.proof,
        pre_launch=pre,
        stage_in=[StageIn(str(here / "a b"), Path("b")), StageIn(str(here / "after"), Path("after"))],
        stage_out=[StageOut(Path("out"), str(here / "out"), ALWAYS)],
        cleanup=[Path("after")],
    )

    ended = bench.run(spec)

    assert (ended.code, ended.markers) == (125, ["exit.stage_in.125"])
    assert log_text(bench) == f"{here / 'a b'}: there is no such file or directory\n"
    assert not bench.proof.exists()
    assert names(bench.directory) == []


def test_output_of_staging_commands_is_logged(simple: RunnerBench, here: Path) -> None:
    (here / "tree").mkdir()
    (simple.directory).mkdir()
    (simple.directory / "file").write_text("")

    ended = simple.run(JobSpec(TRUE, stage_in=[StageIn(str(here / "tree"), Path("file/below"))]))

    assert ended.markers == ["exit.stage_in.125"]
    assert "mkdir" in log_text(simple)


def test_a_signal_while_files_are_staged_in_ends_the_job(
    bench: RunnerBench, here: Path, fifo: Callable[[str], Path]
) -> None:
    up = fifo("up")
    slow = script(bench.root / "bin" / "cp", f'#!/bin/sh\necho >"{up}"\nexec sleep 60')
    (here / "a").write_text("")
    written = bench.write(
        shell_job('echo ran >"$1"', bench.proof, stage_in=[StageIn(str(here / "a"), Path("a"))])
    )

    code = terminate(bench, written, up, f"{slow.parent}:{PATH}")

    assert code in {125, 143}
    assert bench.markers() in (["exit.stage_in.143", "signalled"], ["exit.stage_in.125", "signalled"])
    assert not bench.proof.exists()


# ----------------------------------------------------------------------------------------------- stage out


@pytest.mark.parametrize("mode", StagingMode)
def test_files_are_staged_out_before_the_end_is_reported(
    bench: RunnerBench, here: Path, mode: StagingMode
) -> None:
    """The files are those after post_launch, and the streams."""
    post = script(bench.root / "post.sh", "echo post >>out")
    spec = shell_job(
        "echo job >out; echo said",
        stdout_path=Path("stdout"),
        post_launch=post,
        stage_out=[
            StageOut(Path("out"), str(here / "a" / HOSTILE), mode=mode),
            StageOut(Path("stdout"), str(here / "said"), mode=mode),
        ],
    )

    ended = bench.run(spec)

    assert (ended.code, ended.markers) == (0, ["exit.run.0"])
    assert (here / "a" / HOSTILE).read_text() == "job\npost\n"
    assert (here / "said").read_text() == "said\n"
    assert names(here) == ["a", "said"]
    assert names(here / "a") == [HOSTILE]
    assert (here / "said").is_symlink() is (mode is LINK)
    assert (bench.directory / "out").exists() is (mode is not MOVE)


@pytest.mark.parametrize("code", [0, 3])
def test_flags_select_the_outcomes_of_a_stage_out(bench: RunnerBench, here: Path, code: int) -> None:
    flags = {
        "none": StageOutFlags.NONE,
        "ok": ON_SUCCESS,
        "error": ON_ERROR,
        "cancel": ON_CANCEL,
        "all": ALWAYS,
    }
    spec = shell_job(
        f"echo >out; exit {code}",
        stage_out=[StageOut(Path("out"), str(here / name), which) for name, which in flags.items()],
    )

    ended = bench.run(spec)

    assert (ended.code, ended.markers) == (code, [f"exit.run.{code}"])
    assert names(here) == (["all", "error"] if code else ["all", "none", "ok"])


def test_a_missing_optional_source_is_no_failure(bench: RunnerBench, here: Path) -> None:
    spec = JobSpec(
        TRUE,
        stage_out=[
            StageOut(Path("out"), str(here / "out"), IF_PRESENT),
            StageOut(Path("no/out"), str(here / "out"), IF_PRESENT | ALWAYS, MOVE),
        ],
    )

    assert bench.run(spec).markers == ["exit.run.0"]
    assert names(here) == []


@pytest.mark.parametrize("code", [0, 7])
def test_a_stage_out_that_fails_keeps_the_code_and_the_files(
    bench: RunnerBench, here: Path, code: int
) -> None:
    """Others are still done, nothing is cleaned up, and no batch system calls it a job that ended well."""
    spec = shell_job(
        f"echo >out; exit {code}",
        stage_out=[
            StageOut(Path("missing"), str(here / "missing"), ALWAYS),
            StageOut(Path("out"), str(here / "out"), ALWAYS),
        ],
        cleanup=[Path("out")],
    )

    ended = bench.run(spec)

    assert (ended.code, ended.markers) == (code or 125, [f"exit.run-stage_out.{code}"])
    assert log_text(bench) == "missing: there is no such file or directory\n"
    assert names(here) == ["out"]
    assert names(bench.directory) == ["out"]


def test_a_job_that_could_not_run_has_files_staged_out_on_error(bench: RunnerBench, here: Path) -> None:
    (here / "in").write_text("")
    spec = JobSpec(
        "/no/such/program",
        stage_in=[StageIn(str(here / "in"), Path("log"), MOVE)],
        stage_out=[StageOut(Path("log"), str(here / "log"), ON_ERROR), StageOut(Path("x"), "/x")],
        cleanup=[Path("log")],
    )

    ended = bench.run(spec)

    assert ended.markers == ["exit.executable.127"]
    assert names(here) == ["log"]
    assert names(bench.directory) == []


@pytest.mark.parametrize(
    ("why", "code", "outcome"),
    [
        (None, 3, "cancel"),
        ("cancel", 3, "cancel"),
        ("cancel", 0, "cancel"),
        ("timeout", 3, "error"),
        (None, 0, "success"),
    ],
    ids=["by the batch system", "by jpsi", "by jpsi, and ended well", "out of time", "heeded"],
)
def test_a_cancelled_job_stages_out_on_cancel(
    bench: RunnerBench, here: Path, fifo: Callable[[str], Path], why: str | None, code: int, outcome: str
) -> None:
    up = fifo("up")
    flags = {"success": ON_SUCCESS, "error": ON_ERROR, "cancel": ON_CANCEL}
    spec = shell_job(
        f'trap "exit {code}" TERM; echo >out; echo >"$1"; while :; do sleep 0.01; done',
        up,
        stage_out=[StageOut(Path("out"), str(here / name), flag) for name, flag in flags.items()],
    )
    stop = None if why is None else {"why": why, "time": "2024-01-01T00:00:00Z"}

    assert terminate(bench, bench.write(spec), up, stop=stop) == code
    assert bench.markers() == [f"exit.run.{code}", "signalled"]
    assert names(here) == [outcome]


def test_a_job_that_was_signalled_before_its_runner_stages_out_on_cancel(
    bench: RunnerBench, here: Path, tmp_path: Path
) -> None:
    """The runner gets the signal while it waits a moment."""
    script(tmp_path / "bin/sleep", '#!/bin/sh\nkill -TERM "$PPID"\n')
    flags = {"error": ON_ERROR, "cancel": ON_CANCEL}
    spec = shell_job(
        "echo >out; exit 3",
        stage_out=[StageOut(Path("out"), str(here / name), flag) for name, flag in flags.items()],
    )

    ended = bench.run(spec, {"PATH": f"{tmp_path / 'bin'}:{PATH}"})

    assert ended.markers == ["exit.run.3", "signalled"]
    assert names(here) == ["cancel"]


@pytest.mark.parametrize("code", [0, 3])
def test_a_job_whose_end_was_requested_waits_longer_for_the_signal(
    bench: RunnerBench, here: Path, tmp_path: Path, code: int
) -> None:
    """On a busy node, its runner may get the signal long after the job has."""
    count = tmp_path / "count"
    # the fourth sleep is ended by the signal, and the seventh sends it to the runner
    waiting = f'echo >>{count}; case $(wc -l <{count}) in 4) kill -TERM $$ ;; 7) kill -TERM "$PPID" ;; esac'
    script(tmp_path / "bin/sleep", f"#!/bin/sh\n{waiting}\n")
    flags = {"success": ON_SUCCESS, "error": ON_ERROR, "cancel": ON_CANCEL}
    spec = shell_job(
        f'echo >out; echo \'{{"why": "cancel"}}\' >{bench.folder / "stop.1.json"}; exit {code}',
        stage_out=[StageOut(Path("out"), str(here / name), flag) for name, flag in flags.items()],
    )

    ended = bench.run(spec, {"PATH": f"{tmp_path / 'bin'}:{PATH}"})

    assert ended.markers == [f"exit.run.{code}", "signalled"]
    assert names(here) == ["cancel"]


def test_signals_do_not_interrupt_stage_out(
    bench: RunnerBench, here: Path, fifo: Callable[[str], Path]
) -> None:
    up = fifo("up")
    slow = script(
        bench.root / "bin" / "cp",
        f'#!/bin/sh\necho >"{up}"; sleep 0.2; PATH={PATH}; exec cp "$@"',
    )
    written = bench.write(shell_job("echo text >out", stage_out=[StageOut(Path("out"), str(here / "out"))]))
    code = terminate(bench, written, up, f"{slow.parent}:{PATH}")

    assert code == 0
    assert bench.markers() == ["exit.run.0", "signalled"]
    assert (here / "out").read_text() == "text\n"


# ----------------------------------------------------------------------------------------- a second run


@pytest.mark.parametrize("mode", StagingMode)
def test_a_run_after_a_killed_one_completes_its_staging(
    batch: RunnerBench, here: Path, mode: StagingMode
) -> None:
    (here / "a").write_text("text")
    (here / "tree").mkdir()
    (here / "tree/b").write_text("text")
    spec = shell_job(
        'cat got tree/b; echo x >out; echo x >other; exit "$N"',
        stage_in=[
            StageIn(str(here / "a"), Path("got"), mode),
            StageIn(str(here / "tree"), Path("tree"), mode),
        ],
        stage_out=[StageOut(Path("out"), str(here / "out"), mode=mode)],
        cleanup=[Path("other")],
    )
    written = batch.write(spec)

    first = batch.start(written, {"JOB_ID": "17", "N": "0"})
    next(batch.events.glob("a1.1.exit.run*.0")).unlink()
    second = batch.start(written, {"JOB_ID": "17", "N": "0"})

    assert (first.code, second.code) == (0, 0)
    assert second.markers == ["1.active", "1.exit.run.0"]
    assert second.stdout == b"texttext"
    assert names(here) == (["out"] if mode is MOVE else ["a", "out", "tree"])
    assert names(batch.directory) == ["got", *(["out"] if mode is not MOVE else []), "tree"]


def test_a_draft_that_was_left_is_no_obstacle(batch: RunnerBench, here: Path) -> None:
    (here / "a").write_text("text")
    (batch.directory / ".jpsi.a1.1.in.1" / "half").mkdir(parents=True)

    batch.run(JobSpec(TRUE, stage_in=[StageIn(str(here / "a"), Path("got"))]))

    assert names(batch.directory) == ["got"]


def test_a_move_to_another_file_system_is_complete_before_the_source_is_removed(
    simple: RunnerBench, here: Path
) -> None:
    """If df(1) fails, or reports two file systems, the runner copies, renames, and then removes."""
    df = script(simple.root / "bin" / "df", "#!/bin/sh\nexit 1")
    script(simple.root / "bin" / "mv", f'#!/bin/sh\necho "$@" >>{simple.proof}; PATH={PATH}; exec mv "$@"')
    (here / "a").write_text("text")
    written = simple.write(JobSpec(TRUE, stage_in=[StageIn(str(here / "a"), Path("got"), MOVE)]))

    simple.start(written, {"PATH": f"{df.parent}:{PATH}"})

    assert simple.proof.read_text() == "-f -- ./.jpsi.a1.1.in.1 ./got\n"
    assert (simple.directory / "got").read_text() == "text"
    assert names(here) == []


# ------------------------------------------------------------------------------------------------- cleanup


def test_cleanup_removes_only_the_named_paths(bench: RunnerBench) -> None:
    (bench.directory / "scratch/deep").mkdir(parents=True)
    spec = shell_job(
        "echo >kept; echo >scratch/deep/a; echo >scratch/b",
        cleanup=[
            Path("scratch/deep"),
            Path("never there"),
            Path("no/such/place"),
            bench.directory / "scratch/b",
        ],
    )

    assert bench.run(spec).markers == ["exit.run.0"]
    assert names(bench.directory) == ["kept", "scratch"]
    assert names(bench.directory / "scratch") == []


def test_cleanup_has_its_flags(bench: RunnerBench) -> None:
    spec = shell_job("echo >log; exit 3", cleanup=[Path("log")], cleanup_flags=ON_SUCCESS)

    bench.run(spec)

    assert names(bench.directory) == ["log"]


def test_cleanup_follows_no_link_out_of_the_directory(bench: RunnerBench, here: Path) -> None:
    (here / "precious").mkdir()
    (here / "precious/file").write_text("")
    spec = shell_job(
        'ln -s "$1" away; ln -s "$1/precious" direct; ln -s .. up',
        here,
        cleanup=[
            Path("away/precious"),
            Path("direct"),
            Path("up/proof"),
            bench.directory / "away/precious/file",
        ],
    )
    bench.proof.write_text("")

    ended = bench.run(spec)

    assert (ended.code, ended.markers) == (0, ["exit.run-cleanup.0"])
    assert log_text(bench).splitlines() == [
        "away/precious: leads out of the job's directory",
        "up/proof: leads out of the job's directory",
        f"{bench.directory}/away/precious/file: leads out of the job's directory",
    ]
    assert (here / "precious/file").exists()
    assert bench.proof.exists()
    assert names(bench.directory) == ["away", "up"]


def test_cleanup_is_in_the_directory_wherever_links_lead_that_name_it(bench: RunnerBench, here: Path) -> None:
    """The directory itself may be reached by a link."""
    bench.directory.mkdir()
    (here / "alias").symlink_to(bench.directory)
    spec = shell_job(
        "mkdir -p a/b; ln -s a/b in", cleanup=[Path("in/c"), here / "alias/a/b"], directory=here / "alias"
    )

    ended = bench.run(spec, directory=str(here / "alias"))

    assert ended.markers == ["exit.run.0"]
    assert names(bench.directory / "a") == []


def test_home_is_that_of_the_machine_of_the_job(bench: RunnerBench, here: Path) -> None:
    (here / "a").write_text("text")
    spec = shell_job(
        "cat ~/got/a; echo >~/out",
        stage_in=[StageIn(str(here / "a"), Path("~/got/a"))],
        stage_out=[StageOut(Path("~/out"), str(here / "out"))],
    )

    assert bench.run(spec).stdout == b"text"
    assert names(here) == ["a", "out"]
