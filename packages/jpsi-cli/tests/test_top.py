"""The full screen, on a simulated terminal."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

import jpsi
from jpsi import JobState, Reason
from jpsi_cli.error_boundary import SelectionError
from jpsi_cli.jobs.top import Top, filter_jobs, tail
from jpsi_engine import job_store
from jpsi_engine.job_store import Origin, StoredJob
from jpsi_engine.transfer.local_files import LocalFiles
from stored_jobs import THEN, encoded_end, stored_job

if TYPE_CHECKING:
    from conftest import Started

OLD = stored_job("aaaa0001", "old", "16", final=encoded_end(JobState.COMPLETED, 60, 0))
JOBS = [
    OLD,
    stored_job("aaaa1111", "one", "17"),
    stored_job("bbbb2222", "two", "18_3", final=encoded_end(JobState.FAILED, 90000, 1, Reason.EXIT_CODE)),
    stored_job("cccc3333", None, None, origin=Origin("local", "", Path("/work/local/vm"), "host2")),
]
NOW = THEN + timedelta(hours=26)

FILTERS = {
    "everything that is recent": ("", False, ["cccc3333", "bbbb2222", "aaaa1111"]),
    "old ones, too": ("", True, ["cccc3333", "bbbb2222", "aaaa1111", "aaaa0001"]),
    "a name": ("ON", False, ["aaaa1111"]),
    "a state and an executor": ("failed slurm", False, ["bbbb2222"]),
    "a native id": ("18_3", False, ["bbbb2222"]),
    "nothing": ("nosuch", True, []),
}


@pytest.mark.parametrize(("text", "is_all", "ids"), FILTERS.values(), ids=FILTERS)
def test_filter_words_select_jobs(text: str, is_all: bool, ids: list[str]) -> None:
    assert [job.id for job in filter_jobs(JOBS, text, is_all=is_all, now=NOW)] == ids


def test_the_end_of_a_file_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    output = jpsi.Output(LocalFiles(), path)
    assert tail(output, 3) == "nothing was written yet"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(9999)) + b"\x1b[31mred\xff")

    assert tail(output, 2) == "line 9998\n\\x1b[31mred\ufffd"
    assert tail(jpsi.Output(LocalFiles(), tmp_path), 1) == f"{tmp_path} cannot be read: Is a directory"


@pytest.fixture(autouse=True)
def _read_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reload only on request, as a periodic reload would interfere on a busy machine."""
    monkeypatch.setattr("jpsi_cli.jobs.top._INTERVAL_SECONDS", 3600)


def run_top(
    read: Callable[[], Sequence[StoredJob]], scenario: Callable[[Top, Pilot[None]], Awaitable[None]]
) -> None:
    """Run a scenario, a sequence of user actions, on the screen."""

    async def play() -> None:
        app = Top(read)
        async with app.run_test(size=(120, 40)) as pilot:
            await settled(app, pilot)
            await scenario(app, pilot)

    asyncio.run(play())


async def settled(app: Top, pilot: Pilot[None]) -> None:
    await app.workers.wait_for_complete()
    await pilot.pause()


def displayed(app: Top, name: str) -> str:
    return str(app.query_one(f"#{name}", Static).render())


def listed(app: Top) -> list[str]:
    table = app.query_one(DataTable)
    return [str(table.get_row_at(row)[0]) for row in range(table.row_count)]


def test_jobs_are_listed_and_filtered() -> None:
    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        assert listed(app) == ["cccc3333", "aaaa1111"]
        assert displayed(app, "counts").startswith("1 NEW, 1 QUEUED")
        await pilot.press("a", "slash", *"two", "enter")
        assert listed(app) == ["bbbb2222"]
        await pilot.press("escape")
        assert listed(app) == ["cccc3333", "bbbb2222", "aaaa1111", "aaaa0001"]

    # all were submitted long ago
    run_top(lambda: JOBS, scenario)


def test_the_cursor_stays_on_its_job() -> None:
    jobs = JOBS[:2]

    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("a", "down")
        assert "output of old" in displayed(app, "about")
        jobs.append(JOBS[3])
        app.reload()
        await settled(app, pilot)
        assert listed(app) == ["cccc3333", "aaaa1111", "aaaa0001"]
        assert "output of old" in displayed(app, "about")

    run_top(lambda: jobs, scenario)


def test_the_output_of_a_job_is_shown(tmp_path: Path) -> None:
    job = stored_job("aaaa1111", "one", "17", origin=Origin("slurm", "", tmp_path))
    job.folder.mkdir(parents=True)
    (job.folder / "stdout").write_text("[bold]out[/bold]\n")
    (job.folder / "stderr").write_text("err\n")

    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        assert "[bold]out[/bold]" in displayed(app, "pane")
        await pilot.press("e")
        assert "err" in displayed(app, "pane")
        await pilot.press("o")
        assert "out" in displayed(app, "pane")

    run_top(lambda: [job], scenario)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> jpsi.Job:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    job = jpsi.Job(jpsi.JobSpec("sleep", ["1000"], name="mine"))
    jpsi.JobExecutor("local").submit(job)
    return job


def test_a_job_is_cancelled_after_confirmation(running: jpsi.Job) -> None:
    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("c", "n")
        await settled(app, pilot)
        assert not running.status.final
        await pilot.press("c", "y")
        await settled(app, pilot)

    run_top(job_store.jobs, scenario)

    status = running.wait(60)
    assert status is not None
    assert status.state is JobState.CANCELED


def test_a_failed_cancellation_shows_its_error() -> None:
    def read() -> Sequence[StoredJob]:
        msg = "it cannot be read [/jobs]"
        raise jpsi.SubmitException(msg)

    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        await pilot.pause()
        (note,) = app._notifications
        assert (note.message, note.markup) == ("it cannot be read [/jobs]", False)

    run_top(read, scenario)


def test_ctrl_c_leaves(start_on_terminal: Callable[..., Started]) -> None:
    started = start_on_terminal("top")
    started.wait_for(b"no jobs")
    started.type(b"\x03")

    assert started.end()[0] == 0


def test_view_why_explains_the_state(running: jpsi.Job) -> None:
    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("w")
        await settled(app, pilot)
        assert "ACTIVE: it runs, for" in displayed(app, "pane")

    run_top(job_store.jobs, scenario)
    running.cancel()
    running.wait(60)


def explained_with(monkeypatch: pytest.MonkeyPatch, explain: Callable[[StoredJob], str]) -> None:
    monkeypatch.setattr("jpsi_cli.jobs.top.render_explanation", explain)


def test_view_why_explains_the_selected_job_only(monkeypatch: pytest.MonkeyPatch) -> None:
    explained_with(monkeypatch, lambda job: f"the reason of {job.id}")

    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("w")
        await settled(app, pilot)
        assert displayed(app, "pane") == "the reason of cccc3333"
        await pilot.press("down")
        await settled(app, pilot)
        assert (displayed(app, "about"), displayed(app, "pane")) == (
            "why of one",
            "press w to query the reason",
        )
        await pilot.press("w")
        await settled(app, pilot)
        assert displayed(app, "pane") == "the reason of aaaa1111"
        app.reload()
        await settled(app, pilot)
        assert displayed(app, "pane") == "the reason of aaaa1111"

    run_top(lambda: JOBS, scenario)


def test_a_late_explanation_does_not_replace_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()

    def explain(job: StoredJob) -> str:
        assert may_end.wait(60)
        return "the reason"

    explained_with(monkeypatch, explain)

    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("w")
        assert displayed(app, "pane") == "querying …"
        await pilot.press("o")
        may_end.set()
        await settled(app, pilot)
        assert displayed(app, "pane") != "the reason"

    run_top(lambda: JOBS, scenario)


def test_a_job_that_cannot_be_found_any_more_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def explain(job: StoredJob) -> str:
        msg = "there is no such job"
        raise SelectionError(msg)

    explained_with(monkeypatch, explain)

    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("w")
        await settled(app, pilot)
        assert displayed(app, "pane") == "there is no such job"

    run_top(lambda: JOBS, scenario)


def test_one_read_at_a_time() -> None:
    may_end = threading.Event()
    reads: list[int] = []

    def read() -> Sequence[StoredJob]:
        reads.append(len(reads))
        if len(reads) == 2:
            assert may_end.wait(60)
        return JOBS[: len(reads)]

    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("a")
        for _ in range(3):
            app.reload()
        app._reload_if_idle()
        await pilot.pause()
        assert reads == [0, 1]
        may_end.set()
        await settled(app, pilot)
        await settled(app, pilot)
        assert (reads, len(listed(app))) == ([0, 1, 2], 3)

    run_top(read, scenario)


def test_actions_that_are_not_possible_show_a_notice() -> None:
    async def scenario(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("c")
        assert [note.message for note in app._notifications] == [
            "there is no selected job that could be cancelled"
        ]

    run_top(list, scenario)


def test_it_runs_on_a_terminal(start_on_terminal: Callable[..., Started]) -> None:
    started = start_on_terminal("top")
    started.wait_for(b"no jobs")
    started.type(b"q")

    assert started.end()[0] == 0


def test_without_a_terminal_top_is_a_usage_error(
    run: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    result = run("top")

    assert result.returncode == 2
    assert b"jpsi top needs a terminal" in result.stderr
