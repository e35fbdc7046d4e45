"""Finds out after which exit codes the site requeues a job, and keeps them in the spool.

The scripts that `runner.requeue` renders act on them.
"""

from __future__ import annotations

from collections.abc import Collection

from jpsi_engine.runner import RequeueRules
from jpsi_engine.scheduler import Backend
from jpsi_engine.spool import EVERY_FAILURE, read_requeue_codes, store_requeue_codes


def probe_requeue_codes(backend: Backend, root: str) -> None:
    """Probe the site for its requeue exit codes before the first job of a spool is submitted.

    The codes are kept on disk, for every job that the batch system starts again. Until they are known, any
    failure that no client has seen may be one after which the site requeues the job; and a client that was
    killed cannot ask later.

    Args:
        backend: the batch system.
        root: the root of the spool.
    """
    if _known_codes(backend, root) is EVERY_FAILURE and backend.probe():
        store_requeue_codes(root, backend.requeue_exit_codes)


def requeue_rules(backend: Backend, root: str) -> RequeueRules:
    """Return what is known of how the batch system requeues jobs, for the runner's script."""
    codes = _known_codes(backend, root)
    return RequeueRules(
        count_variable=backend.capabilities.restart_variable,
        exit_codes=None if codes is EVERY_FAILURE else codes,
    )


def _known_codes(backend: Backend, root: str) -> Collection[int]:
    codes = backend.requeue_exit_codes
    return read_requeue_codes(root) if codes is EVERY_FAILURE else codes
