"""What can be set for the executor `lsf`."""

from __future__ import annotations

import attrs

from jpsi.plugin import BatchConfig, hookimpl

#: The units in which `LSF_UNIT_FOR_LIMITS` may have memory counted, in bytes.
UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


@attrs.frozen(slots=True, kw_only=True)
class LsfConfig(BatchConfig):
    """What can be set for the executor `lsf`, besides what every batch system has.

    The defaults are for LSF 10.1.0.9 and later. What is older, or compatible with something older, needs some
    of the first four.
    """

    #: The unit in which this site counts memory (`LSF_UNIT_FOR_LIMITS` in lsf.conf; KB if that is not set).
    #: None says the unit with each number, which LSF before 10.1.0.2 refuses.
    memory_unit: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.in_(UNITS))
    )
    #: Whether a process with several cores is asked for as that many slots, where LSF has no affinity
    #: scheduling.
    cores_as_slots: bool = False
    #: Whether LSF is to end a job that waits for another in vain (`bsub -ti`, LSF 9.1.3). Without that such
    #: a job would wait for ever, so that jobs cannot wait for others.
    orphan_termination: bool = True
    #: Whether LSF knows compound requirements (`bsub -R '1*{...} + 4*{...}'`, LSF 8), by which a job has
    #: slots of several kinds.
    compound_requirements: bool = True
    #: Whether LSF may run a job again whose node has failed (`bsub -r`).
    rerunnable: bool = False
    #: Exit codes with which LSF puts a job back, besides those that its queues name: REQUEUE_EXIT_VALUES of
    #: application profiles.
    requeue_exit_codes: tuple[int, ...] = attrs.field(default=(), converter=tuple)


@hookimpl
def config_class() -> type[BatchConfig]:
    """The class."""
    return LsfConfig
