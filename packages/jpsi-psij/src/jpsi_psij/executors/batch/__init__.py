"""The executors of batch systems."""

from .batch_scheduler_executor import BatchSchedulerExecutor, InvalidJobStateError
from .cobalt import CobaltExecutorConfig, CobaltJobExecutor
from .lsf import LsfExecutorConfig, LsfJobExecutor
from .pbs import PBSJobExecutor
from .pbs_base import GenericPBSJobExecutor, PBSExecutorConfig
from .pbs_classic import PBSClassicJobExecutor
from .slurm import SlurmExecutorConfig, SlurmJobExecutor

__all__ = [
    "BatchSchedulerExecutor",
    "CobaltExecutorConfig",
    "CobaltJobExecutor",
    "GenericPBSJobExecutor",
    "InvalidJobStateError",
    "LsfExecutorConfig",
    "LsfJobExecutor",
    "PBSClassicJobExecutor",
    "PBSExecutorConfig",
    "PBSJobExecutor",
    "SlurmExecutorConfig",
    "SlurmJobExecutor",
]
