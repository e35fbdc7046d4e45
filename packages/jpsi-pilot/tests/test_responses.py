"""The agent's responses, and their parsing: each job has its tag, and incomplete responses are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import Command, JobState, Observation, Site, SubmitException
from jpsi_pilot import hooks
from jpsi_pilot.agent.journal import Journal
from jpsi_pilot.agent.request_handler import RequestHandler
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.executor.requirements import pilot_settings
from jpsi_pilot.protocol.values import Need
from jpsi_testing import command_result

SITE = Site(config=PilotConfig())


@pytest.fixture
def handler(tmp_path: Path) -> Iterator[RequestHandler]:
    journal = Journal(tmp_path, 0.0)
    yield RequestHandler(journal, tmp_path, lambda: 7.0, {})
    journal.close()


def submit(handler: RequestHandler, tag: str, elements: int | None = None) -> str:
    """Submit a job, or an array."""
    response = handler.submit(
        tag=tag,
        script="true",
        elements=elements,
        at_a_time=None,
        need=Need(seconds=1).to_dict(),
        settings=pilot_settings(PilotConfig()).to_dict(),
        retry=False,
        environment={},
        umask=0o022,
        client="1.1",
    )
    return str(response["id"])


def request(command: Command) -> dict[str, Any]:
    """Return the request to the agent in a command."""
    values = json.loads(command.stdin or "")
    del values["do"]
    return dict(values)


def observations(handler: RequestHandler, ids: list[str] | None) -> str:
    """Return the output of client.py for a response."""
    return json.dumps(handler.query(**request(hooks.query(ids, SITE)))) + "\n"


def test_status_carries_the_tag_of_the_job(handler: RequestHandler) -> None:
    job, array = submit(handler, "jpsi-1-1"), submit(handler, "jpsi-2-1", 2)
    ids = [job, f"{array}[1]", f"{array}[2]"]

    for queried in ([job, array], None):
        found = hooks.parse_status(
            command_result(observations(handler, queried)), None if queried is None else ids
        )
        assert {it: seen.tag for it, seen in found.items()} == dict(
            zip(ids, ("jpsi-1-1", "jpsi-2-1", "jpsi-2-1"), strict=True)
        )


def test_unknown_jobs_are_denied(handler: RequestHandler) -> None:
    job = submit(handler, "jpsi-1-1")
    ids = [job, "aaaaaaaa-9", "aaaaaaaa-8[1]"]

    found = hooks.parse_status(command_result(observations(handler, [job, "aaaaaaaa-9", "aaaaaaaa-8"])), ids)

    assert found[job].exists
    assert {it for it, seen in found.items() if not seen.exists} == {"aaaaaaaa-9", "aaaaaaaa-8[1]"}


def test_a_response_without_a_queried_job_is_refused(handler: RequestHandler) -> None:
    job = submit(handler, "jpsi-1-1")

    with pytest.raises(SubmitException, match="aaaaaaaa-9"):
        hooks.parse_status(command_result(observations(handler, [job])), [job, "aaaaaaaa-9"])


def _same_or_none(text: str, ids: list[str] | None, whole: dict[str, Observation]) -> bool:
    try:
        return dict(hooks.parse_status(command_result(text), ids)) == whole
    except SubmitException:
        return True


def test_a_truncated_response_is_refused(handler: RequestHandler) -> None:
    array = submit(handler, "jpsi-2-1", 2)
    queried = [array, "aaaaaaaa-9"]
    ids = [f"{array}[1]", f"{array}[2]", "aaaaaaaa-9"]

    for names, native_ids in ((queried, ids), (None, None)):
        text = observations(handler, names)
        whole = dict(hooks.parse_status(command_result(text), native_ids))
        assert whole
        for end in range(len(text)):
            assert _same_or_none(text[:end], native_ids, whole), text[:end]
        assert _same_or_none(f"Welcome {{}}\n{text}", native_ids, whole)
        assert hooks.parse_status(command_result(f"Welcome {{}}\n{text}"), native_ids) == whole


_WORDS = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())
_JSON = st.recursive(_WORDS, lambda it: st.dictionaries(st.sampled_from(["state", "time", "tag", "a"]), it))


@given(jobs=st.dictionaries(st.sampled_from(["a-1", "b-2"]), _JSON), unknown=_JSON)
def test_a_malformed_response_is_refused(jobs: dict[str, Any], unknown: Any) -> None:
    """The parser raises the error of an outage, and no other job is reported as ended."""
    result = command_result(json.dumps({"jobs": jobs, "unknown": unknown}))

    try:
        found = hooks.parse_status(result, ["a-1"])
    except SubmitException:
        return
    assert found["a-1"].exists is ("a-1" in jobs)


def test_only_a_job_with_the_same_tag_is_cancelled(handler: RequestHandler) -> None:
    job, array = submit(handler, "jpsi-1-1"), submit(handler, "jpsi-2-1", 2)
    seen = hooks.parse_status(command_result(observations(handler, None)), None)
    others = {it: Observation(state=JobState.QUEUED, native_state="waiting", tag="jpsi-9-9") for it in seen}

    response, _ = handler.cancel(**request(hooks.cancel([job, array], SITE, others)))
    assert set(response["cancelled"]) == {f"{array}[1]", f"{array}[2]"}
    response, _ = handler.cancel(**request(hooks.cancel([job], SITE, seen)))
    assert set(response["cancelled"]) == {job}


def test_elements_are_cancelled_by_their_tags(handler: RequestHandler) -> None:
    array = submit(handler, "jpsi-2-1", 3)
    seen = hooks.parse_status(command_result(observations(handler, None)), None)

    for tag, ended in (("jpsi-9-9", 0), ("jpsi-2-1", 2)):
        known = {it: Observation(state=None, native_state="", tag=tag) for it in seen}
        command = hooks.cancel([f"{array}[1]", f"{array}[3]"], SITE, known)
        assert len(handler.cancel(**request(command))[0]["cancelled"]) == ended
