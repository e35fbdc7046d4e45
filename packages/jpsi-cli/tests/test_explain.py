"""The facts that `jpsi explain` collects about stored jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

import jpsi
from jpsi_cli.jobs.explain import render_explanation
from jpsi_engine.job_store import Origin
from stored_jobs import encoded_end, stored_job


@pytest.mark.parametrize(
    ("target", "state", "is_looked_for"),
    [
        ("", jpsi.JobState.FAILED, True),
        ("", jpsi.JobState.CANCELED, False),
        # it has other files
        ("ssh://login.example", jpsi.JobState.FAILED, False),
    ],
)
def test_the_interpreter_of_a_script_is_looked_for_where_the_job_ran(
    target: str, state: jpsi.JobState, is_looked_for: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path))
    script = tmp_path / "a.sh"
    script.write_text("#!/bin/nosh\n")
    end = encoded_end(state, 60, 127, jpsi.Reason.EXIT_CODE)
    job = stored_job("a", executable=str(script), origin=Origin("slurm", target, tmp_path), final=end)

    assert ("an interpreter that does not: '/bin/nosh'" in render_explanation(job)) is is_looked_for
