"""Commands of LSF whose output ends after one element, as if it were whole: no other element is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import Evidence, Job, JobExecutor
from jpsi_lsf.config import LsfConfig
from jpsi_testing.fake import FakeScheduler, Outcome, on_path

COUNT = 4

# Prints the first paragraph of what the real command prints, and the empty line that ends a listing.
_CUT = """\
#!/bin/sh
{command} "$@" >{folder}/out.$$ 2>{folder}/err.$$
code=$?
cat {folder}/err.$$ >&2
awk '/^-----/ {{ exit }} {{ print }}' {folder}/out.$$
[ ! -s {folder}/out.$$ ] || [ "$(grep -c '^----' {folder}/out.$$)" = 0 ] || echo
exit "$code"
"""


@pytest.mark.parametrize("fake_system", ["volclava"])
def test_elements_that_a_cut_listing_leaves_out_are_asked_about_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_system: str
) -> None:
    config = LsfConfig(
        work_directory=tmp_path / "work",
        shortest_interval=timedelta(seconds=0.1),
        longest_interval=timedelta(seconds=0.2),
        grace=timedelta(seconds=0.5),
    )
    outcome = Outcome(seconds=0, exit_code=3)
    with FakeScheduler(outcome=outcome) as scheduler, on_path(fake_system, scheduler):
        for name in ("bjobs", "bhist"):
            path = tmp_path / name
            path.write_text(_CUT.format(command=shutil.which(name), folder=tmp_path))
            path.chmod(0o755)
        subprocess.run(["bsub", "-J", f"a[1-{COUNT}]"], input="exit 3\n", text=True, check=True)
        native_ids = [job.native_id for job in scheduler.jobs]
        scheduler.wait_for(lambda: all(job.state.final for job in scheduler.jobs))
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        with JobExecutor("lsf", config=config) as executor:
            jobs = [(Job(), native_id) for native_id in native_ids]
            executor.attach_many(jobs)
            ends = [job.wait(60) for job, _ in jobs]

    assert [end and (end.exit_code, end.evidence) for end in ends] == [(3, Evidence.ACCOUNTING)] * COUNT
