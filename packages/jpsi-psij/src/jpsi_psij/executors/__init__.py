"""The executors that psij names."""

from __future__ import annotations

from ..job_executor import JobExecutor
from .batch.cobalt import CobaltJobExecutor
from .batch.lsf import LsfJobExecutor
from .batch.pbs import PBSJobExecutor
from .batch.pbs_classic import PBSClassicJobExecutor
from .batch.slurm import SlurmJobExecutor
from .flux import FluxJobExecutor
from .local import LocalJobExecutor
from .rp import RPJobExecutor

CLASSES: dict[str, type[JobExecutor]] = {
    "cobalt": CobaltJobExecutor,
    "flux": FluxJobExecutor,
    "local": LocalJobExecutor,
    "lsf": LsfJobExecutor,
    "pbs": PBSJobExecutor,
    "pbs_classic": PBSClassicJobExecutor,
    "pbspro": PBSJobExecutor,
    "rp": RPJobExecutor,
    "slurm": SlurmJobExecutor,
    "slurm_single": SlurmJobExecutor,
    "torque": PBSClassicJobExecutor,
}
