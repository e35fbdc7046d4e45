"""A common interface to jpsi and psij-python, which both implement the J/PSI specification."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.side_by_side import has

_DISTRIBUTIONS = {"psij": "psij-python", "jpsi": "jpsi-core"}


def installed() -> list[str]:
    """Return the names of the installed libraries, jpsi last."""
    return [name for name, distribution in _DISTRIBUTIONS.items() if has(distribution)]


class Library:
    """A library with an executor.

    Args:
        name: jpsi or psij.
        executor: the executor's name in both.
        config: fields of the executor's configuration, which only jpsi gets.
    """

    def __init__(self, name: str, executor: str, **config: Any) -> None:
        #: jpsi or psij.
        self.name = name
        self._module: Any = importlib.import_module(name)
        #: Its executor.
        self.executor = self._executor(executor, config)

    def _executor(self, executor: str, config: dict[str, Any]) -> Any:
        get = self._module.JobExecutor.get_instance
        if not config or self.name != "jpsi":
            return get(executor)
        from jpsi_slurm import SlurmConfig

        return get(executor, config=SlurmConfig(**config))

    def job(
        self,
        executable: str,
        *arguments: str,
        stdout: Path | None = None,
        slurm: dict[str, str] | None = None,
    ) -> Any:
        """Return a new job; `slurm` has further options of `sbatch`, by their names."""
        spec = self._module.JobSpec(executable=executable, arguments=list(arguments))
        spec.stdout_path = stdout
        if slurm is not None:
            options = {f"slurm.{name}": value for name, value in slurm.items()}
            spec.attributes = self._module.JobAttributes(custom_attributes=options)
        return self._module.Job(spec)

    def submit(self, jobs: Iterable[Any]) -> None:
        """Submit jobs one by one."""
        for job in jobs:
            self.executor.submit(job)

    def wait(self, jobs: Iterable[Any]) -> None:
        """Wait for all of these jobs."""
        for job in jobs:
            job.wait()


def state(status: Any) -> str:
    """Return the state in a status of either library, as a word."""
    return str(status.state).rpartition(".")[2]
