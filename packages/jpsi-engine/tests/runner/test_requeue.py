"""The runner in a requeued job: a run that has ended is not repeated, a requeued one is."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import pytest

from jpsi.contract.hookspecs import Arrays
from jpsi_engine.runner.arrays import ElementFrame, element_blocks, element_text, render_array_runner
from jpsi_engine.runner.claim_and_markers import BatchFrame
from jpsi_engine.runner.requeue import RequeueRules
from jpsi_engine.runner.script_input import Run
from jpsi_engine.spool.layout import Layout
from jpsi_engine.spool.spool import Spool
from runners import PATH, SINGLE, RunnerBench, shell_job, without_usage

NATIVE = {"JOB_ID": "17"}
KNOWN = RequeueRules("COUNT", frozenset({99, 100}))
UNKNOWN = RequeueRules("COUNT")
UNCOUNTED = RequeueRules("", frozenset({99, 100}))


@attrs.frozen
class EarlierRun:
    """A test bench with the files of an earlier run of the job."""

    bench: RunnerBench

    def leave(self, *names: str, is_moved: bool = False) -> None:
        """Make the files of earlier runs: markers, which a client has moved if `is_moved`, and others."""
        self.bench.folder.mkdir(parents=True, exist_ok=True)
        self.bench.events.mkdir(parents=True, exist_ok=True)
        (self.bench.folder / "claim.1").write_text("17\n")
        for time, name in enumerate(names):
            is_marker = name.rpartition(".")[2] in {"active", "signalled"} or ".exit." in f".{name}"
            if is_marker:
                path = (self.bench.folder if is_moved else self.bench.events) / f"a1.1.{name}"
            else:
                path = self.bench.folder / name.partition("=")[0]
            path.write_text(name.partition("=")[2])
            os.utime(path, (time, time))

    def files(self) -> dict[str, int]:
        """Return all files with their times."""
        folders = (self.bench.folder, self.bench.events)
        return {it.name: it.stat().st_mtime_ns for folder in folders for it in folder.iterdir()}

    def run(self, *, restarts: int | None = 0) -> tuple[int, int]:
        """Run the attempt, and return its exit code and the number of runs of the job."""
        environment = NATIVE if not restarts else {**NATIVE, "COUNT": str(restarts)}
        ended = self.bench.run(shell_job('echo ran >>"$1"', self.bench.proof), environment)
        proof = self.bench.proof
        return ended.code, len(proof.read_text().splitlines()) if proof.exists() else 0


@pytest.fixture
def earlier_run(tmp_path: Path, shell: str, request: pytest.FixtureRequest) -> EarlierRun:
    rules = getattr(request, "param", KNOWN)
    return EarlierRun(RunnerBench(tmp_path, shell, BatchFrame("JOB_ID", rules)))


RAN = (0, 1)
#: The files of earlier runs, the number of requeues since, and the result of another run.
ENDED: dict[str, tuple[Sequence[str], int, tuple[int, int]]] = {
    "succeeded": (["start.1.0=0", "active", "exit.run.0"], 1, (0, 0)),
    "failed": (["start.1.0=0", "active", "exit.run.7"], 1, (7, 0)),
    "failed before it ran": (["start.1.0=0", "active", "exit.directory.125"], 1, (125, 0)),
    "its stage out failed": (["start.1.0=0", "active", "exit.run-stage_out.0"], 1, (125, 0)),
    "its files were not removed": (["start.1.0=0", "active", "exit.run-cleanup.0"], 1, (0, 0)),
    "signalled after its end": (["start.1.0=0", "active", "exit.run.7", "signalled"], 1, (7, 0)),
    "succeeded after it was put back": (
        ["start.1.0=0", "active", "signalled", "exit.run.143", "start.1.1=1", "1.active", "1.exit.run.0"],
        2,
        (0, 0),
    ),
    "the count of before a preemption": (["start.1.0=0", "active", "signalled", "exit.run.143"], 0, (143, 0)),
    "the count from before its requeue code": (["start.1.0=0", "active", "exit.run.99"], 0, (99, 0)),
    "the count of before a kill": (["start.1.0=0", "active", "exit.run.137"], 0, (137, 0)),
    "published by the report of the system": (
        ["start.1.0=0", "active", "signalled", "exit.run.143", "final.1.json={}"],
        1,
        (143, 0),
    ),
    "published, with a requeue code": (
        ["start.1.0=0", "active", "exit.run.99", "final.1.json={}"],
        1,
        (125, 0),
    ),
    "stopped by jpsi": (
        ["start.1.0=0", "active", "signalled", "exit.run.143", "stop.1.json={}"],
        1,
        (143, 0),
    ),
    "published as lost, and never ran": (["final.1.json={}"], 0, (125, 0)),
    "published as lost, and left no end": (["start.1.0=0", "active", "final.1.json={}"], 1, (125, 0)),
    "its shell was missing": (["exit.shell.125"], 1, (125, 0)),
    "its start was lost": (["active", "exit.run.7"], 1, (7, 0)),
    "signalled": (["start.1.0=0", "active", "signalled", "exit.run.143"], 1, RAN),
    "signalled and returned 0": (["start.1.0=0", "active", "signalled", "exit.run.0"], 1, RAN),
    "requeue code": (["start.1.0=0", "active", "exit.run.99"], 1, RAN),
    "another requeue code": (["start.1.0=0", "active", "exit.run.100"], 1, RAN),
    "killed": (["start.1.0=0", "active", "exit.run.137"], 1, RAN),
    "its node failed": (["start.1.0=0", "active"], 1, RAN),
    "its node failed, without a requeue count": (["start.1.0=0", "active"], 0, RAN),
    "it had begun, and no more": (["start.1.0=0"], 1, RAN),
    "put back twice": (
        ["start.1.0=0", "active", "signalled", "exit.run.143", "start.1.1=1", "1.active", "1.exit.run.99"],
        2,
        RAN,
    ),
    "it was to end, and has not begun": (["stop.1.json={}"], 0, RAN),
    "another attempt was stopped": (["start.1.0=0", "active", "exit.run.99", "stop.2.json={}"], 1, RAN),
}


@pytest.mark.parametrize("is_moved", [False, True], ids=["in events", "in the folder"])
@pytest.mark.parametrize(("left", "restarts", "expected"), ENDED.values(), ids=ENDED)
def test_files_of_earlier_runs_decide(
    earlier_run: EarlierRun, left: Sequence[str], restarts: int, expected: tuple[int, int], is_moved: bool
) -> None:
    earlier_run.leave(*left, is_moved=is_moved)

    assert earlier_run.run(restarts=restarts) == expected


@pytest.mark.parametrize(
    "left",
    [left for left, _, expected in ENDED.values() if expected != RAN],
    ids=[name for name, (_, _, expected) in ENDED.items() if expected != RAN],
)
@pytest.mark.parametrize("is_moved", [False, True], ids=["in events", "in the folder"])
def test_a_refused_run_leaves_other_files_unchanged_and_no_marker(
    earlier_run: EarlierRun, left: Sequence[str], is_moved: bool
) -> None:
    earlier_run.leave(*left, is_moved=is_moved)
    before = earlier_run.files()

    for _ in range(2):
        earlier_run.run(restarts=0)

    after = earlier_run.files()
    assert {name: after.pop(name, None) for name in before} == before
    assert after.keys() == {"rerun.1", "run.1"}
    assert (earlier_run.bench.folder / "rerun.1").read_text() == "17\n17\n"


@pytest.mark.parametrize("earlier_run", [UNCOUNTED], indirect=True, ids=["without a requeue count"])
@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (["start.1.0=", "active", "exit.run.0"], (0, 0)),
        (["start.1.0=", "active", "exit.run.7"], (7, 0)),
        (["start.1.0=", "active", "exit.run.99"], RAN),
        (["start.1.0=", "active", "signalled", "exit.run.143"], RAN),
        (["start.1.0=", "active", "signalled", "exit.run.143", "final.1.json={}"], (143, 0)),
    ],
    ids=["succeeded", "failed", "requeue code", "signalled", "published"],
)
def test_without_a_requeue_count_a_provisional_end_may_run_again(
    earlier_run: EarlierRun, left: Sequence[str], expected: tuple[int, int]
) -> None:
    earlier_run.leave(*left)

    assert earlier_run.run() == expected


CODES = {
    "as written": ('{"requeue_exit_codes": [5, 17]}', (17, 5), (99, 1, 50)),
    "none": ('{"requeue_exit_codes": []}', (), (99, 5)),
    "one": ('{"requeue_exit_codes": [5]}', (5,), (99, 55)),
    "garbage": ("requeue [5]", (99, 100), (5,)),
    "empty": ("", (99, 100), (5,)),
}


@pytest.mark.parametrize(("text", "repeated", "final"), CODES.values(), ids=CODES)
def test_the_last_recorded_exit_codes_count(
    tmp_path: Path, shell: str, text: str, repeated: Sequence[int], final: Sequence[int]
) -> None:
    ran = {}
    for code in (*repeated, *final):
        earlier_run = EarlierRun(RunnerBench(tmp_path / str(code), shell, BatchFrame("JOB_ID", KNOWN)))
        earlier_run.leave("start.1.0=0", "active", f"exit.run.{code}")
        (earlier_run.bench.root / "requeue.json").write_text(text)
        ran[code] = earlier_run.run(restarts=1)

    assert ran == dict.fromkeys(repeated, RAN) | {code: (code, 0) for code in final}


@pytest.mark.parametrize("earlier_run", [UNKNOWN], indirect=True, ids=["unknown"])
@pytest.mark.parametrize(("code", "expected"), [(0, (0, 0)), (1, RAN), (99, RAN)])
def test_before_the_requeue_codes_are_known_any_failure_may_be_requeued(
    earlier_run: EarlierRun, code: int, expected: tuple[int, int]
) -> None:
    earlier_run.leave("start.1.0=0", "active", f"exit.run.{code}")

    assert earlier_run.run(restarts=1) == expected


def test_the_run_number_increases_even_if_start_files_are_lost(earlier_run: EarlierRun) -> None:
    earlier_run.leave("active", "signalled", "exit.run.143")

    assert earlier_run.run(restarts=1) == RAN

    assert "1.exit.run.0" in earlier_run.bench.markers()


def test_each_run_records_the_requeue_count(earlier_run: EarlierRun) -> None:
    earlier_run.leave("start.1.0=0", "active")

    earlier_run.run(restarts=3)

    assert (earlier_run.bench.folder / "start.1.1").read_text() == "3\n"


def test_a_job_runs_once_even_if_its_markers_are_moved_during_the_check(earlier_run: EarlierRun) -> None:
    """A client moves markers from one folder to the other, and the runner checks both."""
    earlier_run.leave("start.1.0=0", "active", "exit.run.7")
    written = earlier_run.bench.write(shell_job('echo ran >>"$1"', earlier_run.bench.proof))
    text = written.read_text()
    move = f"mv {earlier_run.bench.events}/a1.1.* {earlier_run.bench.folder}/\n  case $_jpsi_code in"
    assert text.count("case $_jpsi_code in") == 1
    written.write_text(text.replace("case $_jpsi_code in", move))

    ended = earlier_run.bench.start(written, {**NATIVE, "COUNT": "1"})

    assert ended.code == 7
    assert not earlier_run.bench.proof.exists()


@pytest.mark.parametrize("setting", ["set -f", "shopt -s failglob", "shopt -s nullglob", "GLOBIGNORE='*'"])
def test_shell_options_of_a_profile_hide_no_exit_marker(tmp_path: Path, setting: str) -> None:
    earlier_run = EarlierRun(RunnerBench(tmp_path, "/bin/bash", BatchFrame("JOB_ID", KNOWN)))
    earlier_run.leave("start.1.0=0", "active", "exit.run.7")
    written = earlier_run.bench.write(shell_job('echo ran >>"$1"', earlier_run.bench.proof))
    written.write_text(written.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{setting}\n"))

    assert earlier_run.bench.start(written, {**NATIVE, "COUNT": "1"}).code == 7
    assert not earlier_run.bench.proof.exists()


# --------------------------------------------------------------------------------------------- arrays


@pytest.fixture
def elements(tmp_path: Path, shell: str) -> Iterator[Callable[..., int]]:
    """Yield a function that runs one of three elements; each records its run and exits with its index."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    run_file = f"{spool.arrays.folder('x')}/run"
    runs = [
        Run(
            job_id=f"job-{index}",
            attempt=1,
            folder=spool.folder(f"job-{index}"),
            events=spool.events,
            directory=str(tmp_path),
            spec=shell_job(f'echo ran >>"$1"; exit {index}', tmp_path / f"proof-{index}"),
            launch=SINGLE,
            frame=ElementFrame("", common=run_file, index=index),
        )
        for index in (1, 2, 3)
    ]
    arrays = Arrays(largest=9, id_variable="ARRAY_ID", index_variable="INDEX")
    common = render_array_runner("x", Layout(spool.root), arrays, KNOWN)
    lines = [{"id": run.job_id, "attempt": 1, "spec": {}} for run in runs]
    os.close(
        spool.arrays.prepare("x", {"spec": {}}, lines, common, list(element_blocks(map(element_text, runs))))
    )

    def run(index: int, restarts: int = 0) -> int:
        environment = {"PATH": PATH, "ARRAY_ID": "17", "INDEX": str(index)}
        environment |= {"COUNT": str(restarts)} if restarts else {}
        return subprocess.run([shell, run_file], env=environment, check=False).returncode

    return run


@pytest.mark.parametrize("restarts", [0, 1])
@pytest.mark.parametrize("is_moved", [False, True], ids=["in events", "in the folder"])
def test_an_ended_element_does_not_run_again_and_the_others_do(
    elements: Callable[..., int], tmp_path: Path, restarts: int, is_moved: bool
) -> None:
    assert elements(2) == 2
    spool = Spool(tmp_path / "spool")
    if is_moved:
        spool.collect(["job-2"])

    assert [elements(2, restarts), elements(1), elements(3)] == [2, 1, 3]

    assert [(tmp_path / f"proof-{index}").read_text() for index in (1, 2, 3)] == ["ran\n"] * 3
    left = {without_usage(it.name) for it in spool.collect(["job-2"])["job-2"]}
    assert left == {"job-2.1.active", "job-2.1.exit.run.2"}


def test_a_requeued_element_runs_again(elements: Callable[..., int], tmp_path: Path) -> None:
    elements(2)
    events = tmp_path / "spool" / "events"
    (events / "job-2.1.signalled").touch()
    os.utime(events / "job-2.1.signalled", (0, 0))

    assert elements(2, 1) == 2

    assert (tmp_path / "proof-2").read_text() == "ran\nran\n"


def test_the_signal_that_ends_a_run_lets_it_run_again(
    batch: RunnerBench, fifo: Callable[[str], Path]
) -> None:
    """A real signal leaves the markers of a preemption."""
    up = fifo("up")
    text = '[ -e "$2" ] && exit 3; trap "exit 0" TERM; touch "$2"; echo >"$1"; while :; do sleep 0.01; done'
    written = attrs.evolve(batch, frame=BatchFrame("JOB_ID", KNOWN)).write(shell_job(text, up, batch.proof))
    first = subprocess.Popen([batch.shell, str(written)], env={"PATH": PATH, "JOB_ID": "17"})
    with up.open() as ready:
        ready.read()
    first.send_signal(signal.SIGTERM)
    first.wait(60)

    ended = batch.start(written, {**NATIVE, "COUNT": "1"})

    assert (ended.code, "1.exit.run.3" in ended.markers) == (3, True)
