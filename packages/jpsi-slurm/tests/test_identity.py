"""The tags in Slurm's output, and output that is not whole and therefore refused, as recorded."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jpsi.plugin import Command, CommandResult, Observation, Site, SubmitException
from jpsi_slurm import fake, hooks
from jpsi_slurm.config import SlurmConfig
from jpsi_testing import FakeTransport, Recording, command_result
from jpsi_testing.fake import FakeClock, FakeScheduler, Outcome
from slurm_support import RECORDINGS, recordings

SITE = Site(config=SlurmConfig(), offers={"version": [22, 5]})
JOBS: Mapping[str, str] = json.loads((RECORDINGS / "identity.json").read_text())["jobs"]
QUERIES = [step for step in recordings("identity") if step.argv[0] == "/bin/sh"]
SUCCESSFUL = [step for step in QUERIES if step.result.returncode == 0]

_TAGS = {
    "runs": "jpsi-runs-1",
    "held": "jpsi-held-1",
    "failed": "jpsi-failed-1",
    "lines": "jpsi-lines-1",
    "newline": "",
    "foreign job": "",
    "cancelled": "jpsi-cancelled-1",
    "het": "jpsi-het-1",
    "array": "jpsi-array-1",
    "emptied": "jpsi-emptied-1",
    "requeued": "jpsi-requeued-1",
}


def _name(step: Recording) -> str:
    return f"{step.argv[3]} {step.argv[-1].partition('=')[2][:20] or 'mine'} {_columns(step)}"


def _columns(step: Recording) -> int:
    return sum(word.count(",") for word in step.argv if word.lower().startswith("--format"))


def _is_search(step: Recording) -> bool:
    return step.argv[-1] == "--me" and _columns(step) == 3


def _native_ids(step: Recording) -> list[str] | None:
    words = [word for word in step.argv if word.startswith("--jobs=")]
    return words[0].removeprefix("--jobs=").split(",") if words else None


def _read(step: Recording, stdout: str | None = None) -> Mapping[str, Any]:
    """Return the result of the hook that parses a recorded query's output, or other output in its place."""
    result = step.result if stdout is None else command_result(stdout)
    if _is_search(step):
        return hooks.parse_find(result, list(_TAGS.values()))
    if step.argv[3] == "sacct":
        found = hooks.parse_finished(result, SITE)
        assert isinstance(found, Mapping)
        return found
    return hooks.parse_status(result, _native_ids(step))


def _command(step: Recording) -> Command:
    native_ids = _native_ids(step)
    if _is_search(step):
        return hooks.find(SITE)
    if step.argv[3] == "sacct":
        command = hooks.query_finished(native_ids or [], SITE)
        assert isinstance(command, Command)
        return command
    return hooks.query(native_ids, SITE)


def _elements(name: str, observed: Mapping[str, Observation]) -> Iterator[Observation]:
    number = JOBS[name]
    found = [it for key, it in observed.items() if key.partition("_")[0] == number]
    assert found, f"nothing was reported about {name}"
    yield from found


@pytest.mark.parametrize("step", QUERIES, ids=_name)
def test_the_recorded_query_is_still_the_current_one(step: Recording) -> None:
    assert _command(step).argv == step.argv


@pytest.mark.parametrize("step", [it for it in SUCCESSFUL if len(_native_ids(it) or JOBS) > 2], ids=_name)
def test_each_listing_contains_the_tags(step: Recording) -> None:
    if _is_search(step):
        tags = {tag: JOBS[name] for name, tag in _TAGS.items() if tag}
        assert _read(step) == tags
        return
    observed = _read(step)
    assert {name: {it.tag for it in _elements(name, observed)} for name in _TAGS} == {
        name: {tag} for name, tag in _TAGS.items()
    }


def test_the_queue_and_the_accounting_report_the_same_submit_time() -> None:
    several = [step for step in SUCCESSFUL if len(_native_ids(step) or ()) > 2]
    queue, accounting = (_read(step) for step in several)

    for name in _TAGS.keys() - {"requeued"}:
        (when,) = {it.submitted for it in _elements(name, queue)}
        assert when is not None
        assert {it.submitted for it in _elements(name, accounting)} == {when}
    (queued,), (accounted,) = (list(_elements("requeued", it)) for it in (queue, accounting))
    assert queued.submitted is not None, "squeue prints the time of the requeue"
    assert accounted.submitted is not None
    assert accounted.submitted < queued.submitted


@pytest.mark.parametrize("name", _TAGS)
def test_a_query_for_one_job_reports_it(name: str) -> None:
    (step,) = (it for it in SUCCESSFUL if it.argv[3] == "squeue" and _native_ids(it) == [JOBS[name]])

    assert {it.tag for it in _elements(name, _read(step))} == {_TAGS[name]}


@pytest.mark.parametrize("step", SUCCESSFUL, ids=_name)
def test_truncated_output_is_refused(step: Recording) -> None:
    """The last characters, after which no job is listed, may be missing."""
    if not step.result.stdout.partition("\n")[2]:
        pytest.skip("it says nothing")
    whole = _accepted(step, step.result.stdout)

    for end in range(len(step.result.stdout)):
        accepted = _accepted(step, step.result.stdout[:end])
        assert accepted is None or accepted == whole, step.result.stdout[:end][-100:]


@pytest.mark.parametrize("step", SUCCESSFUL, ids=_name)
def test_a_garbled_character_changes_no_job(step: Recording) -> None:
    text = step.result.stdout
    whole = _accepted(step, text)

    for at in range(len(text)):
        accepted = _accepted(step, text[:at] + "~1"[at % 2] + text[at + 1 :])
        assert accepted is None or accepted == whole, text[max(0, at - 50) : at + 50]


@pytest.mark.parametrize("step", SUCCESSFUL, ids=_name)
def test_repeated_output_changes_no_job(step: Recording) -> None:
    accepted = _accepted(step, step.result.stdout * 2)

    assert accepted is None or accepted == _accepted(step, step.result.stdout)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_inserted_or_removed_text_changes_no_job(data: st.DataObject) -> None:
    """Only rows may be missing that squeue omits itself when several jobs are queried."""
    step = data.draw(st.sampled_from(SUCCESSFUL))
    text = step.result.stdout
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    other = data.draw(st.sampled_from(["", text[begin:end] * 2, "\n"]) | st.text(max_size=20))
    whole = _accepted(step, text)

    accepted = _accepted(step, text[:begin] + other + text[end:])

    if accepted is not None and whole is not None:
        assert {key: accepted[key] for key in whole if key in accepted} == {
            key: whole[key] for key in whole if key in accepted
        }
        assert accepted == whole or _is_once(step)


def _accepted(step: Recording, stdout: str) -> Mapping[str, Any] | None:
    with contextlib.suppress(SubmitException):
        return _read(step, stdout)
    return None


def _is_once(step: Recording) -> bool:
    return "end of listing" in step.argv[2]


@pytest.fixture
def transport() -> Iterator[FakeTransport]:
    with FakeScheduler(FakeClock(), outcome=Outcome(600)) as scheduler:
        yield FakeTransport(scheduler, fake)


@pytest.mark.parametrize(
    "step", [it for it in QUERIES if "9999" in str(it.argv) or _is_search(it)], ids=_name
)
def test_the_fake_prints_the_recorded_output(step: Recording, transport: FakeTransport) -> None:
    """For queries whose jobs do not exist the whole output, for the others the header."""
    result = transport.run(_command(step))

    assert (result.returncode, result.stderr) == (step.result.returncode, step.result.stderr)
    assert _headers(result) == _headers(step.result)
    native_ids: Sequence[str] = _native_ids(step) or ()
    if all(int(it) > 9999 for it in native_ids) and native_ids:
        assert result.stdout == step.result.stdout


def _headers(result: CommandResult) -> list[str]:
    return [line for line in result.stdout.splitlines() if line.lower().startswith("jobid|=|")]
