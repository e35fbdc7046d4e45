"""What Grid Engine offers, and a site's own Grid Engine, as its commands tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jpsi.plugin import Arrays, Capabilities, Command, CommandResult, DependencyKind, Site, hookimpl

from .commands import gridengine

# A cell that no site has: a command that is sent there complains, and says where cells are.
_NO_CELL = "jpsi-asks-where"
_ASK = f"SGE_CELL={_NO_CELL} qacct -j 0; exec qconf -sconf"
_ROOT = re.compile(rf'cell directory "(.+)/{_NO_CELL}" doesn\'t exist')
# sge_conf(5) of 8.1.9; 0 is no limit
_MAX_AJ_TASKS = re.compile(r"^max_aj_tasks +([1-9][0-9]*)$", re.MULTILINE)
_MAX_AJ_TASKS_BY_DEFAULT = 75000

# Some more than the 15 s after which accounts are written
_VISIBLE_SECONDS = 20.0
# Each question reads the whole file of accounts.
_IDS_PER_ACCOUNTING = 1000


@hookimpl
def capabilities(site: Site) -> Capabilities:
    """What Grid Engine offers."""
    return Capabilities(
        default_launcher="mpirun",
        id_variable="JOB_ID",
        ids_per_query=None,
        # Where that file is not known, a qacct is asked for each.
        ids_per_accounting=_IDS_PER_ACCOUNTING if "root" in site.offers else 1,
        # sge_conf(5) of 8.1.9, flush_time: qmaster writes accounts each 15 s
        visible_within=_VISIBLE_SECONDS,
        # sge_submit(1) of 8.1.9, EXIT STATUS of jobs: the job is put back, whatever -r says.
        requeue_exit_codes=frozenset({99}),
        dependencies=frozenset({DependencyKind.ANY}),
        arrays=Arrays(
            largest=site.offers.get("largest_array", _MAX_AJ_TASKS_BY_DEFAULT),
            id_variable="JOB_ID",
            index_variable="SGE_TASK_ID",
            limits=True,
        ),
    )


@hookimpl
def probe() -> Command:
    """The command that tells where Grid Engine's files are, which only wrappers of its commands may know.

    It prints the configuration as well.
    """
    return gridengine("/bin/sh", "-c", _ASK)


@hookimpl
def parse_probe(result: CommandResult) -> Mapping[str, Any]:
    """What was told: as `root` where the files are, as `largest_array` how many tasks an array may have."""
    root, largest = _ROOT.search(result.stderr), _MAX_AJ_TASKS.search(result.stdout)
    return {
        **({} if root is None else {"root": root[1]}),
        **({} if largest is None else {"largest_array": int(largest[1])}),
    }
