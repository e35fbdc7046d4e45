"""Recorded output, truncated, repeated or garbled: refused, or read with the same Observations."""

from __future__ import annotations

import contextlib
import re

import attrs
import pytest

from flux_support import VERSIONS, recordings
from jpsi.plugin import SubmitException
from jpsi_flux import hooks
from jpsi_testing import Recording

_LONG = 6000
_ENDS = ("completed", "failed-exit7", "cancelled-running", "dependency-failed", "timeout")
_STATES = (*_ENDS, "running", "held")


def _steps() -> list[Recording]:
    """Return output about one job in each of these states, and about several jobs."""
    scenarios = [*(f"state-{it}" for it in _STATES), "list-mixed-active", "list-mixed-finished", "names"]
    found = []
    for version in VERSIONS:
        for scenario in scenarios:
            steps = [it for it in recordings(scenario, version) if it.argv[:3] == ("flux", "jobs", "--json")]
            sound = [it for it in steps if 0 < len(it.result.stdout) < _LONG and it.result.returncode == 0]
            for has_several in (False, True):
                found += [it for it in sound if (len(_queried(it) or []) > 1) is has_several][-1:]
    return found


def _queried(step: Recording) -> list[str] | None:
    ids = []
    for word in step.argv[3:]:
        with contextlib.suppress(ValueError):
            ids.append(hooks.canonical_id(word))
    return ids or None


each_output = pytest.mark.parametrize("step", _steps(), ids=str)


def test_there_are_recordings_of_one_and_several_jobs() -> None:
    assert {len(_queried(step) or []) > 1 for step in _steps()} == {True, False}


@each_output
def test_truncated_output_reports_all_jobs_or_fails(step: Recording) -> None:
    whole = hooks.parse_status(step.result, _queried(step))

    for end in range(len(step.result.stdout)):
        cut = attrs.evolve(step.result, stdout=step.result.stdout[:end])
        with contextlib.suppress(SubmitException):
            assert hooks.parse_status(cut, _queried(step)) == whole


@each_output
def test_repeated_output_reports_the_same_or_fails(step: Recording) -> None:
    whole = hooks.parse_status(step.result, _queried(step))

    for stdout in (step.result.stdout * 2, step.result.stdout.rstrip() * 2):
        with contextlib.suppress(SubmitException):
            found = hooks.parse_status(attrs.evolve(step.result, stdout=stdout), _queried(step))
            assert found == whole


@pytest.mark.parametrize("mark", ["~", "\N{REPLACEMENT CHARACTER}", "\n", "\\"], ids=ascii)
@each_output
def test_a_changed_character_reports_nothing_wrong(step: Recording, mark: str) -> None:
    """No job is missing, none has another state, and none has another tag."""
    output = step.result.stdout
    names = re.sub(r'("name": ")[^"]*', r"\1jpsi-abc-1", output)
    result = attrs.evolve(step.result, stdout=names)
    whole = hooks.parse_status(result, _queried(step))

    for at, character in enumerate(names):
        garbled = attrs.evolve(result, stdout=names[:at] + mark + names[at + 1 :])
        with contextlib.suppress(SubmitException):
            found = hooks.parse_status(garbled, _queried(step))
            where = f"{character!r} at {at} behind {names[:at][-60:]!r}"
            assert found.keys() >= whole.keys(), where
            for name, seen in whole.items():
                assert found[name].state in {None, seen.state}, where
                assert found[name].tag in {None, seen.tag}, where
                assert found[name].exists is seen.exists, where
