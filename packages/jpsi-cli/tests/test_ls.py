"""What `jpsi ls` says of jobs that it does not list, with stored jobs that no process has run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from jpsi import JobState
from jpsi_cli import messages
from jpsi_cli.jobs import ls
from jpsi_cli.output import terminal
from jpsi_engine.job_store import StoredJob
from jpsi_engine.verdict import CANCEL, Stop
from jpsi_engine.verdict.markers import Marker
from stored_jobs import THEN, encoded_end, stored_job

_DEFAULTS = {
    "jobs": (),
    "is_all": False,
    "since": None,
    "states": (),
    "executor": None,
    "name": None,
    "sort": None,
    "limit": None,
    "has_members": False,
    "only_ids": False,
    "as_json": False,
    "is_refreshing": False,
    "is_watching": False,
}
Listing = Callable[..., str]


def ended(job_id: str, name: str, *, seconds: float = 60, **fields: object) -> StoredJob:
    return stored_job(job_id, name, final=encoded_end(JobState.COMPLETED, seconds, 0), **fields)


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> Listing:
    """Return a function that lists stored jobs on a terminal, and returns what stands below the table."""
    written: list[str] = []
    monkeypatch.setattr(messages, "write", written.append)
    monkeypatch.setattr(messages, "show", lambda _: None)
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)

    def listing(stored: list[StoredJob], **options: object) -> str:
        written.clear()
        monkeypatch.setattr(ls, "listed_jobs", lambda: stored)
        assert ls.ls(**{**_DEFAULTS, **options}) == 0  # type: ignore[arg-type]  one table for all options
        return "".join(written)

    return listing


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({}, "3 more ended over a day ago: --all shows them"),
        ({"name": "tty*"}, "1 more ended over a day ago: --all shows it"),
        ({"name": "new"}, ""),
        ({"states": ["failed"]}, ""),
        ({"states": ["completed"]}, "3 more ended over a day ago: --all shows them"),
        ({"limit": 1}, ""),
        ({"limit": 2}, ""),
        ({"has_members": True}, "4 more ended over a day ago: --all shows them"),
        ({"is_all": True}, "1 more run in the allocations of these: --members shows them"),
        ({"since": "2h"}, ""),
        ({"jobs": ["new"]}, ""),
        ({"as_json": True}, ""),
        ({"only_ids": True}, ""),
    ],
)
def test_only_jobs_that_match_what_was_typed_are_said_to_be_hidden(
    listing: Listing, options: dict[str, object], hint: str
) -> None:
    just_now = (datetime.now(UTC) - THEN).total_seconds()
    stored = [
        ended("a", "ttys"),
        ended("b", "old"),
        ended("c", "old"),
        ended("d", "task", custom={"jpsi.allocation": "c"}),
        ended("e", "new", seconds=just_now),
    ]

    assert listing(stored, **options) == (f"jpsi: {hint}\n" if hint else "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fit", "jpsi: no job has the name 'fit'; those that begin so: --name 'fit*'\n"),
        ("x", "jpsi: no job has the name 'x'\n"),
        ("x*", "jpsi: no job has the name 'x*'\n"),
        ("fit *", ""),
        ("run[1]", ""),
    ],
)
def test_a_name_that_no_job_has_is_no_silent_success(listing: Listing, name: str, hint: str) -> None:
    assert listing([stored_job("a", "fit all"), stored_job("b", "run[1]")], name=name) == hint


@pytest.mark.parametrize(
    ("fields", "is_uncertain"),
    [
        ({"stop": Stop(CANCEL, THEN).content}, True),
        # with this code the batch system may requeue it
        ({"markers": [Marker("a", 1, 0, "exit", "run", 99, 0, "a.1.exit.run.99")]}, True),
        ({"stop": Stop(CANCEL, THEN).content, "final": encoded_end(JobState.CANCELED, 60)}, False),
        ({}, False),
    ],
    ids=["cancelled", "exit code", "ended", "running"],
)
def test_what_shows_ends_is_named_while_they_are_not_certain(
    listing: Listing, fields: dict[str, object], *, is_uncertain: bool
) -> None:
    hint = "jpsi: some of these may have ended: --refresh asks the batch system\n"
    job = stored_job("a", "fit", **fields)

    assert listing([job], is_all=True) == (hint if is_uncertain else "")
    assert listing([job], is_all=True, as_json=True) == ""
