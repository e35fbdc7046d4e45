"""Tells which arrays start bit by bit, since jpsi and no batch system limits how many of their jobs run."""

from __future__ import annotations

from collections.abc import Sequence

import jpsi
from jpsi_engine.job_store import at_a_time

_LOCAL = "local"


def starts_bit_by_bit(executor: jpsi.JobExecutor, specs: Sequence[jpsi.JobSpec]) -> bool:
    """Return whether a submission of these jobs would wait until the first of them have ended.

    So it is on this machine if the array or `max_active` limits how many run at a time.

    Args:
        executor: the executor to which the jobs are submitted.
        specs: the jobs.

    Raises:
        InvalidJobException: neither the batch system nor jpsi can limit how many jobs run at a time.
    """
    limit = next((it for spec in specs if (it := at_a_time(spec)) is not None), None)
    if executor.name == _LOCAL and not executor.system.is_remote:
        config = executor.system.site().config
        return limit is not None or (len(specs) > 1 and getattr(config, "max_active", None) is not None)
    arrays = executor.system.capabilities.arrays
    if limit is not None and (arrays is None or not arrays.limits or len(specs) > arrays.largest):
        what = f"{executor.name} cannot limit how many of {len(specs)} jobs run at the same time"
        raise jpsi.InvalidJobException(f"{what}: leave out %{limit}")
    return False
