"""The facts that `jpsi explain` collects about stored jobs."""

from __future__ import annotations

import platform
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi_cli.jobs.explain import render_explanation
from jpsi_engine.job_store import Origin
from stored_jobs import encoded_end, stored_job

_HERE = platform.node()
_UNIX, _WINDOWS = "/bin/nosh", "/bin/sh\r"


@pytest.mark.parametrize(
    ("origin", "interpreter", "state", "is_found"),
    [
        (Origin("local", "", Path(), _HERE), _UNIX, jpsi.JobState.FAILED, True),
        (Origin("local", "", Path(), _HERE), _UNIX, jpsi.JobState.CANCELED, False),
        # other machines may have other interpreters
        (Origin("local", "", Path(), f"not-{_HERE}"), _UNIX, jpsi.JobState.FAILED, False),
        (Origin("slurm", "", Path()), _UNIX, jpsi.JobState.FAILED, False),
        # but none has this one
        (Origin("slurm", "", Path()), _WINDOWS, jpsi.JobState.FAILED, True),
        # it has other files
        (Origin("slurm", "ssh://login.example", Path()), _WINDOWS, jpsi.JobState.FAILED, False),
    ],
)
def test_the_interpreter_of_a_script_is_looked_for_where_the_job_ran(
    origin: Origin,
    interpreter: str,
    state: jpsi.JobState,
    is_found: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path))
    script = tmp_path / "a.sh"
    script.write_bytes(f"#!{interpreter}\n".encode())
    end = encoded_end(state, 60, 127, jpsi.Reason.EXIT_CODE)
    job = stored_job("a", executable=str(script), origin=attrs.evolve(origin, path=tmp_path), final=end)

    assert (f"an interpreter that does not: {interpreter!r}" in render_explanation(job)) is is_found


@pytest.mark.parametrize(("name", "limit"), [("slurm", "1m0s"), ("local", "2s")])
def test_the_time_limit_of_a_job_is_that_which_its_system_kept(
    name: str, limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(variable, str(tmp_path))
    end = encoded_end(jpsi.JobState.FAILED, 73, None, jpsi.Reason.TIMEOUT)
    job = stored_job("a", origin=Origin(name, "", tmp_path), duration=2, final=end)

    assert f"give it more time than {limit}: jpsi resubmit" in render_explanation(job)
