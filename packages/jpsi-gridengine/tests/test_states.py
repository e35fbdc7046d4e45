from __future__ import annotations

import pytest

from jpsi.plugin import JobState
from jpsi_gridengine.states import state_meaning

_QUEUED, _ACTIVE = JobState.QUEUED, JobState.ACTIVE


# sge_status(5) of 8.1.9, Job state
@pytest.mark.clause("state-mapping")
@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("qw hqw hRwq Rq t Rt dt dRt Eqw Ehqw EhRqw", _QUEUED),
        ("r hr Rr s ts S tS T tT Rs Rts RS RtS RT RtT dr dRr ds dS dT dRs dRS dRT hs", _ACTIVE),
    ],
)
def test_every_state_of_the_manual_is_known(words: str, state: JobState) -> None:
    found = {word: state_meaning(word) for word in words.split()}

    assert {word: it and it.state for word, it in found.items()} == dict.fromkeys(words.split(), state)
