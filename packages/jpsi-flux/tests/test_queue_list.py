"""The queues of an instance, as recorded from Flux 0.88."""

from __future__ import annotations

from datetime import timedelta

import pytest

from flux_support import SITE, recordings
from jpsi.plugin import CommandResult, SubmitException
from jpsi_flux import fake, hooks
from jpsi_testing import command_result
from jpsi_testing.fake import FakeScheduler, Invocation, answer


def _recorded(scenario: str) -> str:
    """Return recorded output of a longer list of fields, reduced to the columns that jpsi requests."""
    rows = next(it.result.stdout for it in recordings(scenario) if "-n" in it.argv).splitlines()
    cells = [row.split("|") for row in rows]
    return "".join("|".join([*it[:3], *it[5:8]]) + "\n" for it in cells)


def test_queues_of_a_site() -> None:
    batch, debug = hooks.parse_queues(
        command_result(_recorded("site-queues-resources").replace("batch", "batch*"))
    )

    assert (batch.name, batch.is_default, batch.native_state) == ("batch", True, "enabled, started")
    assert (batch.max_walltime, batch.default_walltime) == (timedelta(hours=8), timedelta(hours=1))
    assert (debug.name, debug.is_default, debug.max_nodes) == ("debug", False, 1)
    assert (debug.is_open, debug.is_started) == (True, True)


def test_an_instance_without_queues_has_one_without_a_name() -> None:
    (queue,) = hooks.parse_queues(command_result(_recorded("queue-resource-list")))

    assert (queue.name, queue.is_default, queue.max_walltime, queue.max_nodes) == (
        "",
        True,
        timedelta(0),
        None,
    )


def test_the_fake_prints_the_same_queues() -> None:
    with FakeScheduler() as scheduler:
        result = answer(scheduler, fake, Invocation(argv=hooks.queues(SITE).argv))

    assert [it.name for it in hooks.parse_queues(result)] == [""]


@pytest.mark.parametrize(
    ("submission", "scheduling", "is_open", "is_started"),
    [("disabled", "started", False, True), ("enabled", "stopped", True, False)],
)
def test_states(submission: str, scheduling: str, *, is_open: bool, is_started: bool) -> None:
    (queue,) = hooks.parse_queues(command_result(f"a|{submission}|{scheduling}|inf|inf|0-inf\n"))

    assert (queue.is_open, queue.is_started) == (is_open, is_started)


def test_empty_output_is_refused() -> None:
    with pytest.raises(SubmitException):
        hooks.parse_queues(CommandResult(returncode=1, stderr="flux-queue: ERROR: broker\n"))
