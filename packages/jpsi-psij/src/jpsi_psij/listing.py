"""Lists the jobs of a batch system, those of all users, with the facts that psij programs show.

jpsi itself follows only jobs that it has submitted or attached. For an executor without a listing here, the
jobs are those that jpsi has on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import jpsi
from jpsi.plugin import Command, CommandResult

from .listed_job import ListedJob
from .pbs_listing import QSTAT, parse_qstat
from .slurm_listing import SQUEUE, parse_squeue
from .stored_jobs import stored_jobs

_PBS = (QSTAT, parse_qstat)
_LISTINGS: dict[str, tuple[Command, Callable[[CommandResult], Iterator[ListedJob]]]] = {
    "slurm": (SQUEUE, parse_squeue),
    "pbs": _PBS,
    "pbspro": _PBS,
    "openpbs": _PBS,
}


def list_jobs(executor: jpsi.JobExecutor, work_directory: Path | None) -> list[ListedJob]:
    """Return the jobs of an executor's batch system that have not ended.

    Raises:
        SubmitException: the batch system does not answer.
    """
    if executor.name not in _LISTINGS:
        names = {executor.name}
        for plugin in jpsi.plugins():
            if plugin.kind == "executor" and executor.name in {plugin.name, *plugin.aliases}:
                names |= {plugin.name, *plugin.aliases}
        return list(stored_jobs(names, work_directory))
    command, parse = _LISTINGS[executor.name]
    return list(parse(executor.system.query(command).checked()))
