"""The configuration of the executor `lsf`.

Sites and users set it in configuration files; hooks receive it as `site.config`.
"""

from __future__ import annotations

import attrs

from jpsi.plugin import BatchConfig, hookimpl

#: The units of memory that `LSF_UNIT_FOR_LIMITS` may name, in bytes.
UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


@attrs.frozen(slots=True, kw_only=True)
class LsfConfig(BatchConfig):
    """The settings of the executor `lsf`, in addition to those of every batch system.

    The defaults are for LSF 10.1.0.9 and later. Older versions, and systems compatible with them, need some
    of the first four settings.
    """

    #: The unit in which this site counts memory (`LSF_UNIT_FOR_LIMITS` in lsf.conf; KB if that is not set).
    #: With None jpsi writes the unit after each number, which LSF before 10.1.0.2 refuses.
    memory_unit: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.in_(UNITS))
    )
    #: True if jpsi requests a process with several cores as that many slots, for an LSF without affinity
    #: scheduling.
    cores_as_slots: bool = False
    #: True if LSF can end a job whose dependency is never satisfied (`bsub -ti`, LSF 9.1.3). Otherwise such a
    #: job would stay pending for ever, so that jpsi does not offer dependencies.
    orphan_termination: bool = True
    #: True if LSF knows compound requirements (`bsub -R '1*{...} + 4*{...}'`, LSF 8), which jobs with several
    #: components need.
    compound_requirements: bool = True
    #: True if LSF may rerun a job whose node failed (`bsub -r`).
    rerunnable: bool = False
    #: Exit codes for which LSF requeues a job, in addition to those of its queues: REQUEUE_EXIT_VALUES of
    #: application profiles.
    requeue_exit_codes: tuple[int, ...] = attrs.field(default=(), converter=tuple)


@hookimpl
def config_class() -> type[BatchConfig]:
    """Return the class of this executor's configuration."""
    return LsfConfig
