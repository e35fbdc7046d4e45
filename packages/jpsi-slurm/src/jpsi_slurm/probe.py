"""Declares the capabilities of Slurm and reads those of a site from `scontrol show config`.

The engine runs the probe once per executor; later hooks find its result in `site.offers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jpsi.plugin import Arrays, Capabilities, Command, CommandResult, DependencyKind, Site, hookimpl

from .commands import slurm_command
from .custom_options import ARRAY_RANGE, WALLTIME_UNIT

_SETTING = re.compile(r"^(\S+)\s*= (.*?)\s*$", re.MULTILINE)
_NO_USE = frozenset({"", "jobacct_gather/none", "(null)"})
_NO_ACCOUNTING = frozenset({"accounting_storage/none", "(null)"})
# For `squeue --jobs` slurmctld lists every job, however many ids the call names, so that few calls with many
# ids cost least. Linux takes no argument over 128 KiB.
_IDS_PER_QUERY = 2000
# slurm.conf(5): the default of MaxArraySize
_MAX_ARRAY_SIZE = 1001
# slurm.conf(5): SchedulerParameters. The most elements of an array, where it is lower than MaxArraySize.
_MAX_ARRAY_TASKS = re.compile(r"(?:^|,)max_array_tasks=([1-9][0-9]{0,9})(?:,|$)", re.IGNORECASE)


@hookimpl
def capabilities(site: Site) -> Capabilities:
    """Return the capabilities of Slurm, with the exit codes for which this site requeues jobs."""
    return Capabilities(
        hold_option="slurm.hold",
        default_launcher="srun",
        heterogeneous=True,
        walltime_unit=WALLTIME_UNIT,
        id_variable="SLURM_JOB_ID",
        restart_variable="SLURM_RESTART_COUNT",
        ids_per_query=_IDS_PER_QUERY,
        requeue_exit_codes=frozenset(site.offers.get("requeue_exit_codes", ())),
        dependencies=frozenset(DependencyKind),
        arrays=_array_capabilities(site.offers.get("max_array_size", _MAX_ARRAY_SIZE)),
    )


def _array_capabilities(size: int) -> Arrays | None:
    """Return the capabilities of arrays with indices below this size; None if the site has no arrays."""
    largest = size - 1
    if largest < 1:
        return None
    return Arrays(
        largest=largest,
        id_variable="SLURM_ARRAY_JOB_ID",
        index_variable="SLURM_ARRAY_TASK_ID",
        range_variables=ARRAY_RANGE,
        limits=True,
    )


@hookimpl
def probe(site: Site) -> Command:
    """Return the command that prints Slurm's configuration."""
    return slurm_command(site, "scontrol", "show", "config")


@hookimpl
def parse_probe(result: CommandResult) -> Mapping[str, Any]:
    """Return the settings that jpsi uses from `scontrol show config` (slurm.conf(5)).

    `version` is year and month; `accounting` is True if slurmdbd keeps accounts, None if the output does not
    say; `requeue_exit_codes` are the exit codes for which Slurm requeues a job; `max_array_size` is one more
    than the largest index of an array; `measures_use` is True if Slurm measures what jobs use.
    """
    settings = dict(_SETTING.findall(result.checked().stdout))
    storage = settings.get("AccountingStorageType")
    codes = (settings.get("RequeueExit", ""), settings.get("RequeueExitHold", ""))
    return {
        "version": [int(number) for number in re.findall(r"[0-9]+", settings.get("SLURM_VERSION", ""))[:2]],
        "accounting": None if storage is None else storage not in _NO_ACCOUNTING,
        "measures_use": settings.get("JobAcctGatherType", "") not in _NO_USE,
        "requeue_exit_codes": sorted({code for text in codes for code in _parse_exit_codes(text)}),
        "max_array_size": _max_array_size(
            settings.get("MaxArraySize", ""), settings.get("SchedulerParameters", "")
        ),
    }


def _max_array_size(size: str, parameters: str) -> int:
    """Return one more than the largest index of an array whose indices begin with 1."""
    largest = int(size) if size.isdecimal() else _MAX_ARRAY_SIZE
    tasks = _MAX_ARRAY_TASKS.search(parameters)
    return largest if tasks is None else min(largest, int(tasks[1]) + 1)


def _parse_exit_codes(text: str) -> Iterator[int]:
    """Yield the exit codes in a list such as `1-3,100`."""
    for first, last in re.findall(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", text):
        yield from range(int(first), int(last or first) + 1)
