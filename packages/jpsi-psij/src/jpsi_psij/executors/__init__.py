"""The executors that psij names."""

from . import batch
from .flux import FluxJobExecutor
from .local import LocalJobExecutor
from .rp import RPJobExecutor

__all__ = ["FluxJobExecutor", "LocalJobExecutor", "RPJobExecutor", "batch"]
