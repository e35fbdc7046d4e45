"""Recorded output, truncated, repeated or garbled: refused, or read with the same Observations."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping

import attrs
import pytest

from jpsi.plugin import CommandResult, Observation, Site, SubmitException
from jpsi_lsf import hooks
from jpsi_lsf.native_ids import expand_ids
from jpsi_lsf.queue.json_listing import FIELDS
from jpsi_testing import Recording
from lsf_support import MODERN, OLD, RECORDINGS, recordings

Observations = Mapping[str, Observation]
Read = Callable[[CommandResult], Observations]

_LONG = 3000
_SCENARIOS = (
    *("array-elements", "bjobs-forms", "job-runlimit"),
    *("job-rerun-requeue", "job-suspended", "job-unkwn"),
)


def _steps(*words: str) -> Iterator[Recording]:
    """Yield output of each scenario of a command with these arguments; the longest, but for the very long."""
    for scenario in _SCENARIOS:
        steps = [it for it in recordings(scenario) if it.argv[0] == words[0] and {*words} <= {*it.argv}]
        listings = sorted((it for it in steps if "Job <" in it.result.stdout), key=_size)
        yield from [it for it in listings if _size(it) < _LONG][-1:] or listings[:1]


def _size(step: Recording) -> int:
    return len(step.result.stdout)


def _queried(step: Recording) -> list[str] | None:
    """Return the queried jobs; an array by its listed elements."""
    listed = re.findall(r"^Job <([^>]+)>", step.result.stdout, re.MULTILINE)
    ids = [it for word in step.argv[1:] for it in expand_ids(word) if it != "0"]
    elements = [it for it in listed if it.partition("[")[0] in ids]
    jobs = [it for it in ids if f"Job <{it}[" not in step.result.stdout]
    return [*dict.fromkeys([*jobs, *elements])] or None


def _status(step: Recording) -> Read:
    return lambda result: hooks.parse_status(result, _queried(step), OLD)


def _finished(step: Recording) -> Read:
    return lambda result: hooks.parse_finished(result, _queried(step) or [], OLD)


def _json() -> str:
    """Return output in volclava's form, with the fields of LSF 10.1."""
    tag = {"JOB_DESCRIPTION": "jpsi-abc-1"}
    rows = (
        {"JOBID": "17", "JOBINDEX": "1", "STAT": "RUN", "EXEC_HOST": "n1:n1", **tag},
        {"JOBID": "17", "JOBINDEX": "2", "STAT": "EXIT", "EXIT_CODE": "7", "EXEC_HOST": "4*n1"},
        {"JOBID": "18", "STAT": "EXIT", "EXIT_CODE": "130", "EXIT_REASON": "TERM_OWNER: job killed by owner"},
        {"JOBID": "19", "STAT": "DONE", "EXEC_HOST": "n1", "JOB_DESCRIPTION": "a%20name jpsi-abd-1"},
        {"JOBID": "20", "STAT": "PEND", "PEND_REASON": "New job is waiting;"},
    )
    usual = dict.fromkeys(FIELDS.upper().split(), "") | {"JOBINDEX": "0"}
    records = [{**usual, **it} for it in rows]
    unknown = {"JOBID": "21", "ERROR": "Job <21> is not found"}
    return json.dumps({"COMMAND": "bjobs", "JOBS": 6, "RECORDS": [*records, unknown]}, indent=1)


_IDS = ["17[1]", "17[2]", "18", "19", "20", "21"]
_WHOLE: list[tuple[CommandResult, Read]] = [
    *((step.result, _status(step)) for step in _steps("bjobs", "-l")),
    *((step.result, _finished(step)) for step in _steps("bhist", "-l")),
    (CommandResult(returncode=0, stdout=_json()), lambda it: hooks.parse_status(it, _IDS, MODERN)),
    (CommandResult(returncode=0, stdout=_json()), lambda it: hooks.parse_status(it, None, MODERN)),
]
each_output = pytest.mark.parametrize(("result", "read"), _WHOLE, ids=[f"{n}" for n in range(len(_WHOLE))])


def test_there_are_recordings_of_all_commands() -> None:
    assert len(_WHOLE) > 10
    assert RECORDINGS.is_dir()


@each_output
def test_truncated_output_reports_all_jobs_or_fails(result: CommandResult, read: Read) -> None:
    whole = read(result)

    for end in range(len(result.stdout)):
        with contextlib.suppress(SubmitException):
            found = read(attrs.evolve(result, stdout=result.stdout[:end], returncode=0))
            assert found == whole, f"cut to {result.stdout[:end][-100:]!r}"


@each_output
def test_repeated_output_reports_the_same(result: CommandResult, read: Read) -> None:
    whole, lines = read(result), result.stdout.splitlines(keepends=True)
    repeated = ["".join(lines[: at + 1] + lines[at:]) for at in range(len(lines))]

    for stdout in (result.stdout * 2, *repeated):
        with contextlib.suppress(SubmitException):
            found = read(attrs.evolve(result, stdout=stdout))
            assert {it: _meaning(seen) for it, seen in found.items()} == {
                it: _meaning(seen) for it, seen in whole.items()
            }


@each_output
def test_output_that_lacks_a_line_loses_no_job_and_ends_none(result: CommandResult, read: Read) -> None:
    """A missing event cannot be detected, such as the signal before an end."""
    whole, lines = read(result), result.stdout.splitlines(keepends=True)

    for at, line in enumerate(lines):
        with contextlib.suppress(SubmitException):
            found = read(attrs.evolve(result, stdout="".join(lines[:at] + lines[at + 1 :])))
            assert found.keys() == whole.keys(), line
            for name, seen in whole.items():
                assert not found[name].final or seen.final, line
                assert found[name].tag in {None, seen.tag}, line
                assert found[name].state in {seen.state, None} or ": " in line, line


@pytest.mark.parametrize("mark", ["~", "\N{REPLACEMENT CHARACTER}", "\n"], ids=ascii)
@each_output
def test_a_changed_character_reports_nothing_wrong(result: CommandResult, read: Read, mark: str) -> None:
    """No job is missing, none has another state, and none has another tag."""
    whole = read(result)

    for at, character in enumerate(result.stdout):
        garbled = result.stdout[:at] + mark + result.stdout[at + 1 :]
        with contextlib.suppress(SubmitException):
            found = read(attrs.evolve(result, stdout=garbled))
            where = f"{character!r} at {at} behind {result.stdout[:at][-60:]!r}"
            assert found.keys() >= whole.keys(), where
            for name, seen in whole.items():
                assert found[name].state in {None, seen.state}, where
                assert found[name].tag in {None, seen.tag}, where
                assert found[name].exists is seen.exists, where


def _meaning(seen: Observation) -> object:
    return seen.state, seen.exit_code, seen.exists, seen.reason


def test_any_text_before_the_listing_is_skipped() -> None:
    banner = f"Welcome to 12!\n{'-' * 78}\nJobs <7> of today: {{}}\n"
    for result, read in _WHOLE:
        assert read(attrs.evolve(result, stdout=banner + result.stdout)) == read(result)


@pytest.mark.parametrize("site", [OLD, MODERN], ids=["paragraphs", "json"])
def test_empty_output_is_no_listing_of_all_jobs(site: Site) -> None:
    with pytest.raises(SubmitException):
        hooks.parse_status(CommandResult(returncode=0), None, site)
    no_job = CommandResult(returncode=255, stderr="No unfinished job found\n")
    assert hooks.parse_status(no_job, None, site) == {}
    with pytest.raises(SubmitException):
        hooks.parse_status(no_job, ["7"], site)
