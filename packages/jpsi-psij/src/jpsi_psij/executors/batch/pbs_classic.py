"""The executor `pbs_classic`."""

from __future__ import annotations

from .pbs_base import GenericPBSJobExecutor, PBSExecutorConfig

__all__ = ["PBSClassicJobExecutor", "PBSExecutorConfig"]


class PBSClassicJobExecutor(GenericPBSJobExecutor):
    """Torque."""

    NAMES = ("pbs_classic", "torque")
