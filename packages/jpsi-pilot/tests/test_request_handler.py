"""The request handler, which stores submissions as long as they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jpsi_pilot.agent.journal import Journal
from jpsi_pilot.agent.request_handler import ENVIRONMENTS, RequestHandler
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.executor.requirements import pilot_settings
from jpsi_pilot.protocol.values import Need


def submit(handler: RequestHandler, tag: str, **environment: str) -> dict[str, Any]:
    """Submit a job."""
    return handler.submit(
        tag=tag,
        script="true",
        elements=None,
        at_a_time=None,
        need=Need(seconds=1).to_dict(),
        settings=pilot_settings(PilotConfig()).to_dict(),
        retry=False,
        environment=environment,
        umask=0o022,
        client="1.1",
    )


def environments(folder: Path) -> list[str]:
    """Return the stored environments."""
    return sorted(it.read_text() for it in (folder / ENVIRONMENTS).iterdir())


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path, 0.0)
    yield journal
    journal.close()


@pytest.fixture
def handler(tmp_path: Path, journal: Journal) -> RequestHandler:
    return RequestHandler(journal, tmp_path, lambda: 7.0, {})


def test_a_repeated_submission_has_the_same_id(handler: RequestHandler) -> None:
    assert submit(handler, "one") == submit(handler, "one") != submit(handler, "other")


def test_an_environment_is_stored_once_and_readable_by_its_user_alone(
    handler: RequestHandler, tmp_path: Path
) -> None:
    submit(handler, "one", SECRET="1")
    submit(handler, "other", SECRET="1")

    (environment_file,) = (tmp_path / ENVIRONMENTS).iterdir()
    assert environment_file.stat().st_mode & 0o077 == 0


def test_an_environment_is_removed_with_its_last_job(
    handler: RequestHandler, journal: Journal, tmp_path: Path
) -> None:
    submit(handler, "one", SECRET="1")
    submit(handler, "other", SECRET="2")

    handler.cancel(ids=[journal.state.native_id(1, None)])
    handler.remove_unused_environments()
    assert environments(tmp_path) == ['{"SECRET": "1"}', '{"SECRET": "2"}'], "the agent still reports the job"
    journal.compact(8.0)
    handler.remove_unused_environments()

    assert environments(tmp_path) == ['{"SECRET": "2"}']
