"""Snakemake's executor `jpsi`: runs the jobs of a workflow on any executor of jpsi.

`snakemake --executor jpsi --jpsi-executor slurm --jobs 100`. Snakemake finds this module by its name, and
reads `common_settings`, `ExecutorSettings` and `Executor` from it.
"""

from __future__ import annotations

from snakemake_interface_executor_plugins.settings import CommonSettings

from .executor import Executor
from .settings import ExecutorSettings

__all__ = ["Executor", "ExecutorSettings", "common_settings"]

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    # the variables are part of the job, not of its command
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    pass_group_args=True,
)
