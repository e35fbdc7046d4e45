"""The queues of a site, as recorded from volclava 2.2 and documented for LSF 10.1."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jpsi.plugin import CommandResult, SubmitException
from jpsi_lsf import hooks
from jpsi_lsf.fake import lsf as fake
from jpsi_testing import command_result
from jpsi_testing.fake import FakeScheduler, Invocation, answer
from lsf_support import recordings

_BLOCK = """
QUEUE: {}
  -- A description

PARAMETERS/STATISTICS
PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV
 35    0  {}       -    -    -    -     5     3     2     0     0    0
"""


def test_a_queue_of_a_real_volclava() -> None:
    (recording,) = [it for it in recordings("ident") if it.argv == ("bqueues", "-l", "short")]

    (queue,) = hooks.parse_queues(recording.result)

    assert (queue.name, queue.native_state, queue.max_walltime) == (
        "short",
        "Open:Active",
        timedelta(minutes=5),
    )
    assert (queue.is_open, queue.is_started, queue.is_default) == (True, True, False)
    assert (queue.pending, queue.running, queue.default_walltime) == (0, 0, None)


@pytest.mark.parametrize(
    ("word", "is_open", "is_started"),
    [
        ("Open:Active", True, True),
        ("Closed:Active", False, True),
        ("Open:Inact", True, False),
        ("Closed:Inact_Adm", False, False),
        ("Odd", None, None),
    ],
)
def test_states(word: str, is_open: bool | None, is_started: bool | None) -> None:
    first, second = hooks.parse_queues(command_result(_BLOCK.format("a", word) + _BLOCK.format("b", word)))

    assert [first.name, second.name] == ["a", "b"]
    assert (first.is_open, first.is_started, first.pending, first.running) == (is_open, is_started, 3, 2)


def test_the_fake_has_a_default_queue_with_limits() -> None:
    with FakeScheduler() as scheduler:
        result = answer(scheduler, fake, Invocation(argv=hooks.queues().argv))

    (queue,) = hooks.parse_queues(result)

    assert (queue.name, queue.is_default) == ("normal", True)
    assert (queue.default_walltime, queue.max_walltime) == (timedelta(hours=1), timedelta(days=1))


@pytest.mark.parametrize(
    "result", [CommandResult(returncode=0, stdout="a banner\n"), CommandResult(returncode=255)]
)
def test_empty_output_is_refused(result: CommandResult) -> None:
    with pytest.raises(SubmitException):
        hooks.parse_queues(result)
