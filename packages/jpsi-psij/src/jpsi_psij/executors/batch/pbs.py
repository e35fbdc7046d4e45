"""The executor `pbs`."""

from __future__ import annotations

from .pbs_base import GenericPBSJobExecutor, PBSExecutorConfig

__all__ = ["PBSJobExecutor", "PBSExecutorConfig"]


class PBSJobExecutor(GenericPBSJobExecutor):
    """PBS Pro or OpenPBS."""

    NAME = "pbs"
