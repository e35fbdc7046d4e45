"""Limits how many jobs of an array run at a time where no batch system does."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

import jpsi
from jpsi.plugin import BatchConfig
from jpsi_engine.job_store import at_a_time

_LOCAL = "local"


def limit_arrays(
    executor: jpsi.JobExecutor, name: str | None, specs: Sequence[jpsi.JobSpec]
) -> jpsi.JobExecutor:
    """Return an executor that keeps the limits of arrays: the given one if it does, or if there are none.

    Args:
        executor: the executor to which the jobs are submitted.
        name: the name that the user gave it.
        specs: the jobs.

    Raises:
        InvalidJobException: neither the batch system nor jpsi can limit how many jobs run at a time.
    """
    limits = [it for spec in specs if (it := at_a_time(spec)) is not None]
    arrays = executor.system.capabilities.arrays
    if not limits or (arrays is not None and arrays.limits and len(specs) <= arrays.largest):
        return executor
    config = executor.system.site().config
    if executor.name != _LOCAL or executor.system.is_remote or not isinstance(config, BatchConfig):
        what = f"{executor.name} cannot limit how many of {len(specs)} jobs run at the same time"
        msg = f"{what}: leave out %{limits[0]}"
        raise jpsi.InvalidJobException(msg)
    most = min(filter(None, (limits[0] * max(map(_core_count, specs)), config.max_active)))
    return jpsi.JobExecutor(name, config=attrs.evolve(config, max_active=most))


def _core_count(spec: jpsi.JobSpec) -> int:
    resources = spec.resources
    if not isinstance(resources, jpsi.ResourceSpecV1):
        return 1
    return resources.computed_process_count * (resources.cpu_cores_per_process or 1)
