"""The options of Snakemake that belong to this executor."""

# Snakemake reads the types of the fields, which must not be texts: no `from __future__ import annotations`.

from dataclasses import dataclass, field

from snakemake_interface_executor_plugins.settings import ExecutorSettingsBase


@dataclass
class ExecutorSettings(ExecutorSettingsBase):  # type: ignore[misc]  # Snakemake's interface is not typed
    """The settings of the executor, each an option of the command `snakemake`."""

    #: `--jpsi-executor`
    executor: str | None = field(
        default=None,
        metadata={
            "help": "The executor of jpsi, such as slurm, pbs or local, or a target of jpsi's configuration. "
            "The default is that of the configuration, else local, this machine.",
            "env_var": False,
            "required": False,
            "type": str,
        },
    )
    #: `--jpsi-url`
    url: str | None = field(
        default=None,
        metadata={
            "help": "Where the executor's commands run, such as ssh://login.example.org; "
            "that host must see the directory of the workflow under the same path.",
            "env_var": False,
            "required": False,
            "type": str,
        },
    )
