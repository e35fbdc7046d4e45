"""Progress reports: long transfers are reported, short ones are not."""

from __future__ import annotations

import pytest

from jpsi.model.staging import StagingProgress
from jpsi_engine.transfer.progress import ProgressReport


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0.1, 0.5, 0.9], []),
        ([0.5, 1.1, 1.5, 2.2], [2, 4]),
        # the end is reported after the first report
        ([0.5, 1.1, 1.2, 1.3], [2, 4]),
        ([0.5, 30], [2]),
    ],
    ids=["quick", "once a second", "the end", "one piece"],
)
def test_progress_is_reported_once_a_second_and_at_the_end(times: list[float], expected: list[int]) -> None:
    reports: list[StagingProgress] = []
    clock = iter([0.0, *times])
    report = ProgressReport(reports.append, "a", is_in=True, now=lambda: next(clock))

    for done, _ in enumerate(times, 1):
        report(done, len(times))

    assert [StagingProgress(path="a", is_in=True, done=it, total=len(times)) for it in expected] == reports
