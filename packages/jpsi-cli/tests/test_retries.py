"""The options --retry and --grow, and the process by which `jpsi submit` has jobs submitted again."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jpsi
from jpsi_cli.jobs.ls import _FollowedJobs
from jpsi_cli.stored_jobs import recall, refresh_statuses, retries, waiting
from jpsi_engine import job_store
from jpsi_testing.waiting import eventually

Run = Callable[..., subprocess.CompletedProcess[bytes]]
COMMAND = 'echo ran | tee -a tries; test "$(wc -l <tries)" = 3 || exit 75'


def runs_of(folder: Path) -> int:
    tries = folder / "tries"
    return len(tries.read_text().splitlines()) if tries.exists() else 0


def test_run_waits_for_the_last_attempt(run: Run, tmp_path: Path) -> None:
    done = run("run", "--executor", "local", "--retry", "75=2", "--", "sh", "-c", COMMAND)

    assert (done.returncode, runs_of(tmp_path), done.stdout) == (0, 3, b"ran\n" * 3)


def test_submit_starts_a_process_that_submits_again(run: Run, tmp_path: Path) -> None:
    done = run("submit", "--executor", "local", "--retry", "75=2", "--", "sh", "-c", COMMAND)
    job = done.stdout.decode().strip()

    assert (done.returncode, f"If it is killed, jpsi wait {job} goes on" in done.stderr.decode()) == (0, True)
    assert eventually(lambda: json.loads(run("show", "--json", job).stdout)[0]["state"] == "COMPLETED")
    assert runs_of(tmp_path) == 3
    explained = run("explain", job).stdout.decode()
    assert explained.startswith("COMPLETED: ")
    assert "attempt 1 ended at " in explained
    assert "attempt 2 ended at " in explained
    assert b"attempt:       3\n" in run("show", job).stdout


def test_a_job_between_two_attempts_is_shown_and_cancelled(run: Run, tmp_path: Path) -> None:
    job = waiting_job(run, tmp_path)
    # behind the state, its metadata name the attempt that follows
    assert b"\nattempt:" not in run("show", job).stdout.partition(b"\nstate:")[0]

    cancelled = run("cancel", job)

    assert cancelled.returncode == 0
    assert run("explain", job).stdout.decode().startswith("CANCELED")
    assert json.loads(run("show", "--json", job).stdout)[0]["attempt"] == runs_of(tmp_path) == 1


def waiting_job(run: Run, tmp_path: Path) -> str:
    """Return a job that waits for its second attempt."""
    spec = jpsi.JobSpec("/bin/sh", ["-c", COMMAND], directory=tmp_path)
    spec.attributes.retry = {"75": 2, "delay": 3600}
    (tmp_path / "job.yaml").write_text(jpsi.write_document(spec))
    job = run("submit", "--executor", "local", "-f", "job.yaml").stdout.decode().strip()
    assert eventually(lambda: "attempt 2 follows, not before" in run("explain", job).stdout.decode())
    return job


def test_logs_shows_that_a_job_waits_and_submits_it_not(
    run: Run, start: Callable[..., Any], tmp_path: Path
) -> None:
    job = waiting_job(run, tmp_path)
    follower = start("logs", "-f", job, prefix=("sh", "-c", 'exec "$@" 2>&1', "sh"))
    follower.wait_for(b"attempt 2 follows, not before")
    run("cancel", job)

    assert follower.end()[:2][1].endswith(b"ran\n")


def test_commands_that_read_leave_out_jobs_that_wait_for_their_next_attempt(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, environment[name])
    job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", "exit 75"]))
    job.spec.attributes.retry = {75: 2, "delay": 3600}  # type: ignore[union-attr]  # it has a spec
    with jpsi.JobExecutor("local") as executor:
        executor.submit(job)
        assert eventually(lambda: job_store.jobs()[0].awaits_retry)
        stored = job_store.jobs()

        assert refresh_statuses(stored) == {}
        assert _FollowedJobs().statuses(stored) == {}
        job.cancel()
        assert job.wait(60)


@pytest.mark.parametrize("first", ["between", "ended"])
def test_one_job_keeps_no_other_from_being_queried(monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    queried = list[str]()

    class Stub:
        """An executor of which the first job is between its attempts, or has just ended."""

        def info(self, job: Any) -> object:
            queried.append(job.id)
            if job.id == "a1" and first == "ended":
                job.status = jpsi.JobStatus(jpsi.JobState.COMPLETED)
                raise jpsi.SubmitException("job a1 has ended")
            return None if job.id == "a1" else object()

    executor, status = Stub(), jpsi.JobStatus(jpsi.JobState.ACTIVE)
    jobs = {it: SimpleNamespace(id=it, executor=executor, status=status) for it in ("a1", "a2", "a3")}
    monkeypatch.setattr(recall, "recall_jobs", lambda _: recall.RecalledJobs(jobs, {}))

    refresh_statuses([])

    assert queried == ["a1", "a2"]


def test_the_process_that_follows_recalls_jobs_until_it_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    waited, pauses, recalls = list[str](), list[float](), list[set[str]]()
    followed = {it: SimpleNamespace(wait=lambda it=it: waited.append(it)) for it in ("a1", "a2")}
    stored = {
        it: SimpleNamespace(
            id=it, status=jpsi.JobStatus(jpsi.JobState.ACTIVE), is_unsent=it == "a3", deferral=None, damage=()
        )
        for it in ("a1", "a2", "a3", "other")
    }

    def recall_some(jobs: Iterable[Any]) -> Any:
        recalls.append({it.id for it in jobs})
        found = [{"a1"}, set[str](), {"a2"}][len(recalls) - 1]
        return SimpleNamespace(jobs={it: followed[it] for it in found})

    store = SimpleNamespace(jobs=stored.values, reread=lambda jobs: [stored[it.id] for it in jobs])
    monkeypatch.setattr(retries, "job_store", store)
    monkeypatch.setattr(retries, "recall_jobs", recall_some)
    monkeypatch.setattr("sys.stdin", io.StringIO("a1\na2\na3"))

    retries.follow_retries(pauses.append)

    assert recalls == [{"a1", "a2", "a3"}, {"a2"}, {"a2"}]
    assert (waited, pauses) == (["a1", "a2"], [1.0, 2.0])


def test_wait_names_the_native_id_of_the_last_attempt(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    failed = jpsi.JobStatus(jpsi.JobState.FAILED, exit_code=75, message="exit code 75")
    spec = jpsi.JobSpec("x", attributes=jpsi.JobAttributes(retry={75: 1}))
    shared = {
        "id": "a1",
        "name": "n",
        "array_index": 1,
        "origin": SimpleNamespace(machine=None),
        "spec": spec,
    }
    first = SimpleNamespace(**shared, native_id="5_1", status=jpsi.JobStatus(jpsi.JobState.ACTIVE))
    last = SimpleNamespace(**shared, native_id="10_1", status=failed)
    awaited = SimpleNamespace(jobs=[first], deferred_ids=(), failures={})
    recalled = SimpleNamespace(jobs={"a1": None}, failures={}, best_status=lambda _: failed)
    monkeypatch.setattr(waiting, "await_submission", lambda *_: awaited)
    monkeypatch.setattr(waiting, "recall_jobs", lambda jobs: [*jobs] and recalled)
    monkeypatch.setattr(
        waiting, "jpsi", SimpleNamespace(wait_all=lambda *_, **__: [], JobState=jpsi.JobState)
    )
    monkeypatch.setattr(waiting, "job_store", SimpleNamespace(reread=lambda jobs: [last for _ in jobs]))

    code = waiting.wait_for_ends([], [first], None, as_json=False)  # type: ignore[list-item]  # of what it reads

    assert code == 75
    assert "job a1 (n, index 1, native id 10_1): FAILED" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--retry", "oom"], "'oom' is not of the form NAME=NUMBER,..., such as oom=3,timeout=1"),
        (["--retry", "oom=1.5"], "'oom=1.5' is not of the form NAME=NUMBER"),
        (
            ["--retry", "lust=1"],
            "--retry: 'lust' is no reason, such as oom, node, timeout, preempted, lost or an exit code",
        ),
        (["--retry", "nodes=1,oom=1"], "--retry: 'nodes' is no reason"),
        (["--warn", "SIGFOO@5m"], "--warn: 'SIGFOO' is none of the signals HUP, INT, QUIT, TERM, ALRM, USR1"),
        (["--retry", "timeout=1", "--grow", "cores=2"], "cores does not grow, only memory and time"),
        (["--retry", "oom=1", "--grow", "memory=2"], "jpsi: --grow: memory needs a first request, --memory"),
        (["--grow", "time=2"], "  - --grow: time needs a first request, --time"),
        (["--grow", "memory=2"], "  - --grow: memory has no effect without --retry oom=N"),
        (["--retry", "300=1"], "jpsi: --retry: '300' is no reason"),
        (["--retry", "300=1"], " or an exit code from 1 to 255\n"),
        (["--warn", "USR1@20m"], ", before whose end it could be warned; use --time\n"),
        (["--warn", "USR1@20m", "--time", "10m"], "jpsi: --warn is 1200 s before the end"),
    ],
)
def test_a_wrong_option_is_named(run: Run, options: list[str], problem: str) -> None:
    done = run("run", "--executor", "local", *options, "--", "true")

    assert done.returncode != 0
    assert problem in done.stderr.decode()
