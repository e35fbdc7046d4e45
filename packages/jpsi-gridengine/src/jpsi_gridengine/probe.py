"""Declares the capabilities of Grid Engine and probes those of a site.

The engine runs the probe once per executor; later hooks find its result in `site.offers`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jpsi.plugin import Arrays, Capabilities, Command, CommandResult, DependencyKind, Site, hookimpl

from .commands import gridengine_command
from .custom_options import ARRAY_RANGE

# The name of a cell that no site has: the error message about it contains the directory of the cells.
_NO_CELL = "jpsi-no-cell"
_SCRIPT = f"SGE_CELL={_NO_CELL} qacct -j 0; exec qconf -sconf"
_ROOT = re.compile(rf'cell directory "(.+)/{_NO_CELL}" doesn\'t exist')
# sge_conf(5) of 8.1.9; 0 is no limit
_MAX_AJ_TASKS = re.compile(r"^max_aj_tasks +([1-9][0-9]*)$", re.MULTILINE)
_MAX_AJ_TASKS_BY_DEFAULT = 75000

# Slightly more than the 15 s after which qmaster writes accounts
_VISIBLE_SECONDS = 20.0
# The ids per query of the accounting, each of which reads the whole file of accounts.
_IDS_PER_ACCOUNTING = 1000


@hookimpl
def capabilities(site: Site) -> Capabilities:
    """Return the capabilities of Grid Engine at this site."""
    return Capabilities(
        hold_option="gridengine.h",
        default_launcher="mpirun",
        id_variable="JOB_ID",
        ids_per_query=None,
        # If that file is not known, each job needs its own qacct.
        ids_per_accounting=_IDS_PER_ACCOUNTING if "root" in site.offers else 1,
        # sge_conf(5) of 8.1.9, flush_time: qmaster writes accounts each 15 s
        visible_within=_VISIBLE_SECONDS,
        # sge_submit(1) of 8.1.9, EXIT STATUS of jobs: Grid Engine requeues the job, whatever -r says.
        requeue_exit_codes=frozenset({99}),
        dependencies=frozenset({DependencyKind.ANY}),
        arrays=Arrays(
            largest=site.offers.get("largest_array", _MAX_AJ_TASKS_BY_DEFAULT),
            id_variable="JOB_ID",
            index_variable="SGE_TASK_ID",
            range_variables=ARRAY_RANGE,
            reads_index=True,
            limits=True,
        ),
    )


@hookimpl
def probe() -> Command:
    """Return the command that prints the directory of Grid Engine's files, and the configuration.

    At some sites only wrappers around Grid Engine's commands know that directory.
    """
    return gridengine_command("/bin/sh", "-c", _SCRIPT)


@hookimpl
def parse_probe(result: CommandResult) -> Mapping[str, Any]:
    """Return `root`, the directory of the cells, and `largest_array`, the most tasks of an array."""
    root, largest = _ROOT.search(result.stderr), _MAX_AJ_TASKS.search(result.stdout)
    return {
        **({} if root is None else {"root": root[1]}),
        **({} if largest is None else {"largest_array": int(largest[1])}),
    }
