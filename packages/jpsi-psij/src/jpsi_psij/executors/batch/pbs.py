"""The executor `pbs`."""

from __future__ import annotations

from .pbs_base import GenericPBSJobExecutor, PBSExecutorConfig

__all__ = ["PBSExecutorConfig", "PBSJobExecutor"]


class PBSJobExecutor(GenericPBSJobExecutor):
    """PBS Pro or OpenPBS."""

    NAMES = ("pbs", "pbspro")
