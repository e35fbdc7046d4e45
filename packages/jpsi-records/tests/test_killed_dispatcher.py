"""A dispatcher that is killed at any instant: no execution runs twice, and none is lost."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from fake_dispatcher import spec
from forked_jpsi import run_program
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.model.entities import ExecutionState
from jpsi_records.records.records import Records
from kill_instants import TICKING

INSTANTS = 30
# Enough executions for this many instants.
EXECUTIONS = 2
# Kills itself before or after its nth action on the database, on files, or on the batch system.
DISPATCHING = f"""\
{TICKING}
directory, url, instant = sys.argv[1], sys.argv[2], int(sys.argv[3])
jpsi.JobExecutor.submit = ticking(jpsi.JobExecutor.submit)
Materializer.lay_out = ticking(Materializer.lay_out)
Materializer.capture = ticking(Materializer.capture)
Dispatcher(Records(directory, url=url)).run(until_idle=True)
"""


@pytest.mark.parametrize("instant", range(1, INSTANTS + 1))
def test_an_execution_runs_once_whenever_its_dispatcher_is_killed(
    instant: int, url: str, tmp_path: Path
) -> None:
    with Records(tmp_path / "records", url=url) as records:
        mounts = {"/out": {"kind": "collection"}}
        scripts = [f"echo {number} >>{tmp_path}/runs" for number in range(EXECUTIONS)]
        specs = [spec("sh", "-c", script, mounts=mounts) for script in scripts]
        requests = [records.submit(it) for it in specs]
        killed = run_program(DISPATCHING, tmp_path / "records", url, str(instant))
        assert killed.returncode == -signal.SIGKILL, killed.stderr

        # its leases have expired
        with Records(
            tmp_path / "records", url=url, now=lambda: records.now() + timedelta(seconds=61)
        ) as later:
            Dispatcher(later).run(until_idle=True)

        for one, request in zip(specs, requests, strict=True):
            execution = records.execution(request.execution or "")
            assert (execution.state, execution.exit_code) == (ExecutionState.COMPLETE, 0)
            assert records.submit(one).execution == execution.id
        assert sorted((tmp_path / "runs").read_text().split()) == [str(it) for it in range(EXECUTIONS)]
